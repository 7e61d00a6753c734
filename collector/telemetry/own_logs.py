"""The service's own log records, sent over OTLP beside being written. Off unless configured."""

import logging

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter

from collector.clock import Clock
from collector.telemetry.logs import OWN_LOGGERS, record_fields
from collector.telemetry.otlp_destination import (
    finish_by,
    grpc_target,
    header_values,
    http_url,
    own_resource,
)
from collector.telemetry.telemetry_config import OtlpConfig

_SEVERITIES = (
    (logging.CRITICAL, SeverityNumber.FATAL),
    (logging.ERROR, SeverityNumber.ERROR),
    (logging.WARNING, SeverityNumber.WARN),
    (logging.INFO, SeverityNumber.INFO),
    (logging.NOTSET, SeverityNumber.DEBUG),
)


class OwnLogs(logging.Handler):
    """A handler that sends the project's records over OTLP, from a thread of its own.

    Records of libraries are left out: those of the exporter itself, about a destination that is down,
    would feed it.
    """

    def __init__(self, otlp: OtlpConfig, *, version: str, instance: str, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._provider = LoggerProvider(resource=own_resource(version, instance), shutdown_on_exit=False)
        self._provider.add_log_record_processor(BatchLogRecordProcessor(_exporter(otlp)))

    def emit(self, record: logging.LogRecord) -> None:
        """Queue the record; never blocks."""
        if record.name.partition(".")[0] not in OWN_LOGGERS:
            return
        severity = next(number for level, number in _SEVERITIES if record.levelno >= level)
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
        """Take no more, and send what is left until `deadline` on the clock's monotonic time. Safe twice."""
        logging.getLogger().removeHandler(self)
        await finish_by(deadline, self._clock, self._provider.shutdown)


def _exporter(otlp: OtlpConfig) -> LogRecordExporter:
    if otlp.protocol == "grpc":
        target, is_insecure = grpc_target(otlp)
        return GrpcLogExporter(endpoint=target, insecure=is_insecure, headers=header_values(otlp))
    return HttpLogExporter(endpoint=http_url(otlp, "/v1/logs"), headers=header_values(otlp))
