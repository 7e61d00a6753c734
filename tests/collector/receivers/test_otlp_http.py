import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import aiohttp
import orjson
import pytest
from google.rpc import status_pb2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.clock import ManualClock
from collector.otlp import request_to_json
from collector.receivers import ServerAuthConfig
from collector.receivers.otlp_http import DISCONNECTED, HttpServerConfig, OtlpHttpReceiver
from collector.telemetry import Metrics
from tests.support.backends import eventually
from tests.support.otlp_senders import SpanSink, export_request

_LIMIT = 1 << 20
_PROTOBUF = "application/x-protobuf"
_JSON = "application/json"


class Served:
    """A started receiver and a client."""

    def __init__(self) -> None:
        self.sink = SpanSink()
        self.metrics = Metrics()
        self.clock = ManualClock()
        config = HttpServerConfig(endpoint="127.0.0.1:0", max_request_bytes=_LIMIT)
        self.receiver = OtlpHttpReceiver(
            config, self.sink, self.metrics, clock=self.clock, random=lambda: 0.5
        )
        self.session: aiohttp.ClientSession
        self.connections: list[asyncio.StreamWriter] = []

    def requests(self, code: str) -> float:
        return self.metrics.requests.value("http", code)

    async def request(
        self,
        method: str = "POST",
        path: str = "/v1/traces",
        body: bytes = b"",
        **headers: str,
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        """Send a request; underscores in the names of headers stand for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"http://{self.receiver.endpoint}{path}"
        skipped = ["content-type"]
        async with self.session.request(
            method, url, data=body, headers=named, skip_auto_headers=skipped
        ) as response:
            return response, await response.read()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self.receiver.endpoint.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        self.connections.append(writer)
        return reader, writer

    async def until_counted(self, code: str) -> None:
        async with asyncio.timeout(10):
            while not self.requests(code):
                await asyncio.sleep(0)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    await served.receiver.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(served.receiver.shutdown, 0.0)
        served.session = await stack.enter_async_context(aiohttp.ClientSession())
        yield served
        for writer in served.connections:
            await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


def _head(length: int | None, **headers: str) -> bytes:
    lines = ["POST /v1/traces HTTP/1.1", "host: test", f"content-type: {_PROTOBUF}"]
    lines.append("transfer-encoding: chunked" if length is None else f"content-length: {length}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize(
    "content_type",
    [
        _PROTOBUF,
        "application/x-protobuf; charset=utf-8",
        "Application/X-Protobuf",
        " application/x-protobuf ;x=y",
    ],
)
async def test_protobuf_is_answered_in_protobuf(served: Served, content_type: str) -> None:
    response, body = await served.request(body=export_request(), content_type=content_type)

    assert (response.status, body) == (200, b"")
    assert response.headers["content-type"] == _PROTOBUF


@pytest.mark.parametrize("content_type", [_JSON, "application/json; charset=utf-8", "APPLICATION/JSON"])
async def test_json_is_answered_in_json(served: Served, content_type: str) -> None:
    request = export_request(2)

    response, body = await served.request(body=request_to_json(request), content_type=content_type)

    assert (response.status, body) == (200, b"{}")
    assert response.headers["content-type"] == _JSON
    assert served.sink.bodies == [request]


async def test_partial_success_in_json_names_the_number_as_text(served: Served) -> None:
    body = request_to_json(export_request(1, invalid=2))

    response, answer = await served.request(body=body, content_type=_JSON)

    assert response.status == 200
    assert {
        "partialSuccess": {"rejectedSpans": "2", "errorMessage": "2 spans have invalid ids."}
    } == orjson.loads(answer)


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "Content-Type must be application/x-protobuf or application/json, not missing."),
        (
            {"content_type": "text/plain"},
            "Content-Type must be application/x-protobuf or application/json, not text/plain.",
        ),
        (
            {"content_type": "application/grpc"},
            "Content-Type must be application/x-protobuf or application/json, not application/grpc.",
        ),
    ],
)
async def test_other_content_types_are_415(served: Served, headers: dict[str, str], message: str) -> None:
    response, body = await served.request(body=export_request(), **headers)

    assert response.status == 415
    assert response.headers["content-type"] == _JSON
    assert message == orjson.loads(body)["message"]
    assert served.requests("415") == 1


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
async def test_other_content_encodings_are_415_in_the_encoding_of_the_request(
    served: Served, encoding: str
) -> None:
    response, body = await served.request(
        body=export_request(), content_type=_PROTOBUF, content_encoding=encoding
    )

    assert response.status == 415
    assert response.headers["content-type"] == _PROTOBUF
    assert f"Content-Encoding must be gzip or identity, not {encoding}." == (
        status_pb2.Status.FromString(body).message
    )


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", " gzip "])
async def test_gzip_is_inflated(served: Served, encoding: str) -> None:
    request = export_request(20)

    response, _ = await served.request(
        body=gzip.compress(request), content_type=_PROTOBUF, content_encoding=encoding
    )

    assert response.status == 200
    assert served.sink.bodies == [request]


async def test_identity_is_no_encoding(served: Served) -> None:
    response, _ = await served.request(
        body=export_request(), content_type=_PROTOBUF, content_encoding="identity"
    )

    assert response.status == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"])
async def test_other_methods_are_405_and_told_what_is_allowed(served: Served, method: str) -> None:
    response, body = await served.request(method)

    assert response.status == 405
    assert response.headers["allow"] == "POST"
    if method != "HEAD":
        assert f"{method} is not allowed; export requests are sent by POST." == orjson.loads(body)["message"]


@pytest.mark.parametrize("path", ["/", "/v1/profiles", "/v1/logs/", "/v1/traces/", "/v1/Traces", "/metrics"])
async def test_other_paths_are_404(served: Served, path: str) -> None:
    response, body = await served.request(path=path, body=export_request(), content_type=_PROTOBUF)

    assert response.status == 404
    assert (
        f"There is no {path} here; send traces to /v1/traces and logs to /v1/logs."
        == status_pb2.Status.FromString(body).message
    )


async def test_a_query_is_no_other_path(served: Served) -> None:
    response, _ = await served.request(path="/v1/traces?x=y", body=export_request(), content_type=_PROTOBUF)

    assert response.status == 200


async def test_unauthenticated_senders_are_told_the_scheme(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("secret\n")
    auth = ServerAuthConfig(bearer_token_file=tokens)
    receiver = OtlpHttpReceiver(HttpServerConfig(endpoint="127.0.0.1:0", auth=auth), SpanSink(), Metrics())
    await receiver.start()

    try:
        url = f"http://{receiver.endpoint}/v1/traces"
        headers = {"content-type": _PROTOBUF}
        async with aiohttp.ClientSession() as session, session.post(url, headers=headers) as response:
            scheme = response.headers["www-authenticate"]
    finally:
        await receiver.shutdown(0.0)

    assert response.status == 401
    assert scheme == "Bearer"


async def test_half_a_request_is_dropped_and_counted(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    _, writer = await served.connect()
    writer.write(_head(1000) + b"half")
    await writer.drain()
    await _close(writer)

    await served.until_counted(DISCONNECTED)

    assert served.sink.bodies == []
    assert caplog.records == []
    assert (await served.request(body=b"", content_type=_PROTOBUF))[0].status == 200


async def test_an_announced_length_over_the_limit_is_413_before_the_body_is_sent(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(_head(_LIMIT + 1))

    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in head
    assert served.requests("413") == 1


async def test_a_chunked_body_that_never_ends_is_cut_off(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(_head(None))
    chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"

    sent = 0
    answer = b""
    async with asyncio.timeout(30):
        with suppress(ConnectionError):
            while not reader.at_eof() and sent < 1000:
                writer.write(chunk)
                await writer.drain()
                sent += 1
        with suppress(ConnectionError):
            answer = await reader.read()

    assert sent < 1000
    assert served.requests("413") == 1
    assert not answer or answer.startswith(b"HTTP/1.1 413 ")


async def test_a_chunked_body_is_put_together(served: Served) -> None:
    request = export_request(1, padding=300_000)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(request), 70_000):
            yield request[start : start + 70_000]

    async with served.session.post(
        f"http://{served.receiver.endpoint}/v1/traces", data=pieces(), headers={"content-type": _PROTOBUF}
    ) as response:
        status = response.status

    assert status == 200
    assert served.sink.bodies == [request]


async def test_a_connection_outlives_a_refused_request(served: Served) -> None:
    reader, writer = await served.connect()

    writer.write(_head(3) + b"\xff\xff\xff")
    first = await reader.readuntil(b"\r\n\r\n")
    length = int(first.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    await reader.readexactly(length)
    writer.write(_head(0))
    second = await reader.readuntil(b"\r\n\r\n")

    assert first.startswith(b"HTTP/1.1 400 ")
    assert second.startswith(b"HTTP/1.1 200 ")


async def test_large_bodies_beyond_what_may_be_received_at_once_wait(served: Served) -> None:
    connections = [await served.connect() for _ in range(9)]
    answers = [asyncio.ensure_future(reader.readuntil(b"\r\n\r\n")) for reader, _ in connections]

    for _, writer in connections:
        writer.write(_head(_LIMIT) + bytes(_LIMIT - 1))
    budget = served.receiver._budget
    await eventually(lambda: budget.used_bytes > budget.max_bytes - 2 * _LIMIT, "the budget is used up")
    used = budget.used_bytes
    for _, writer in connections:
        writer.write(b"x")
    async with asyncio.timeout(20):
        found = await asyncio.gather(*answers)

    assert used <= budget.max_bytes == 4 * _LIMIT
    assert [b"HTTP/1.1 400"] * 9 == [answer[:12] for answer in found], "none is refused for want of room"
    assert 0 == budget.used_bytes


async def test_json_too_large_for_the_loop_is_converted_beside_it(served: Served) -> None:
    request = export_request(4000)
    data = request_to_json(request)

    response, _ = await served.request(body=data, content_type=_JSON)

    assert len(data) > 256 * 1024
    assert response.status == 200
    assert ExportTraceServiceRequest.FromString(request) == ExportTraceServiceRequest.FromString(
        served.sink.bodies[0]
    )


async def test_shutdown_lets_a_request_finish(served: Served) -> None:
    reader, writer = await served.connect()
    body = export_request(3)
    writer.write(_head(len(body), expect="100-continue"))
    await reader.readuntil(b"100 Continue\r\n\r\n")

    stopping = asyncio.ensure_future(served.receiver.shutdown(served.clock.monotonic() + 30))
    await asyncio.sleep(0)
    writer.write(body)
    answer = await reader.read()
    await stopping

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert served.sink.spans == 3


async def test_shutdown_cuts_a_request_off_at_the_deadline(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(_head(1000, expect="100-continue"))
    await reader.readuntil(b"100 Continue\r\n\r\n")

    stopping = asyncio.ensure_future(served.receiver.shutdown(served.clock.monotonic() + 30))
    async with asyncio.timeout(10):
        while not stopping.done():
            served.clock.advance(30)
            await asyncio.sleep(0)

    assert served.sink.bodies == []


def test_the_defaults_listen_on_this_machine_only() -> None:
    config = HttpServerConfig()

    assert config.endpoint == "127.0.0.1:4318"
    assert config.max_request_bytes == 67108864


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example:4318", "origin": "http://evil.example:4318"}, 403),
        ({"host": "localhost:4318", "origin": "http://localhost:3000"}, 200),
        ({"origin": "https://app.example"}, 200),  # a proxy answers for CORS and names its upstream
        ({"host": "collector.internal:4318"}, 200),
    ],
)
async def test_no_site_sends_traces_by_a_browser(
    served: Served, headers: dict[str, str], status: int
) -> None:
    response, body = await served.request(body=export_request(), content_type=_PROTOBUF, **headers)

    assert (status, len(served.sink.bodies)) == (response.status, int(status == 200))
    assert (b"evil.example" in body) == (status == 403)


async def test_a_listener_with_tokens_takes_them_from_any_site(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("secret\n")
    config = HttpServerConfig(
        endpoint="127.0.0.1:0", auth=ServerAuthConfig(bearer_token_file=tmp_path / "tokens")
    )
    receiver = OtlpHttpReceiver(config, SpanSink(), Metrics())
    await receiver.start()
    headers = {
        "host": "app.example",
        "origin": "https://app.example",
        "authorization": "Bearer secret",
        "content-type": _PROTOBUF,
    }
    url = f"http://{receiver.endpoint}/v1/traces"
    async with aiohttp.ClientSession() as session, session.post(url, data=b"", headers=headers) as response:
        assert 200 == response.status
    await receiver.shutdown(0.0)
