"""The HTTP/2 of the gRPC listener on uvicorn, against clients that do not mean well: real sockets."""

import asyncio
import struct
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import pytest
from starlette.types import Receive, Scope, Send

from collector.asgi_server import AsgiServer
from collector.clock import ManualClock
from collector.http2_connection import MAX_IDLE_FRAMES, Http2Connection

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _CONTINUATION = 0, 1, 3, 4, 6, 7, 9
_END_STREAM, _END_HEADERS = 1, 4
_POST = b"\x83\x86\x04\x02/a\x01\x01x"  # :method, :scheme, :path and :authority


class _Application:
    """Answers with the size of the body."""

    def __init__(self) -> None:
        self.begun = 0
        self.disconnected = asyncio.Event()
        self.release = asyncio.Event()
        self.release.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun += 1
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected.set()
                return
            size += len(message["body"])
            if not message["more_body"]:
                break
        await self.release.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [], "trailers": True})
        await send({"type": "http.response.body", "body": str(size).encode()})
        await send({"type": "http.response.trailers", "headers": [(b"done", b"1")]})


class _Client:
    """A connection on which frames can be written as they should not be."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS))

    async def write(self, data: bytes) -> None:
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def until(self, kind: int) -> tuple[int, bytes]:
        """Stream and content of the next frame of that kind."""
        async with asyncio.timeout(20):
            while True:
                head = await self.reader.readexactly(9)
                stream = int.from_bytes(head[5:])
                content = await self.reader.readexactly(int.from_bytes(head[:3]))
                if head[3] == kind:
                    return stream, content

    async def error_code(self) -> int:
        """Of the GOAWAY with which the server ended the connection; -1: it was cut."""
        try:
            _, content = await self.until(_GOAWAY)
        except (asyncio.IncompleteReadError, ConnectionError):
            return -1
        return int.from_bytes(content[4:8])


class Served:
    def __init__(self, timeout: float) -> None:
        self.application = _Application()
        self.clock = ManualClock()
        self.server = AsgiServer(
            self.application,
            "127.0.0.1",
            0,
            connection=Http2Connection,
            request_timeout_seconds=timeout,
            clock=self.clock,
        )
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> _Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        self.writers.append(writer)
        return _Client(reader, writer)

    async def answers(self) -> bool:
        """Whether an ordinary request is answered."""
        client = await self.connect()
        await client.write(_request(1, b"abc"))
        return await client.until(_DATA) == (1, b"3")


@pytest.fixture
async def serve() -> AsyncIterator[Callable[[float], Served]]:
    served: list[Served] = []

    def make(timeout: float = 60.0) -> Served:
        served.append(Served(timeout))
        return served[-1]

    yield make
    for one in served:
        for writer in one.writers:
            writer.close()
        await one.server.shutdown(0.0)


def _frame(kind: int, flags: int = 0, stream: int = 0, content: bytes = b"") -> bytes:
    return len(content).to_bytes(3) + struct.pack(">BBI", kind, flags, stream) + content


def _request(stream: int, body: bytes) -> bytes:
    return _frame(_HEADERS, _END_HEADERS, stream, _POST) + _frame(_DATA, _END_STREAM, stream, body)


def _reset(stream: int) -> bytes:
    return _frame(_HEADERS, _END_HEADERS, stream, _POST) + _frame(_RST_STREAM, 0, stream, b"\0\0\0\x08")


async def test_a_request_is_answered_with_trailers(serve: Callable[..., Served]) -> None:
    served = serve()
    await served.server.start()

    client = await served.connect()
    await client.write(
        _frame(_HEADERS, _END_HEADERS, 1, _POST + b"\x00\x02te\x08trailers")
        + _frame(_DATA, _END_STREAM, 1, b"x" * 1000)
    )
    answer = await client.until(_DATA)
    trailers = await client.until(_HEADERS)

    assert (1, b"1000") == answer
    assert b"done" in trailers[1]


@pytest.mark.parametrize(
    "frames",
    [
        [_frame(_PING, content=bytes(8))] * 2 * MAX_IDLE_FRAMES,
        [_frame(_SETTINGS)] * 2 * MAX_IDLE_FRAMES,
        [_reset(stream) for stream in range(1, 4 * MAX_IDLE_FRAMES, 2)],
        [_frame(_HEADERS, 0, 1, _POST)] + [_frame(_CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 1000)] * 1000,
        [_frame(_HEADERS, _END_HEADERS, 1, _POST + b"\x00\x01a\x7f\x81\xff\x03" + b"b" * 65536)],
    ],
    ids=["pings", "settings", "rapid resets", "continuations", "oversized frame"],
)
async def test_floods_end_the_connection_and_harm_nobody_else(
    serve: Callable[..., Served], frames: list[bytes]
) -> None:
    served = serve()
    await served.server.start()
    client = await served.connect()
    flood = asyncio.ensure_future(client.write(b"".join(frames)))

    code = await client.error_code()

    assert code != 0
    assert await served.answers()
    await flood


async def test_empty_data_is_nothing(serve: Callable[..., Served]) -> None:
    served = serve()
    await served.server.start()
    client = await served.connect()
    empty = _frame(_DATA, 0, 1) * 2 * MAX_IDLE_FRAMES

    await client.write(
        _frame(_HEADERS, _END_HEADERS, 1, _POST) + empty + _frame(_DATA, _END_STREAM, 1, b"abc")
    )

    assert (1, b"3") == await client.until(_DATA)


async def test_streams_beyond_the_limit_are_refused(serve: Callable[..., Served]) -> None:
    served = serve()
    await served.server.start()
    client = await served.connect()
    await client.write(b"".join(_frame(_HEADERS, _END_HEADERS, stream, _POST) for stream in range(1, 401, 2)))

    stream, code = await client.until(_RST_STREAM)

    assert stream == 2 * 128 + 1
    assert code == b"\0\0\0\x07"  # REFUSED_STREAM
    assert served.application.begun == 128
    assert await served.answers()


async def test_a_client_that_does_not_read_is_not_read_either(serve: Callable[..., Served]) -> None:
    served = serve(0.2)
    await served.server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port, limit=1024)
    served.writers.append(writer)
    client = _Client(reader, writer)
    # Answered requests, so that it is no flood of frames; headers whose answers are larger than they are.
    request = _frame(_HEADERS, _END_HEADERS | _END_STREAM, 1, _POST)
    tracemalloc.start()
    try:
        requests = b"".join(request[:5] + stream.to_bytes(4) + request[9:] for stream in range(1, 400_001, 2))
        before = tracemalloc.get_traced_memory()[0]
        flood = asyncio.ensure_future(client.write(requests))
        await asyncio.wait((flood,), timeout=20)
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert held < len(requests) + (4 << 20)
    assert await served.answers()
    flood.cancel()


async def test_a_request_that_never_arrives_whole_is_reset(serve: Callable[..., Served]) -> None:
    served = serve(0.05)
    await served.server.start()
    client = await served.connect()
    await client.write(
        _request(1, b"ab") + _frame(_HEADERS, _END_HEADERS, 3, _POST) + _frame(_DATA, 0, 3, b"half")
    )

    stream, code = await client.until(_RST_STREAM)
    await client.write(_request(5, b"abcd"))
    answer = await client.until(_DATA)

    assert (3, b"\0\0\0\x08") == (stream, code)  # CANCEL
    assert (5, b"4") == answer
    assert served.application.disconnected.is_set()


async def test_a_connection_without_a_request_is_cut(serve: Callable[..., Served]) -> None:
    served = serve(0.05)
    await served.server.start()
    client = await served.connect()

    assert await client.error_code() == -1


async def test_what_is_not_http2_is_cut(serve: Callable[..., Served]) -> None:
    served = serve()
    await served.server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
    served.writers.append(writer)

    writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
    async with asyncio.timeout(10):
        await reader.read()

    assert await served.answers()


async def test_shutdown_says_goaway_and_waits_for_the_request_that_runs(serve: Callable[..., Served]) -> None:
    served = serve()
    await served.server.start()
    served.application.release.clear()
    client, idle = await served.connect(), await served.connect()
    await client.write(_request(1, b"abc"))
    await idle.write(_frame(_PING, content=bytes(8)))
    await idle.until(_PING)
    while not served.application.begun:
        await asyncio.sleep(0)

    stopping = asyncio.ensure_future(served.server.shutdown(served.clock.monotonic() + 30))
    goaways = [(await one.until(_GOAWAY))[1] for one in (client, idle)]
    idle.writer.close()
    served.application.release.set()
    answer = await client.until(_DATA)
    client.writer.close()
    await stopping

    assert [b"\x7f\xff\xff\xff\0\0\0\0"] * 2 == goaways  # whatever is on its way is taken, NO_ERROR
    assert (1, b"3") == answer


async def test_a_server_that_stays_sends_clients_away(serve: Callable[..., Served]) -> None:
    served = serve()
    await served.server.start()
    client = await served.connect()
    await client.write(_request(1, b"abc"))
    await client.until(_DATA)

    served.server.send_clients_away()
    await client.until(_GOAWAY)
    await client.write(_request(3, b"late"))

    assert (3, b"4") == await client.until(_DATA)
