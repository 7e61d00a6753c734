"""What every receiver owes its senders, whatever the transport."""

import asyncio
import gzip
import itertools
import logging
import re
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http import Compression as HttpCompression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from collector.clock import ManualClock
from collector.errors import Draining, Overloaded, Refusal, StartupError
from collector.otlp.status import UNEXPECTED_ERROR_MESSAGE
from collector.receivers import Receiver, ServerAuthConfig, ServerTlsConfig
from collector.receivers.otlp_grpc import GrpcServerConfig, OtlpGrpcReceiver
from collector.receivers.otlp_grpc_uvicorn import UvicornGrpcReceiver
from collector.receivers.otlp_http import HttpServerConfig, OtlpHttpReceiver
from collector.telemetry import Metrics
from processors.spans import encode_field
from tests.support.otlp_senders import (
    TLS,
    GrpcSender,
    HttpSender,
    Sender,
    SpanSink,
    export_request,
    logs_request,
)

_MIB = 1 << 20
_LIMIT = 1 * _MIB


@dataclass
class Setup:
    """A started receiver and what is around it."""

    receiver: Receiver
    sink: SpanSink
    metrics: Metrics
    clock: ManualClock
    transport: str
    sender: Sender
    connect: Callable[..., Sender]


class Bench:
    """Builds receivers of one transport and closes what it built."""

    def __init__(self, transport: str, stack: AsyncExitStack) -> None:
        self.transport = transport
        self._stack = stack
        self.is_grpc = transport.startswith("grpc")

    def build(
        self,
        sink: SpanSink,
        metrics: Metrics,
        clock: ManualClock,
        *,
        endpoint: str = "127.0.0.1:0",
        tls: ServerTlsConfig | None = None,
        auth: ServerAuthConfig | None = None,
    ) -> Receiver:
        if self.is_grpc:
            config = GrpcServerConfig(endpoint=endpoint, max_request_bytes=_LIMIT, tls=tls, auth=auth)
            server = UvicornGrpcReceiver if self.transport == "grpc-uvicorn" else OtlpGrpcReceiver
            return server(config, sink, metrics, clock=clock, random=lambda: 0.5)
        http = HttpServerConfig(endpoint=endpoint, max_request_bytes=_LIMIT, tls=tls, auth=auth)
        return OtlpHttpReceiver(http, sink, metrics, clock=clock, random=lambda: 0.5)

    async def start(
        self,
        *,
        tls: ServerTlsConfig | None = None,
        auth: ServerAuthConfig | None = None,
        token: str | None = None,
    ) -> Setup:
        sink, metrics, clock = SpanSink(), Metrics(), ManualClock()
        receiver = self.build(sink, metrics, clock, tls=tls, auth=auth)
        await receiver.start()
        self._stack.push_async_callback(receiver.shutdown, clock.monotonic())
        port = receiver.endpoint.rpartition(":")[2]

        def connect(token: str | None = token, tls: str | None = None) -> Sender:
            address = f"localhost:{port}" if tls else receiver.endpoint
            if self.is_grpc:
                return GrpcSender(address, token, tls)
            return HttpSender(address, token, tls, json=self.transport == "http-json")

        sender = await self._stack.enter_async_context(connect())
        return Setup(receiver, sink, metrics, clock, self.transport.partition("-")[0], sender, connect)


