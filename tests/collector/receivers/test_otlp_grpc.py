import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from pydantic import ValidationError

from collector.clock import ManualClock
from collector.receivers.otlp_grpc import (
    LOGS_SERVICE,
    METRICS_SERVICE,
    TRACE_SERVICE,
    GrpcServerConfig,
    OtlpGrpcReceiver,
)
from collector.receivers.otlp_grpc_uvicorn import UvicornGrpcReceiver
from collector.telemetry import Metrics
from tests.support.otlp_senders import GrpcSender, SpanSink, export_request

_LIMIT = 1 << 20
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Served:
    """A started receiver and a client."""

    def __init__(self, server: str) -> None:
        self.sink = SpanSink()
        self.metrics = Metrics()
        self.clock = ManualClock()
        config = GrpcServerConfig(endpoint="127.0.0.1:0", max_request_bytes=_LIMIT)
        receiver = UvicornGrpcReceiver if server == "uvicorn" else OtlpGrpcReceiver
        self.receiver = receiver(config, self.sink, self.metrics, clock=self.clock, random=lambda: 0.5)
        self.sender: GrpcSender

    def requests(self, code: str) -> float:
        return self.metrics.requests.value("grpc", code)

    async def health(self, service: str) -> int:
        stub = health_pb2_grpc.HealthStub(self.sender.channel)
        response = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        return int(response.status)


@pytest.fixture(params=["grpcio", "uvicorn"])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    served = Served(request.param)
    await served.receiver.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(served.receiver.shutdown, 0.0)
        served.sender = await stack.enter_async_context(GrpcSender(served.receiver.endpoint))
        yield served


class HeldCall:
    """A call whose headers are sent at once and its message when `release` is set."""

    def __init__(self, sender: GrpcSender) -> None:
        self.begun = asyncio.Event()
        self.release = asyncio.Event()
        self.answer = asyncio.ensure_future(sender.stream(self._messages()))

    async def _messages(self) -> AsyncIterator[bytes]:
        self.begun.set()
        await self.release.wait()
        yield export_request(4)


async def _held_call(served: Served) -> HeldCall:
    """A held call that the server has seen."""
    held = HeldCall(served.sender)
    await held.begun.wait()
    for _ in range(3):  # calls of one connection are seen in the order in which they were made
        await served.health("liveness")
    return held


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_messages_that_grpc_compressed_are_taken(served: Served, compression: grpc.Compression) -> None:
    body = export_request(50, padding=50)

    answer = await served.sender.send_compressed(body, compression)

    assert answer.code == "OK"
    assert served.sink.bodies == [body]


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_messages_that_grpc_compressed_are_limited_by_their_content(
    served: Served, compression: grpc.Compression
) -> None:
    answer = await served.sender.send_compressed(export_request(1, padding=64 * _LIMIT), compression)

    assert answer.code == "RESOURCE_EXHAUSTED"
    assert f"The request has more than the allowed {_LIMIT} bytes after decompression." == answer.message
    assert answer.delays == ()
    assert served.requests("RESOURCE_EXHAUSTED") == 1


async def test_a_message_that_only_looks_like_zlib_goes_to_the_consumer(served: Served) -> None:
    unknown_field = b"x\x9c\x01"  # field 15, varint 156

    answer = await served.sender.send(unknown_field)

    assert answer.code == "OK"
    assert served.sink.bodies == [unknown_field]


async def test_a_message_over_the_limit_is_told_both_sizes(served: Served) -> None:
    body = export_request(1, padding=_LIMIT)

    answer = await served.sender.send(body)

    assert f"The request has {len(body)} bytes, more than the allowed {_LIMIT}." == answer.message
    assert served.requests("RESOURCE_EXHAUSTED") == 1


async def test_a_message_that_grpc_itself_refuses_is_counted_too(served: Served) -> None:
    answer = await served.sender.send(export_request(1, padding=3 * _LIMIT))

    assert answer.code == "RESOURCE_EXHAUSTED"
    assert served.requests("CANCELLED") + served.requests("RESOURCE_EXHAUSTED") == 1


async def test_a_call_without_a_message_is_malformed(served: Served) -> None:
    async def nothing() -> AsyncIterator[bytes]:
        messages: list[bytes] = []
        for message in messages:
            yield message

    answer = await served.sender.stream(nothing())

    assert answer.code == "INVALID_ARGUMENT"
    assert answer.message == "The call carries no message."


