"""Publishes a file over WHIP with aiortc, as the test orders line by line. See whip.py."""

import asyncio
import sys
import time

from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.contrib.media import MediaPlayer

from whip import Whip, commands, fault, say

CONNECT_DEADLINE_SECS = 20


class Publisher:
    async def publish(self, server, key, clip, codec, sound, trickle, attach=None):
        """Resolves when the peer is connected."""
        start = time.monotonic()
        self.whip = Whip(server, key, attach)
        self.peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))  # all is on this machine
        self.player = MediaPlayer(clip)
        self.track = self.player.video
        video = self.peer.addTransceiver(self.track, direction="sendonly")
        codecs = RTCRtpSender.getCapabilities("video").codecs
        video.setCodecPreferences([c for c in codecs if c.mimeType in (f"video/{codec}", "video/rtx")])
        self.sender = video.sender
        if sound:
            self.peer.addTransceiver(self.player.audio, direction="sendonly")
        connected = asyncio.get_running_loop().create_future()

        @self.peer.on("connectionstatechange")
        def on_state():
            state = self.peer.connectionState
            if state in ("connected", "failed", "closed") and not connected.done():
                connected.set_result(state)

        await self.peer.setLocalDescription(await self.peer.createOffer())
        sdp = self.peer.localDescription.sdp
        # aiortc knows all candidates by now; a client that trickles sends them later, one by one.
        trickle = trickle and await asyncio.to_thread(self.whip.may_trickle)
        lines = sdp.splitlines()
        early = [line for line in lines if not line.startswith(("a=candidate", "a=end-of-candidates"))]
        offer = "\r\n".join(early) + "\r\n" if trickle else sdp
        answer = await asyncio.to_thread(self.whip.offer, offer)
        await self.peer.setRemoteDescription(RTCSessionDescription(sdp=answer, type="answer"))
        if trickle:
            section = lines[next(at for at, line in enumerate(lines) if line.startswith("m=")):]
            for candidate in [line[2:] for line in section if line.startswith("a=candidate")]:
                await asyncio.to_thread(self.whip.trickle, sdp, 0, [candidate])
            await asyncio.to_thread(self.whip.trickle, sdp, 0, [])
        state = await asyncio.wait_for(connected, CONNECT_DEADLINE_SECS)
        return {
            "state": state,
            "run_id": self.whip.run_id,
            "session_id": self.whip.location.split("/")[-1],
            "trickled": self.whip.statuses,
            "connect_ms": round((time.monotonic() - start) * 1000),
        }

    async def pause(self):
        """No more media; reports and connection checks go on."""
        self.sender.replaceTrack(None)
        return {}

    async def resume(self):
        self.sender.replaceTrack(self.track)
        return {}

    async def prompt(self, prompt):
        return {"status": await asyncio.to_thread(self.whip.prompt, prompt)}

    async def close(self):
        await self.peer.close()
        return {}

    async def delete(self):
        return {"status": await asyncio.to_thread(self.whip.delete)}

    async def close_and_delete(self):
        """In the order of many clients: the peer first, then the resource."""
        await self.peer.close()
        return await self.delete()


async def main():
    publisher = Publisher()
    lines = commands()
    while (command := await asyncio.to_thread(next, lines, None)) is not None:
        try:
            say(**await getattr(publisher, command.pop("do"))(**command))
        except Exception:
            say(**fault())


asyncio.run(main())
sys.exit(0)
