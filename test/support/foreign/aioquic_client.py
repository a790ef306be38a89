"""Sends requests over HTTP/3 with aioquic, as the test orders line by line. See whip.py."""

import asyncio
import hashlib
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset

from whip import commands, fault, say

ANSWER_DEADLINE_SECS = 30
SHOWN_BYTES = 1_000_000


class Answer:
    def __init__(self):
        self.headers = None
        self.body = bytearray()
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()

    def told(self):
        headers = {name.decode(): value.decode() for name, value in self.headers or []}
        return {
            "status": int(headers.pop(":status", 0)),
            "headers": headers,
            "bytes": len(self.body),
            "sha256": hashlib.sha256(self.body).hexdigest(),
            "text": self.body[:SHOWN_BYTES].decode(errors="replace"),
        }


class Protocol(QuicConnectionProtocol):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.http = H3Connection(self._quic)
        self.answers = {}
        self.ended = asyncio.get_running_loop().create_future()

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            if not self.ended.done():
                self.ended.set_result(event.error_code)
            for answer in self.answers.values():
                answer.ended.set()
                answer.changed.set()
        if isinstance(event, StreamReset) and event.stream_id in self.answers:
            self.answers[event.stream_id].ended.set()
        for http_event in self.http.handle_event(event):
            if not isinstance(http_event, (HeadersReceived, DataReceived)):
                continue
            answer = self.answers[http_event.stream_id]
            if isinstance(http_event, HeadersReceived):
                answer.headers = http_event.headers
            else:
                answer.body += http_event.data
            if http_event.stream_ended:
                answer.ended.set()
            answer.changed.set()

    def begin(self, method, path, headers, body):
        stream_id = self._quic.get_next_available_stream_id()
        self.answers[stream_id] = Answer()
        pseudo = {":method": method, ":scheme": "https", ":authority": "localhost", ":path": path}
        fields = [(name.encode(), value.encode()) for name, value in {**pseudo, **headers}.items()]
        self.http.send_headers(stream_id, fields, end_stream=body is None)
        if body is not None:
            self.http.send_data(stream_id, body, end_stream=True)
        self.transmit()
        return stream_id


class Client:
    async def open(self, port, authority):
        """Connects; `authority` is the PEM text of the certificate to trust."""
        settings = QuicConfiguration(is_client=True, alpn_protocols=["h3"], server_name="127.0.0.1")
        settings.load_verify_locations(cadata=authority.encode())
        self.connecting = connect("127.0.0.1", port, configuration=settings, create_protocol=Protocol)
        self.protocol = await self.connecting.__aenter__()
        return {}

    async def request(self, method, path, headers=None, text=None, file=None):
        body = text.encode() if text is not None else open(file, "rb").read() if file else None
        return (await self._answer(self.protocol.begin(method, path, headers or {}, body))).told()

    async def many(self, count, path, headers=None):
        """So many requests at once; what each is answered."""
        ids = [self.protocol.begin("GET", path, headers or {}, None) for _ in range(count)]
        return {"answers": [(await self._answer(stream_id)).told() for stream_id in ids]}

    async def begin(self, method, path, headers=None, text=None):
        """A request whose answer is not waited for."""
        self.last = self.protocol.begin(method, path, headers or {}, None if text is None else text.encode())
        return {}

    async def follow(self, text):
        """Waits until the answer of the request that was begun has `text` in it."""
        answer = self.protocol.answers[self.last]
        async with asyncio.timeout(ANSWER_DEADLINE_SECS):
            while text.encode() not in answer.body:
                answer.changed.clear()
                await answer.changed.wait()
        return answer.told()

    async def give_up(self):
        """Stops reading the answer of the request that was begun."""
        self.protocol._quic.stop_stream(self.last, ErrorCode.H3_REQUEST_CANCELLED)
        self.protocol.transmit()
        return {}

    async def close(self):
        self.protocol.close(error_code=ErrorCode.H3_NO_ERROR)
        return {}

    async def ended(self):
        """The code with which the server has closed the connection."""
        return {"code": await asyncio.wait_for(self.protocol.ended, ANSWER_DEADLINE_SECS)}

    async def _answer(self, stream_id):
        answer = self.protocol.answers[stream_id]
        await asyncio.wait_for(answer.ended.wait(), ANSWER_DEADLINE_SECS)
        return answer


async def main():
    client = Client()
    lines = commands()
    while (command := await asyncio.to_thread(next, lines, None)) is not None:
        try:
            say(**await getattr(client, command.pop("do"))(**command))
        except Exception:
            say(**fault())


asyncio.run(main())
sys.exit(0)
