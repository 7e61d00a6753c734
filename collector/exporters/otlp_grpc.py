"""OTLP over gRPC to a trace backend (`otlp`).

A blocking channel in a few threads, with the request's bytes as they are: for large requests that costs
less than the asyncio channel, and grpcio brings TLS, name resolution, proxies and reconnecting.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, Self, cast

import grpc
from pydantic import Field, model_validator

from collector.errors import (
    ContentRefusedError,
    ExportError,
    PermanentExportError,
    RetryableExportError,
    StartupError,
)
from collector.exporters.exporter import ExportResponse, SpanExporterType
from collector.exporters.otlp_client import (
    ClientConfig,
    header_values,
    one_line,
    read_response,
    read_status,
    read_tls_file,
    user_agent,
)
from collector.exporters.span_exporter_config import OTHER_QUEUES, SpanExporterConfig
from collector.trace import Signal

_METHODS: dict[Signal, str] = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}
_RECONNECT_MILLISECONDS = 5000

# OTLP specification, "Failures": the codes on which a client may send again. RESOURCE_EXHAUSTED is one
# of them only with a delay.
_RETRYABLE = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
_CONTENT = frozenset({grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED})


class OtlpGrpcConfig(SpanExporterConfig, ClientConfig):
    """`exporters.otlp`: a backend that speaks OTLP over gRPC."""

    endpoint: str
    """`host:port`; with `http://` or `https://` before it the scheme decides about TLS."""
    compression: Literal["none", "gzip"] = "none"
    signals: tuple[Signal, ...] = Field(default=("traces", "logs"), min_length=1)
    """What goes there: spans, and log records: those received, and verdicts if `results.emit` has `log`."""

    @model_validator(mode="after")
    def _check_endpoint(self) -> Self:
        host, separator, port = self.target.rpartition(":")
        if not (separator and host and port.isdecimal() and 0 < int(port) < 65536) or "/" in host:
            raise ValueError(f'endpoint: expected host:port such as "tempo:4317", got {self.endpoint!r}')
        return self

    @property
    def accepts(self) -> tuple[Signal, ...]:
        """What goes to the exporter."""
        return self.signals

    @property
    def target(self) -> str:
        """The endpoint without scheme."""
        return self.endpoint.removeprefix("https://").removeprefix("http://").removesuffix("/")

    @property
    def is_secure(self) -> bool:
        """Whether the connection uses TLS."""
        if "://" in self.endpoint:
            return self.endpoint.startswith("https://")
        return not self.tls.insecure


class OtlpGrpcExporter:
    """Sends requests over one channel."""

    def __init__(self, name: str, config: OtlpGrpcConfig) -> None:
        self.name = name
        self.endpoints: dict[Signal, str] = dict.fromkeys(config.accepts, config.endpoint)
        self._config = config
        headers = header_values(config.headers)
        self._metadata = tuple((key.lower(), value) for key, value in headers.items())
        self._channel: grpc.Channel | None = None
        self._threads: ThreadPoolExecutor | None = None

    async def start(self) -> None:
        """Create the channel; it connects when the first request is sent."""
        self._channel = self._new_channel()
        self._threads = ThreadPoolExecutor(
            self._config.sending_queue.num_consumers + OTHER_QUEUES, thread_name_prefix=f"export-{self.name}"
        )

    async def export(self, request: bytes, count: int, signal: Signal = "traces") -> ExportResponse:
        """Send one request; see `SpanExporter.export`."""
        if self._threads is None or self._channel is None:
            raise RetryableExportError("The exporter is not started.")
        call = self._channel.unary_unary(_METHODS[signal])
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._send, call, request)

    async def shutdown(self, deadline: float) -> None:
        """Close the channel; requests under way end as cancelled."""
        channel, threads = self._channel, self._threads
        self._channel = self._threads = None
        if channel is not None and threads is not None:
            channel.close()
            threads.shutdown(wait=False, cancel_futures=True)

    def _send(self, call: Callable[..., bytes], request: bytes) -> ExportResponse:
        try:
            body = call(request, timeout=self._config.timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise _export_error(cast(grpc.Call, error)) from error
        except ValueError as error:  # grpcio: the channel was closed meanwhile
            raise RetryableExportError("The channel is closed.") from error
        return read_response(body)

    def _new_channel(self) -> grpc.Channel:
        config = self._config
        options: list[tuple[str, str | int]] = [
            ("grpc.primary_user_agent", user_agent()),
            # The retries decide how soon a backend is tried again, not a wait of up to two minutes.
            ("grpc.max_reconnect_backoff_ms", _RECONNECT_MILLISECONDS),
            # A connection for each exporter, even where two have the same endpoint.
            ("grpc.use_local_subchannel_pool", 1),
        ]
        compression = grpc.Compression.Gzip if config.compression == "gzip" else None
        if not config.is_secure:
            return grpc.insecure_channel(config.target, options, compression)
        tls = config.tls
        if tls.server_name_override is not None:
            options.append(("grpc.ssl_target_name_override", tls.server_name_override))
        authorities = read_tls_file(tls.ca_file, self.name, "ca_file")
        key = read_tls_file(tls.key_file, self.name, "key_file")
        certificate = read_tls_file(tls.cert_file, self.name, "cert_file")
        try:
            credentials = grpc.ssl_channel_credentials(authorities, key, certificate)
        except ValueError as error:
            raise StartupError(f"exporters.{self.name}.tls: {error}") from error
        return grpc.secure_channel(config.target, credentials, options, compression)


def _export_error(call: grpc.Call) -> ExportError:
    """The error for how a call ended."""
    code = call.code()
    delay: float | None = None
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            delay = read_status(value)[1]
    message = f"{code.name}: {one_line(call.details() or '')}"
    if code in _RETRYABLE or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and delay is not None):
        return RetryableExportError(message, delay)
    return ContentRefusedError(message) if code in _CONTENT else PermanentExportError(message)


COMPONENT = SpanExporterType(
    type_name="otlp",
    config_model=OtlpGrpcConfig,
    create=lambda name, config, _: OtlpGrpcExporter(name, config),
)