async def test_a_sender_that_goes_away_in_the_middle_is_counted(served: Served) -> None:
    held = await _held_call(served)

    held.answer.cancel()
    async with asyncio.timeout(10):
        while not served.requests("CANCELLED"):
            await asyncio.sleep(0)

    assert served.sink.bodies == []
    assert (await served.sender.send(export_request())).code == "OK"


@pytest.mark.parametrize(
    "method",
    [
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
        f"/{TRACE_SERVICE}/Import",
    ],
)
async def test_other_services_are_unimplemented(served: Served, method: str) -> None:
    answer = await served.sender.answer(served.sender.channel.unary_unary(method)(b"", timeout=10))

    assert answer.code == "UNIMPLEMENTED"
    assert f"{method} is not supported; traces and logs are." == answer.message
    assert served.requests("UNIMPLEMENTED") == 1


async def test_health_follows_readiness_and_liveness_is_its_own(served: Served) -> None:
    readiness = ("", TRACE_SERVICE, LOGS_SERVICE, METRICS_SERVICE, "readiness")

    before = [await served.health(service) for service in readiness]
    alive = await served.health("liveness")
    await served.receiver.set_serving(True)
    ready = [await served.health(service) for service in readiness]
    await served.receiver.set_serving(False)
    after = [await served.health(service) for service in readiness]

    assert [_NOT_SERVING] * 5 == before
    assert _SERVING == alive
    assert [_SERVING] * 5 == ready
    assert [_NOT_SERVING] * 5 == after


async def test_shutdown_lets_calls_finish_and_sends_new_ones_away(served: Served) -> None:
    await served.receiver.set_serving(True)
    held = await _held_call(served)

    stopping = asyncio.ensure_future(served.receiver.shutdown(served.clock.monotonic() + 30))
    while await served.health("") == _SERVING:
        await asyncio.sleep(0)
    refused = await served.sender.send(export_request())
    held.release.set()
    finished = await held.answer
    await stopping

    assert refused.code == "UNAVAILABLE"
    assert refused.message == "The service is shutting down; send the request again."
    assert refused.delays == (2.0, 2.0)
    assert finished.code == "OK"
    assert served.sink.spans == 4


async def test_shutdown_cuts_calls_off_at_the_deadline(served: Served) -> None:
    held = await _held_call(served)

    stopping = asyncio.ensure_future(served.receiver.shutdown(served.clock.monotonic() + 30))
    while await served.health("") == _SERVING:
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        while not stopping.done():
            served.clock.advance(30)
            await asyncio.sleep(0)
    answer = await held.answer

    assert answer.code in ("UNAVAILABLE", "CANCELLED")
    assert served.sink.bodies == []


async def test_a_health_watcher_does_not_hold_up_shutdown(served: Served) -> None:
    stub = health_pb2_grpc.HealthStub(served.sender.channel)
    await served.receiver.set_serving(True)
    watch = stub.Watch(health_pb2.HealthCheckRequest(service=""))
    first = await watch.read()

    second = asyncio.ensure_future(watch.read())
    async with asyncio.timeout(10):
        await served.receiver.shutdown(served.clock.monotonic() + 3600)

    assert _SERVING == first.status
    assert _NOT_SERVING == (await second).status


@pytest.mark.parametrize(
    "data", [zlib.compress(b"junk"), gzip.compress(b"junk", mtime=0)], ids=["zlib", "gzip"]
)
async def test_compressed_junk_is_malformed(served: Served, data: bytes) -> None:
    answer = await served.sender.send_raw(data)

    assert answer.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    "wrong",
    [
        {"server": "twisted"},
        {"server": "nghttp2"},
        {"endpoint": "localhost"},
        {"endpoint": "localhost:70000"},
        {"max_request_bytes": 0},
        {"max_request_bytes": 2**31},
        {"tls": {"cert_file": "a.pem"}},
        {"auth": {}},
        {"keepalive": {}},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        GrpcServerConfig.model_validate(wrong)


def test_the_defaults_listen_on_this_machine_only() -> None:
    config = GrpcServerConfig()

    assert config.endpoint == "127.0.0.1:4317"
    assert config.max_request_bytes == 67108864
    assert config.server == "grpcio"