@pytest.fixture(params=["grpc", "grpc-uvicorn", "http", "http-json"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        yield Bench(request.param, stack)


@pytest.fixture
async def setup(bench: Bench) -> Setup:
    return await bench.start()


def _same_request(left: bytes, right: bytes) -> bool:
    return ExportTraceServiceRequest.FromString(left) == ExportTraceServiceRequest.FromString(right)


@pytest.mark.parametrize("compress", [False, True])
async def test_full_success_leaves_partial_success_unset(setup: Setup, compress: bool) -> None:
    body = export_request(3, padding=100)

    answer = await setup.sender.send(body, compress=compress)

    assert answer.code == "OK"
    assert not answer.has_partial_success
    assert _same_request(body, setup.sink.bodies[0])
    assert setup.metrics.requests.value(setup.transport, answer.transport_code) == 1


@pytest.mark.parametrize("compress", [False, True])
async def test_log_records_are_received_like_spans(setup: Setup, compress: bool) -> None:
    body = logs_request(3, padding=100)

    answer = await setup.sender.send(body, compress=compress, signal="logs")

    assert answer.code == "OK"
    assert not answer.has_partial_success
    assert [body] == setup.sink.log_bodies
    assert setup.sink.bodies == []
    assert setup.metrics.requests.value(setup.transport, answer.transport_code) == 1


async def test_log_records_of_a_long_request_are_received(bench: Bench) -> None:
    setup = await bench.start()
    body = logs_request(1000, padding=700)

    answer = await setup.sender.send(body, signal="logs")

    assert answer.code == "OK"
    assert [body] == setup.sink.log_bodies


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"{]", b"\x1f\x8b\x08junk"])
async def test_malformed_log_records_are_refused_for_good(setup: Setup, data: bytes) -> None:
    answer = await setup.sender.send_raw(data, signal="logs")

    assert answer.code == "INVALID_ARGUMENT"
    assert setup.sink.log_bodies == []


async def test_log_records_are_refused_as_the_consumer_decides(setup: Setup) -> None:
    setup.sink.error = Overloaded("full")

    answer = await setup.sender.send(logs_request(), signal="logs")

    assert answer.code == "UNAVAILABLE"
    assert answer.message == "full"
    assert answer.delays


