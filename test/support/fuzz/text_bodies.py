"""Bodies that are plain text of a media type that schemathesis does not know: they are sent as they were made."""

import schemathesis


@schemathesis.serializer("application/sdp", "application/trickle-ice-sdpfrag")
def plain_text(context, value):
    return str(value).encode("utf-8", errors="replace")
