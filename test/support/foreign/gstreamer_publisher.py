"""Publishes a file over WHIP with the webrtcbin of GStreamer, as the test orders line by line. See whip.py."""

import os
import threading
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

from whip import Whip, commands, fault, say  # noqa: E402

CONNECT_DEADLINE_SECS = 20
VIDEO = {
    "VP8": "vp8enc deadline=1 cpu-used=8 target-bitrate=1000000 keyframe-max-dist=2000 ! rtpvp8pay",
    "H264": "x264enc tune=zerolatency speed-preset=ultrafast bitrate=1000 key-int-max=2000 threads=1 ! "
    "video/x-h264,profile=constrained-baseline ! rtph264pay config-interval=-1 aggregate-mode=zero-latency",
}


class Publisher:
    def publish(self, server, key, clip, codec, sound, trickle, attach=None):
        """Returns when the peer is connected."""
        start = time.monotonic()
        self.whip = Whip(server, key, attach)
        trickle = trickle and self.whip.may_trickle()
        launch = (
            f'webrtcbin name=peer bundle-policy=max-bundle filesrc location="{clip}" ! decodebin name=file '
            f"file. ! queue ! videoconvert ! clocksync ! valve name=valve ! {VIDEO[codec]} pt=96 ! "
            f"application/x-rtp,media=video,encoding-name={codec},payload=96 ! peer. "
        )
        if sound:
            launch += (
                "file. ! queue ! audioconvert ! audioresample ! clocksync ! opusenc ! rtpopuspay pt=97 ! "
                "application/x-rtp,media=audio,encoding-name=OPUS,payload=97 ! peer. "
            )
        self.pipeline = Gst.parse_launch(launch)
        self.peer = self.pipeline.get_by_name("peer")
        self.valve = self.pipeline.get_by_name("valve")
        self.states = {}
        self.promises = []
        for direction in range(2 if sound else 1):
            self.peer.emit("get-transceiver", direction).props.direction = (
                GstWebRTC.WebRTCRTPTransceiverDirection.SENDONLY
            )
        happened = threading.Condition()
        candidates = []

        def on_change(peer, spec):
            with happened:
                self.states[spec.name] = peer.get_property(spec.name).value_nick
                happened.notify_all()

        def on_candidate(_, section, candidate):
            with happened:
                candidates.append((section, candidate))
                happened.notify_all()

        def wait_for(what, condition):
            with happened:
                if not happened.wait_for(condition, CONNECT_DEADLINE_SECS):
                    raise TimeoutError(f"never: {what}; {self.states}")

        needed = threading.Event()
        self.peer.connect("on-negotiation-needed", lambda _: needed.set())
        self.peer.connect("on-ice-candidate", on_candidate)
        for name in ("ice-gathering-state", "connection-state", "ice-connection-state"):
            self.peer.connect(f"notify::{name}", on_change)
        self.pipeline.set_state(Gst.State.PLAYING)
        if not needed.wait(CONNECT_DEADLINE_SECS):
            raise TimeoutError("never: negotiation is needed")

        reply = self._promised("create-offer", None)
        offer = reply.get_value("offer")
        self._promised("set-local-description", offer)
        has_gathered = lambda: self.states.get("ice-gathering-state") == "complete"
        if not trickle:
            wait_for("all candidates are there", has_gathered)
        sdp = self.peer.get_property("local-description").sdp.as_text() if not trickle else offer.sdp.as_text()
        answer = self.whip.offer(sdp)
        _, message = GstSdp.SDPMessage.new_from_text(answer)
        description = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, message)
        self._promised("set-remote-description", description)
        sent = 0
        while trickle:
            wait_for("a candidate, or the last one", lambda: len(candidates) > sent or has_gathered())
            with happened:
                found, is_all = candidates[sent:], has_gathered()
            for section, candidate in found:
                self.whip.trickle(sdp, section, [candidate])
            sent += len(found)
            if is_all and sent == len(candidates):
                self.whip.trickle(sdp, 0, [])
                break
        ended = ("connected", "failed", "closed")
        wait_for("the peer is connected", lambda: self.states.get("connection-state") in ended)
        return {
            "state": self.states["connection-state"],
            "run_id": self.whip.run_id,
            "session_id": self.whip.location.split("/")[-1],
            "trickled": self.whip.statuses,
            "connect_ms": round((time.monotonic() - start) * 1000),
        }

    def _promised(self, signal, argument):
        promise = Gst.Promise.new()
        self.peer.emit(signal, argument, promise)
        promise.wait()
        self.promises.append(promise)  # which owns what is in its reply
        reply = promise.get_reply()
        if reply is not None and reply.has_field("error"):
            raise RuntimeError(f"{signal}: {reply.to_string()}")
        return reply

    def pause(self):
        """No more pictures; reports and connection checks go on."""
        self.valve.set_property("drop", True)
        return {}

    def resume(self):
        self.valve.set_property("drop", False)
        return {}

    def prompt(self, prompt):
        return {"status": self.whip.prompt(prompt)}

    def close(self):
        self.pipeline.set_state(Gst.State.NULL)
        return {}

    def delete(self):
        return {"status": self.whip.delete()}

    def close_and_delete(self):
        """In the order of many clients: the peer first, then the resource."""
        self.close()
        return self.delete()


def main():
    Gst.init(None)
    threading.Thread(target=GLib.MainLoop().run, daemon=True).start()
    publisher = Publisher()
    for command in commands():
        try:
            say(**getattr(publisher, command.pop("do"))(**command))
        except Exception:
            say(**fault())


main()
os._exit(0)  # an open pipeline would hold the process
