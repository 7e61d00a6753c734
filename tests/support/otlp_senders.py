"""Senders of export requests for tests of receivers, alike over gRPC, HTTP with protobuf and with JSON."""

import gzip
import io
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import aiohttp
import grpc
from google.protobuf import json_format
from google.rpc import code_pb2, error_details_pb2, status_pb2
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.otlp import logs_request_to_json, request_to_json, split_records, split_request
from collector.receivers import ExportOutcome

EXPORT_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
EXPORT_METHODS = {
    "traces": EXPORT_METHOD,
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
TLS = Path(__file__).parent.parent / "data" / "tls"


def export_request(spans: int = 1, *, invalid: int = 0, padding: int = 0) -> bytes:
    """A request with `spans` valid spans and `invalid` ones, each name `padding` characters long."""
    name = "x" * padding
    payloads = [
        Span(trace_id=bytes([1]) * 16, span_id=number.to_bytes(8), name=name)
        for number in range(1, spans + 1)
    ]
    payloads += [Span(trace_id=bytes([1]) * 16, span_id=bytes(8), name=name)] * invalid
    resource = ResourceSpans(scope_spans=[ScopeSpans(spans=payloads)])
    return ExportTraceServiceRequest(resource_spans=[resource]).SerializeToString()


def logs_request(records: int = 1, *, padding: int = 0) -> bytes:
    """A request with `records` log records, as a program's own log lines are sent."""
    lines = [
        LogRecord(
            time_unix_nano=number,
            severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
            body=AnyValue(string_value="x" * padding + f"line {number}"),
            attributes=[KeyValue(key="code.function.name", value=AnyValue(string_value="handle"))],
            trace_id=bytes([1]) * 16,
            span_id=number.to_bytes(8),
        )
        for number in range(1, records + 1)
    ]
    scope_logs = [ScopeLogs(scope=InstrumentationScope(name="app"), log_records=lines)]
    resource = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))])
    return ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(resource=resource, scope_logs=scope_logs)]
    ).SerializeToString()