async def test_log_records_need_credentials_as_spans_do(bench: Bench, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("secret\n")
    setup = await bench.start(auth=ServerAuthConfig(bearer_token_file=tokens), token="wrong")

    answers = [await setup.sender.send(b"", signal=signal) for signal in ("logs", "metrics")]

    assert ["UNAUTHENTICATED"] * 2 == [answer.code for answer in answers]
    assert setup.sink.log_bodies == []


async def test_metrics_are_acknowledged_and_discarded(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    answers = [await setup.sender.send_raw(b"whatever it is", signal="metrics") for _ in range(2)]

    assert ["OK"] * 2 == [answer.code for answer in answers]
    assert not any(answer.has_partial_success for answer in answers)
    assert setup.metrics.metrics_requests_discarded.value(setup.transport) == 2
    assert setup.sink.bodies == setup.sink.log_bodies == []
    assert 1 == sum("Metrics are acknowledged" in record.message for record in caplog.records)


async def test_metrics_over_the_limit_are_refused(setup: Setup) -> None:
    answer = await setup.sender.send_raw(bytes(3 * _LIMIT), signal="metrics")

    assert answer.code == "RESOURCE_EXHAUSTED"


async def test_spans_with_invalid_ids_are_told_as_partial_success(setup: Setup) -> None:
    answer = await setup.sender.send(export_request(2, invalid=3))

    assert answer.code == "OK"
    assert answer.rejected == 3
    assert answer.message == "3 spans have invalid ids."
    assert setup.sink.spans == 2


@pytest.mark.parametrize("compress", [False, True])
async def test_an_empty_request_succeeds(setup: Setup, compress: bool) -> None:
    answer = await setup.sender.send(b"", compress=compress)

    assert answer.code == "OK"
    assert not answer.has_partial_success
    assert setup.sink.bodies == [b""]


@pytest.mark.parametrize("data", [b"\xff\xff\xff", b"{]", b"\x1f\x8b\x08junk", b"\x0a\xff\xff\xff\xff\x0f"])
async def test_malformed_bytes_are_refused_for_good(setup: Setup, data: bytes) -> None:
    answer = await setup.sender.send_raw(data)

    assert answer.code == "INVALID_ARGUMENT"
    assert answer.details == ("google.rpc.BadRequest",)
    assert answer.delays == ()
    assert answer.message
    assert setup.sink.bodies == []
    assert setup.metrics.requests.value(setup.transport, answer.transport_code) == 1


@pytest.mark.parametrize("cut", [3, 12, -9, -1])
async def test_broken_gzip_is_refused_for_good(setup: Setup, cut: int) -> None:
    answer = await setup.sender.send_raw(gzip.compress(export_request(9))[:cut], is_gzip=True)

    assert answer.code == "INVALID_ARGUMENT"
    assert answer.message == "The gzip data ends early."


@pytest.mark.parametrize("compress", [False, True])
async def test_a_request_of_exactly_the_limit_is_taken(setup: Setup, compress: bool) -> None:
    overhead = len(setup.sender.encode(export_request(1, padding=_LIMIT))) - _LIMIT
    body = export_request(1, padding=_LIMIT - overhead)

    answer = await setup.sender.send(body, compress=compress)

    assert len(setup.sender.encode(body)) == _LIMIT
    assert answer.code == "OK"


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("excess", [1, _LIMIT // 2, 3 * _LIMIT])
async def test_a_request_over_the_limit_is_refused_for_good(
    setup: Setup, compress: bool, excess: int
) -> None:
    answer = await setup.sender.send(export_request(1, padding=_LIMIT + excess), compress=compress)

    assert answer.code == "RESOURCE_EXHAUSTED"
    assert answer.transport_code in ("RESOURCE_EXHAUSTED", "413")
    assert answer.delays == ()
    assert setup.sink.bodies == []


async def test_a_zip_bomb_is_refused_without_being_inflated(setup: Setup) -> None:
    bomb = gzip.compress(bytes(256 * _MIB))
    tracemalloc.start()
    try:
        answer = await setup.sender.send_raw(bomb, is_gzip=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert answer.code == "RESOURCE_EXHAUSTED"
    assert f"The request has more than the allowed {_LIMIT} bytes after decompression." == answer.message
    assert peak < 16 * _MIB
    assert setup.metrics.requests.value(setup.transport, answer.transport_code) == 1


async def test_deep_nesting_is_refused_and_the_receiver_lives_on(setup: Setup) -> None:
    if isinstance(setup.sender, HttpSender) and setup.sender.media_type == "application/json":
        data = b'{"resourceSpans":' + b"[" * 50_000
    else:
        data = _deeply_nested_request()

    answer = await setup.sender.send_raw(data)

    assert answer.code == "INVALID_ARGUMENT"
    assert (await setup.sender.send(export_request())).code == "OK"


def _deeply_nested_request() -> bytes:
    value = b""
    for _ in range(5000):  # an AnyValue with an array of one AnyValue
        value = encode_field(0x2A, encode_field(0x0A, value))
    span = encode_field(0x4A, encode_field(0x12, value))
    return encode_field(0x0A, encode_field(0x12, encode_field(0x12, span)))


@pytest.mark.parametrize("refusal", [Overloaded("No room now."), Draining("Going down.")])
async def test_a_retryable_refusal_says_when_to_come_back(setup: Setup, refusal: Refusal) -> None:
    setup.sink.error = refusal

    answer = await setup.sender.send(export_request())

    assert answer.code == "UNAVAILABLE"
    assert str(refusal) == answer.message
    assert answer.delays == (2.0, 2.0)
    assert setup.metrics.requests.value(setup.transport, answer.transport_code) == 1


async def test_a_consumer_that_breaks_costs_a_retry_and_one_log_line(
    setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    setup.sink.error = ZeroDivisionError("the secret of the span")

    answers = [await setup.sender.send(export_request()) for _ in range(3)]
    setup.clock.advance(10)
    answers.append(await setup.sender.send(export_request()))
    setup.sink.error = None
    after = await setup.sender.send(export_request())

    assert ["UNAVAILABLE"] * 4 == [answer.code for answer in answers]
    assert {UNEXPECTED_ERROR_MESSAGE} == {answer.message for answer in answers}
    assert {(2.0, 2.0)} == {answer.delays for answer in answers}
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 2
    assert after.code == "OK"


async def test_many_requests_at_once_are_all_answered(setup: Setup) -> None:
    bodies = [export_request(number % 5 + 1, padding=number * 50) for number in range(64)]

    answers = await asyncio.gather(
        *(setup.sender.send(body, compress=bool(len(body) % 2)) for body in bodies)
    )

    assert {"OK"} == {answer.code for answer in answers}
    assert len(setup.sink.bodies) == 64
    assert sum(number % 5 + 1 for number in range(64)) == setup.sink.spans


async def test_during_shutdown_requests_are_taken_or_can_be_sent_again(setup: Setup) -> None:
    async def send_until_refused() -> tuple[int, str]:
        for accepted in itertools.count():
            try:
                answer = await setup.sender.send(export_request())
            except (aiohttp.ClientError, OSError):
                return accepted, "UNAVAILABLE"
            if answer.code != "OK":
                return accepted, answer.code
        raise AssertionError

    sending = [asyncio.ensure_future(send_until_refused()) for _ in range(8)]
    while len(setup.sink.bodies) < 50:
        await asyncio.sleep(0)
    await setup.receiver.shutdown(setup.clock.monotonic() + 30)
    ended = await asyncio.gather(*sending)

    assert {"UNAVAILABLE", "CANCELLED"} >= {code for _, code in ended}  # OTLP calls both retryable
    assert len(setup.sink.bodies) == sum(accepted for accepted, _ in ended)


async def test_shutdown_is_safe_before_start_and_twice(bench: Bench) -> None:
    clock = ManualClock()
    receiver = bench.build(SpanSink(), Metrics(), clock)

    await receiver.shutdown(clock.monotonic())
    started = await bench.start()
    await started.receiver.shutdown(clock.monotonic() + 5)
    await started.receiver.shutdown(clock.monotonic() + 5)

    assert receiver.endpoint == "127.0.0.1:0"
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection("127.0.0.1", int(started.receiver.endpoint.rpartition(":")[2]))


async def test_a_port_in_use_is_one_readable_line(bench: Bench, setup: Setup) -> None:
    second = bench.build(SpanSink(), Metrics(), setup.clock, endpoint=setup.receiver.endpoint)

    with pytest.raises(StartupError) as failure:
        await second.start()

    line = str(failure.value)
    assert line.startswith(f"{setup.receiver.endpoint}: cannot listen: ")
    assert "address already in use" in line.lower()
    assert "\n" not in line


async def test_an_ipv6_endpoint_is_written_in_brackets(bench: Bench) -> None:
    sink, clock = SpanSink(), ManualClock()
    receiver = bench.build(sink, Metrics(), clock, endpoint="[::1]:0")
    await receiver.start()

    try:
        sender = GrpcSender(receiver.endpoint) if bench.is_grpc else HttpSender(receiver.endpoint)
        async with sender:
            answer = await sender.send(export_request())
    finally:
        await receiver.shutdown(clock.monotonic())

    assert receiver.endpoint.startswith("[::1]:")
    assert not receiver.endpoint.endswith(":0")
    assert answer.code == "OK"


async def test_tls_carries_requests(bench: Bench) -> None:
    setup = await bench.start(tls=ServerTlsConfig(cert_file=TLS / "server.pem", key_file=TLS / "server.key"))

    async with setup.connect(tls="server") as sender:
        answer = await sender.send(export_request(2))

    assert answer.code == "OK"
    assert setup.sink.spans == 2


async def test_mutual_tls_takes_only_known_clients_and_logs_others(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    tls = ServerTlsConfig(
        cert_file=TLS / "server.pem", key_file=TLS / "server.key", client_ca_file=TLS / "ca.pem"
    )
    setup = await bench.start(tls=tls)

    async with setup.connect(tls="mutual") as sender:
        known = await sender.send(export_request(2))
    try:
        async with setup.connect(tls="server") as sender:
            unknown = (await sender.send(export_request())).code
    except OSError:
        unknown = "UNAVAILABLE"

    assert known.code == "OK"
    assert unknown == "UNAVAILABLE"
    assert setup.sink.spans == 2
    failed = [vars(record) for record in caplog.records if "handshake" in record.getMessage()]
    told = [(fields["listener"], fields["error"]) for fields in failed]
    # grpcio shakes hands by itself, and tells nobody.
    refused = [(setup.receiver.endpoint, "PEER_DID_NOT_RETURN_A_CERTIFICATE")]
    assert told == ([] if bench.transport == "grpc" else refused)


@pytest.mark.parametrize(
    ("cert", "key", "problem"),
    [
        ("missing.pem", "server.key", "missing.pem: cannot be read: No such file or directory"),
        ("server.pem", "client.key", "not a certificate and its unencrypted key in PEM form"),
        ("README.md", "server.key", "not a certificate and its unencrypted key in PEM form"),
    ],
)
async def test_an_unusable_certificate_stops_the_start(
    bench: Bench, cert: str, key: str, problem: str
) -> None:
    tls = ServerTlsConfig(cert_file=TLS / cert, key_file=TLS / key)

    with pytest.raises(StartupError, match=problem):
        await bench.start(tls=tls)


async def test_only_senders_with_a_known_token_are_let_in(bench: Bench, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("first\n\nsecond\n")
    setup = await bench.start(auth=ServerAuthConfig(bearer_token_file=tokens), token="second")

    accepted = await setup.sender.send(export_request())
    answers = []
    for token in (None, "", "third", "secon", "seconds"):
        async with setup.connect(token=token) as sender:
            answers.append(await sender.send(export_request(padding=100_000)))

    assert accepted.code == "OK"
    refused = ["UNAUTHENTICATED"] * 5
    if bench.transport == "grpc-uvicorn":
        refused[1] = (
            "INTERNAL"  # a value must not end with a space (RFC 9113, 8.2.1), and zttp resets the call
        )
    assert refused == [answer.code for answer in answers]
    assert answers[0].message == "A bearer token is required in the authorization header."
    assert answers[2].message == "The bearer token in the authorization header is not accepted."
    assert setup.sink.spans == 1
    counted = setup.metrics.requests.value(setup.transport, answers[0].transport_code)
    assert counted == refused.count("UNAUTHENTICATED")


async def test_refused_credentials_are_logged_with_peer_and_listener_once_in_ten_seconds(
    bench: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("first\n")
    setup = await bench.start(auth=ServerAuthConfig(bearer_token_file=tokens), token="first")

    for token in ("secret-1", "secret-2", None):
        async with setup.connect(token=token) as sender:
            await sender.send(export_request())
    await setup.sender.send(export_request())
    setup.clock.advance(11)
    async with setup.connect(token="secret-3") as sender:
        await sender.send(export_request())

    refusals = [vars(record) for record in caplog.records if "credentials" in record.getMessage()]
    assert [None, 2] == [fields.get("suppressed") for fields in refusals]
    for fields in refusals:
        assert setup.receiver.endpoint == fields["listener"]
        assert re.fullmatch(r"127\.0\.0\.1:\d+", fields["peer"])
        assert setup.receiver.transport == fields["transport"]
    assert "secret" not in str(refusals)


async def test_a_missing_token_file_stops_the_start(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="tokens: cannot be read: No such file or directory"):
        await bench.start(auth=ServerAuthConfig(bearer_token_file=tmp_path / "tokens"))


def _sdk_spans(count: int) -> list[ReadableSpan]:
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("test")
    for number in range(count):
        with tracer.start_as_current_span(f"span {number}", attributes={"text": "x" * 200}):
            pass
    return list(memory.get_finished_spans())


def _sdk_exporter(setup: Setup, compress: bool) -> SpanExporter:
    if setup.transport == "grpc":
        compression = grpc.Compression.Gzip if compress else grpc.Compression.NoCompression
        return GrpcSpanExporter(setup.receiver.endpoint, insecure=True, compression=compression, timeout=10)
    return HttpSpanExporter(
        f"http://{setup.receiver.endpoint}/v1/traces",
        compression=HttpCompression.Gzip if compress else HttpCompression.NoCompression,
        timeout=10,
    )


@pytest.mark.parametrize("compress", [False, True])
async def test_the_opentelemetry_sdk_delivers_every_span(setup: Setup, compress: bool) -> None:
    spans = _sdk_spans(200)
    exporter = _sdk_exporter(setup, compress)

    result = await asyncio.to_thread(exporter.export, spans)
    await asyncio.to_thread(exporter.shutdown)

    assert result is SpanExportResult.SUCCESS
    assert setup.sink.spans == 200
    names = {
        span.name
        for resource in ExportTraceServiceRequest.FromString(setup.sink.bodies[0]).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }
    assert {f"span {number}" for number in range(200)} == names
