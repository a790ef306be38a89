"""A camera: the RTSP server of GStreamer with a moving test picture and a tone, as the test orders. See whip.py."""

import os
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

from whip import commands, fault, say  # noqa: E402

PICTURES = (
    "videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=180,framerate=25/1 ! "
    "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=50 threads=1 ! rtph264pay name=pay0 pt=96"
)
TONE = "audiotestsrc is-live=true freq=440 ! audioconvert ! audioresample"
SOUND = {
    "pcmu": f"{TONE} ! audio/x-raw,rate=8000,channels=1 ! mulawenc ! rtppcmupay name=pay1 pt=0",
    "aac": f"{TONE} ! audio/x-raw,rate=48000,channels=2 ! voaacenc ! aacparse ! rtpmp4gpay name=pay1 pt=97",
    "none": "",
}


class Camera:
    def __init__(self):
        self.server = None

    def serve(self, sound, transport="tcp", port=0, user=None, password=None):
        """Serves `/dock` on loopback; a password is asked for by digest."""
        self.server = GstRtspServer.RTSPServer()
        self.server.set_address("127.0.0.1")
        self.server.set_service(str(port))
        factory = GstRtspServer.RTSPMediaFactory()
        factory.set_launch(f"( {PICTURES} {SOUND[sound]} )")
        factory.set_shared(True)
        transports = {"tcp": GstRtsp.RTSPLowerTrans.TCP, "udp": GstRtsp.RTSPLowerTrans.UDP}
        factory.set_protocols(transports[transport])
        if user:
            auth = GstRtspServer.RTSPAuth()
            auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
            token = GstRtspServer.RTSPToken()
            token.set_string("media.factory.role", "viewer")
            auth.add_digest(user, password, token)
            self.server.set_auth(auth)
            factory.add_role_from_structure(
                Gst.Structure.from_string("viewer,media.factory.access=true,media.factory.construct=true")[0]
            )
        self.server.get_mount_points().add_factory("/dock", factory)
        self.source = self.server.attach(None)
        return {"port": self.server.get_bound_port()}

    def drop_clients(self):
        """Ends every connection, as a camera does that starts anew."""
        gone = self.server.client_filter(lambda *_: GstRtspServer.RTSPFilterResult.REMOVE)
        return {"dropped": len(gone or [])}


def main():
    Gst.init(None)
    threading.Thread(target=GLib.MainLoop().run, daemon=True).start()
    camera = Camera()
    for command in commands():
        try:
            say(**getattr(camera, command.pop("do"))(**command))
        except Exception:
            say(**fault())


main()
os._exit(0)  # the server would go on