class SpanSink:
    """Accepts every request, or ends it with `error`, and keeps what it accepted."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.log_bodies: list[bytes] = []
        self.error: Exception | None = None

    def consume_traces(self, body: bytes) -> ExportOutcome:
        if self.error is not None:
            raise self.error
        split = split_request(body)
        self.bodies.append(body)
        message = f"{split.rejected} spans have invalid ids." if split.rejected else ""
        return ExportOutcome(split.accepted, split.rejected, message)

    async def consume_large_traces(self, body: bytes) -> ExportOutcome:
        return self.consume_traces(body)

    def consume_logs(self, body: bytes) -> ExportOutcome:
        if self.error is not None:
            raise self.error
        split = split_records(body)
        self.log_bodies.append(body)
        return ExportOutcome(len(split.records), split.rejected, split.rejection())

    async def consume_large_logs(self, body: bytes) -> ExportOutcome:
        return self.consume_logs(body)

    @property
    def spans(self) -> int:
        """The number of spans in all accepted requests."""
        return sum(split_request(body).accepted for body in self.bodies)


@dataclass(frozen=True)
class Answer:
    """What a sender was told: `code` names a google.rpc.Code, `delays` are all retry delays stated."""

    code: str
    transport_code: str
    message: str = ""
    rejected: int = 0
    has_partial_success: bool = False
    delays: tuple[float, ...] = ()
    details: tuple[str, ...] = ()


class Sender(Protocol):
    """Sends requests to one receiver."""

    async def send(self, body: bytes, *, compress: bool = False, signal: str = "traces") -> Answer:
        """Send the serialised request `body`."""
        ...

    async def send_raw(self, data: bytes, *, is_gzip: bool = False, signal: str = "traces") -> Answer:
        """Send `data` as it is."""
        ...

    def encode(self, body: bytes, signal: str = "traces") -> bytes:
        """What travels for the serialised request `body`, before compression."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class GrpcSender:
    """grpcio's own client."""

    def __init__(self, endpoint: str, token: str | None = None, tls: str | None = None) -> None:
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        self._metadata = (("authorization", f"Bearer {token}"),) if token is not None else ()
        if tls is None:
            self.channel = grpc.aio.insecure_channel(endpoint, options=options)
        else:
            key, chain = _client_certificate() if tls == "mutual" else (None, None)
            credentials = grpc.ssl_channel_credentials((TLS / "ca.pem").read_bytes(), key, chain)
            self.channel = grpc.aio.secure_channel(endpoint, credentials, options=options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.channel.close()

    async def send(self, body: bytes, *, compress: bool = False, signal: str = "traces") -> Answer:
        return await self.send_compressed(body, grpc.Compression.Gzip if compress else None, signal)

    async def send_raw(self, data: bytes, *, is_gzip: bool = False, signal: str = "traces") -> Answer:
        return await self.send_compressed(data, None, signal)

    def encode(self, body: bytes, signal: str = "traces") -> bytes:
        return body

    async def send_compressed(
        self, body: bytes, compression: grpc.Compression | None, signal: str = "traces"
    ) -> Answer:
        """Send `body`, compressed by grpcio."""
        export = self.channel.unary_unary(EXPORT_METHODS[signal])
        return await self.answer(export(body, compression=compression, metadata=self._metadata, timeout=30))

    async def answer(self, call: grpc.aio.Call) -> Answer:
        """What `call` is answered."""
        try:
            response = ExportTraceServiceResponse.FromString(await call)
        except grpc.aio.AioRpcError as error:
            return _grpc_error(error)
        return _success(response, "OK")

    async def stream(self, messages: AsyncIterator[bytes]) -> Answer:
        """Send a call whose message comes when `messages` yields it."""
        return await self.answer(self.channel.stream_unary(EXPORT_METHOD)(messages, timeout=30))


class HttpSender:
    """aiohttp's client, sending protobuf or JSON."""

    def __init__(
        self, endpoint: str, token: str | None = None, tls: str | None = None, *, json: bool = False
    ) -> None:
        self._base_url = f"{'http' if tls is None else 'https'}://{endpoint}/v1/"
        self.url = f"{self._base_url}traces"
        self.media_type = "application/json" if json else "application/x-protobuf"
        self._json = json
        self._headers = {"content-type": self.media_type}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=_client_context(tls)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.close()

    async def send(self, body: bytes, *, compress: bool = False, signal: str = "traces") -> Answer:
        data = self.encode(body, signal)
        return await self.send_raw(
            gzip.compress(data, 1) if compress else data, is_gzip=compress, signal=signal
        )

    async def send_raw(self, data: bytes, *, is_gzip: bool = False, signal: str = "traces") -> Answer:
        headers = {**self._headers, "content-encoding": "gzip"} if is_gzip else self._headers
        url = self._base_url + signal
        async with self.session.post(url, data=io.BytesIO(data), headers=headers) as response:
            return await http_answer(response, ExportLogsServiceResponse if signal == "logs" else None)

    def encode(self, body: bytes, signal: str = "traces") -> bytes:
        to_json = logs_request_to_json if signal == "logs" else request_to_json
        return to_json(body) if self._json else body


async def http_answer(
    response: aiohttp.ClientResponse, kind: "type[ExportLogsServiceResponse] | None" = None
) -> Answer:
    """What an HTTP response says; its body must be in the media type it names."""
    body = await response.read()
    in_json = response.content_type == "application/json"
    if response.status == 200:
        success = (kind or ExportTraceServiceResponse)()
        if in_json:
            json_format.Parse(body, success)
        else:
            success.ParseFromString(body)
        return _success(ExportTraceServiceResponse.FromString(success.SerializeToString()), "200")
    status = status_pb2.Status()
    if in_json:
        json_format.Parse(body, status)
    else:
        status = status_pb2.Status.FromString(body)
    header = response.headers.get("retry-after")
    delays = _delays(status) + ((float(header),) if header is not None else ())
    return Answer(
        code_pb2.Code.Name(status.code),
        str(response.status),
        status.message,
        delays=delays,
        details=_detail_names(status),
    )


def _success(response: ExportTraceServiceResponse, transport_code: str) -> Answer:
    partial = response.partial_success
    return Answer(
        "OK",
        transport_code,
        partial.error_message,
        partial.rejected_spans,
        has_partial_success=response.HasField("partial_success"),
    )


def _grpc_error(error: grpc.aio.AioRpcError) -> Answer:
    trailers = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(trailers.get("grpc-status-details-bin", b""))
    delays = _delays(status)
    if "google.rpc.retryinfo-bin" in trailers:
        bare = error_details_pb2.RetryInfo.FromString(trailers["google.rpc.retryinfo-bin"])
        delays += (bare.retry_delay.ToMilliseconds() / 1000,)
    code = error.code().name
    return Answer(code, code, error.details() or "", delays=delays, details=_detail_names(status))


def _delays(status: status_pb2.Status) -> tuple[float, ...]:
    delays = []
    for detail in status.details:
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(retry):
            delays.append(retry.retry_delay.ToMilliseconds() / 1000)
    return tuple(delays)


def _detail_names(status: status_pb2.Status) -> tuple[str, ...]:
    return tuple(detail.TypeName() for detail in status.details)


def _client_certificate() -> Sequence[bytes]:
    return (TLS / "client.key").read_bytes(), (TLS / "client.pem").read_bytes()


def _client_context(tls: str | None) -> ssl.SSLContext | bool:
    if tls is None:
        return True
    context = ssl.create_default_context(cafile=str(TLS / "ca.pem"))
    if tls == "mutual":
        context.load_cert_chain(TLS / "client.pem", TLS / "client.key")
    return context
