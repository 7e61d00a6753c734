"""Senders that do harm: `python -m tests.support.hostile_senders GRPC HTTP SECONDS [--http2-headers]`.

All at once, over and over: requests as fast as they are answered, connections that say a byte a second,
headers without end, streams that are reset, gzip bombs, and the largest requests in parallel. What they did
is printed as one JSON object: kinds and counts.
"""

import asyncio
import gzip
import json
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from tests.support.otlp_senders import EXPORT_METHOD, export_request

CONNECTIONS = 1_000
_MIB = 1 << 20
_FOREIGN = b"\xff"
"""Begins the trace ids of these senders."""
_BOMB = gzip.compress(bytes(256 * _MIB))
_FLOOD_SENDERS, _FLOOD_SPANS = 12, 512
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
_POST = b"".join(
    b"\x00" + bytes([len(key)]) + key + bytes([len(value)]) + value
    for key, value in (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", EXPORT_METHOD.encode()),
        (b":authority", b"a"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    )
)


class HostileSenders:
    """Does all of it until a moment."""

    def __init__(
        self, grpc_endpoint: str, http_endpoint: str, seconds: float, *, http2_headers: bool = False
    ) -> None:
        """With `http2_headers`, headers without end go to the gRPC endpoint as well."""
        self._header_endpoints = [http_endpoint, *([grpc_endpoint] if http2_headers else [])]
        self._grpc = grpc_endpoint
        self._http = http_endpoint
        self._end = time.monotonic() + seconds
        self.done: Counter[str] = Counter()

    async def run(self) -> None:
        large = export_request(1, invalid=1, padding=31 * _MIB)
        many = [self._over_and_over(self._flood) for _ in range(_FLOOD_SENDERS)]
        many += [self._over_and_over(self._dawdle) for _ in range(CONNECTIONS)]
        many += [self._over_and_over(self._send_headers) for _ in range(4)]
        many += [self._over_and_over(self._reset_streams) for _ in range(2)]
        many += [self._over_and_over(lambda: self._post("bombs", _BOMB, gzipped=True)) for _ in range(4)]
        many += [self._over_and_over(lambda: self._call("large", large)) for _ in range(4)]
        many += [self._over_and_over(lambda: self._post("large", large)) for _ in range(4)]
        await asyncio.gather(*many)

    async def _over_and_over(self, attack: Callable[[], Awaitable[None]]) -> None:
        while (left := self._end - time.monotonic()) > 0:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, grpc.aio.AioRpcError):
                async with asyncio.timeout(left):
                    await attack()
            await asyncio.sleep(0)

    async def _flood(self) -> None:
        """Traces that nobody finishes, as fast as they are taken; who is refused comes back at once."""
        spans = [
            Span(
                trace_id=_FOREIGN + random.randbytes(15),
                span_id=random.randbytes(8),
                parent_span_id=random.randbytes(8),
                name="x" * 800,
                start_time_unix_nano=time.time_ns(),
                end_time_unix_nano=time.time_ns(),
            )
            for _ in range(_FLOOD_SPANS)
        ]
        scope = ScopeSpans(spans=spans)
        body = ExportTraceServiceRequest(
            resource_spans=[ResourceSpans(scope_spans=[scope])]
        ).SerializeToString()
        async with self._channel() as channel:
            export = channel.unary_unary(EXPORT_METHOD)
            while True:
                # Other ids each time, in place.
                fresh = body.replace(spans[0].trace_id[:6], _FOREIGN + random.randbytes(5))
                try:
                    await export(fresh)
                except grpc.aio.AioRpcError as error:
                    self.done[f"spans refused ({error.code().name})"] += _FLOOD_SPANS
                else:
                    self.done["spans taken"] += _FLOOD_SPANS

    async def _dawdle(self) -> None:
        """A connection that says a byte a second of a request."""
        endpoint = random.choice((self._grpc, self._http))
        _, writer = await asyncio.open_connection(*endpoint.split(":"))
        self.done["slow connections"] += 1
        head = b"POST /v1/traces HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n"
        try:
            for byte in head if endpoint == self._http else _PREFACE + _headers(1):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(1)
        finally:
            writer.transport.abort()

    async def _send_headers(self) -> None:
        """Headers without end, over HTTP/1.1 and as continuations of HTTP/2."""
        self.done["endless headers"] += 1
        endpoint = random.choice(self._header_endpoints)
        _, writer = await asyncio.open_connection(*endpoint.split(":"))
        try:
            if endpoint == self._http:
                writer.write(b"POST /v1/traces HTTP/1.1\r\nhost: a\r\n")
                piece = b"x-padding: " + b"x" * 60_000 + b"\r\n"
            else:
                writer.write(_PREFACE + _frame(1, 0, 1, _POST))
                piece = _frame(9, 0, 1, b"\x00\x01a\x7f\x81\x7a" + b"b" * 15_744)
            for _ in range(1000):
                writer.write(piece)
                await writer.drain()
        finally:
            writer.transport.abort()

    async def _reset_streams(self) -> None:
        """Requests that are taken back before they are answered, thousands on a connection."""
        _, writer = await asyncio.open_connection(*self._grpc.split(":"))
        try:
            writer.write(_PREFACE)
            for stream in range(1, 20_000, 2):
                writer.write(_headers(stream) + _frame(3, 0, stream, b"\0\0\0\x08"))
                self.done["streams reset"] += 1
                if stream % 100 == 1:
                    await writer.drain()
                    await asyncio.sleep(0)
        finally:
            writer.transport.abort()

    async def _post(self, kind: str, body: bytes, *, gzipped: bool = False) -> None:
        reader, writer = await asyncio.open_connection(*self._http.split(":"))
        encoding = "content-encoding: gzip\r\n" if gzipped else ""
        head = (
            "POST /v1/traces HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-protobuf\r\n"
            f"{encoding}content-length: {len(body)}\r\n\r\n"
        )
        try:
            writer.write(head.encode() + body)
            answer = await reader.readline()
            self.done[f"{kind}: {answer.decode().strip()}"] += 1
        finally:
            writer.transport.abort()

    async def _call(self, kind: str, body: bytes) -> None:
        async with self._channel() as channel:
            try:
                await channel.unary_unary(EXPORT_METHOD)(body)
            except grpc.aio.AioRpcError as error:
                self.done[f"{kind}: {error.code().name}"] += 1
            else:
                self.done[f"{kind}: OK"] += 1

    def _channel(self) -> grpc.aio.Channel:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
        return grpc.aio.insecure_channel(self._grpc, options=options)


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3) + struct.pack(">BBI", kind, flags, stream) + content


def _headers(stream: int) -> bytes:
    return _frame(1, 4, stream, _POST)


async def _main(grpc_endpoint: str, http_endpoint: str, seconds: str, *more: str) -> None:
    senders = HostileSenders(grpc_endpoint, http_endpoint, float(seconds), http2_headers=bool(more))
    await senders.run()
    print(json.dumps(senders.done))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
