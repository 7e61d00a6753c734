"""The service's own spans and log records, sent over OTLP; off unless configured, and never to itself.

The SDK is loaded where that is configured: it would be a twentieth of every start.
"""

import logging
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from collector.clock import Clock, ends_within
from collector.config_fields import parse_endpoint
from collector.errors import StartupError
from collector.telemetry import OWN_LOGGERS, OtlpConfig, TelemetryConfig, record_fields
from collector.work_thread import WorkThread

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

ExporterT = TypeVar("ExporterT")

_WILDCARDS = ("0.0.0.0", "::")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_GRPC_PORT = 4317


class OwnLogs(logging.Handler):
    """A handler that sends the project's log records over OTLP from a thread.

    Records of libraries are excluded: those of the exporter itself would feed it while its destination is
    down.
    """

    def __init__(self, otlp: OtlpConfig, *, version: str, instance: str, clock: Clock) -> None:
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogExporter
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogExporter
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

        super().__init__()
        self._clock = clock
        self._provider = LoggerProvider(resource=_resource(version, instance), shutdown_on_exit=False)
        exporter = _exporter(otlp, GrpcLogExporter, HttpLogExporter, "/v1/logs")
        self._provider.add_log_record_processor(BatchLogRecordProcessor(exporter))

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the record; never blocks."""
        from opentelemetry._logs import LogRecord, SeverityNumber

        if record.name.partition(".")[0] not in OWN_LOGGERS:
            return
        # Levels are ten apart, severities four: INFO is 20 and 9.
        severity = SeverityNumber(4 * min(max(record.levelno // 10, 1), 5) + 1)
        self._provider.get_logger(record.name).emit(
            LogRecord(
                timestamp=round(record.created * 1e9),
                observed_timestamp=round(record.created * 1e9),
                severity_text=record.levelname,
                severity_number=severity,
                body=record.getMessage(),
                attributes={
                    name: value if isinstance(value, str | bool | int | float) else str(value)
                    for name, value in record_fields(record).items()
                },
            )
        )

    async def shutdown(self, deadline: float) -> None:
        """Stop, and send the rest until `deadline` on the clock's monotonic time. Safe twice."""
        logging.getLogger().removeHandler(self)
        await _finish_by(deadline, self._clock, self._provider.shutdown)


class OwnTraces:
    """Sends `evaluate trace` spans over OTLP from a thread.

    Spans that the destination does not accept are dropped: it never blocks or fails the service.
    """

    def __init__(
        self, otlp: OtlpConfig, sampling_ratio: float, *, version: str, instance: str, clock: Clock
    ) -> None:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

        self._clock = clock
        # shutdown_on_exit would wait for the destination after the service's own deadline.
        self._provider = TracerProvider(
            sampler=TraceIdRatioBased(sampling_ratio),
            resource=_resource(version, instance),
            shutdown_on_exit=False,
        )
        exporter = _exporter(otlp, GrpcSpanExporter, HttpSpanExporter, "/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("tracegrade", version)

    def trace_evaluated(
        self, *, spans: int, runs: int, reason: str, start_unix_nano: int, end_unix_nano: int
    ) -> None:
        """Record that a trace of this number of spans and runs, finished for `reason`, was graded then."""
        from opentelemetry.context import Context

        span = self._tracer.start_span("evaluate trace", context=Context(), start_time=start_unix_nano)
        if span.is_recording():
            span.set_attribute("tracegrade.spans", spans)
            span.set_attribute("tracegrade.runs", runs)
            span.set_attribute("tracegrade.finish_reason", reason)
        span.end(end_time=end_unix_nano)

    async def shutdown(self, deadline: float) -> None:
        """Send the rest until `deadline` on the clock's monotonic time. Safe twice."""
        await _finish_by(deadline, self._clock, self._provider.shutdown)


def refuse_own_receivers(config: TelemetryConfig, receivers: Iterable[str]) -> None:
    """Raise `StartupError` if the service would send its own spans or logs to itself.

    `receivers` are `host:port` of every receiver, with real ports.
    """
    listening = [(receiver, *parse_endpoint(receiver)) for receiver in receivers]
    for signal, otlp in (("traces", config.traces.otlp), ("logs", config.logs.otlp)):
        if otlp is None:
            continue
        host, port = _host_and_port(otlp)
        for receiver, receiver_host, receiver_port in listening:
            if port == receiver_port and _reaches(host, receiver_host):
                raise StartupError(
                    f"service.telemetry.{signal}.otlp.endpoint: {otlp.endpoint} is this service's own "
                    f"receiver {receiver}; its telemetry must go elsewhere"
                )


def _exporter(
    otlp: OtlpConfig, grpc: Callable[..., ExporterT], http: Callable[..., ExporterT], default_path: str
) -> ExporterT:
    """An exporter of the configured protocol: `grpc` with TLS only for `https://`.

    `http` posts to `default_path` if the configured URL has no path.
    """
    # gRPC requires lower-case header names.
    headers = {name.lower(): value.get_secret_value() for name, value in otlp.headers.items()}
    if otlp.protocol == "grpc":
        host, port = _host_and_port(otlp)
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return grpc(endpoint=target, insecure=not otlp.endpoint.startswith("https://"), headers=headers)
    url = otlp.endpoint if "://" in otlp.endpoint else f"http://{otlp.endpoint}"
    return http(
        endpoint=url.rstrip("/") + default_path if urlsplit(url).path in ("", "/") else url, headers=headers
    )


def _resource(version: str, instance: str) -> "Resource":
    """The resource of the service's own telemetry."""
    from opentelemetry.sdk.resources import Resource

    return Resource(
        {"service.name": "tracegrade", "service.version": version, "service.instance.id": instance}
    )


async def _finish_by(deadline: float, clock: Clock, shutdown: Callable[[], None]) -> None:
    """Run a blocking shutdown, and abandon it at `deadline`."""
    thread = WorkThread("telemetry-shutdown")  # a backend that hangs does not hold up the exit
    thread.start()
    await ends_within(max(0.0, deadline - clock.monotonic()), thread.close(shutdown), clock)


def _host_and_port(config: OtlpConfig) -> tuple[str, int]:
    has_scheme = "://" in config.endpoint
    url = urlsplit(config.endpoint if has_scheme else f"//{config.endpoint}")
    default = _GRPC_PORT if config.protocol == "grpc" else _DEFAULT_PORTS.get(url.scheme, 80)
    try:
        return url.hostname or "", url.port or default
    except ValueError as error:
        raise StartupError(f"service.telemetry: {config.endpoint}: {error}") from error


def _reaches(host: str, receiver_host: str) -> bool:
    """Whether a connection to `host` reaches a listener on `receiver_host`, as far as known."""
    if host == receiver_host:
        return True
    addresses = _addresses(host)
    if receiver_host in _WILDCARDS:
        return any(_is_local(address) for address in addresses)
    return bool(addresses & _addresses(receiver_host))


def _addresses(host: str) -> set[str]:
    try:
        return {str(entry[4][0]) for entry in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except OSError:
        return set()


def _is_local(address: str) -> bool:
    """Whether the address belongs to this machine: only then can a socket be bound to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
