"""Listeners for export requests, and the consumer of records: one module per receiver."""

from collector.receivers.assembly import ReceiversConfig, build_receivers, listening_at
from collector.receivers.consumer import ExportOutcome, PartitionIntake
from collector.receivers.otlp_grpc import LOGS_SERVICE, TRACE_SERVICE, GrpcServerConfig
from collector.receivers.otlp_http import LOGS_PATH, PROTOBUF, TRACES_PATH
from collector.receivers.receiver import BearerAuth, Receiver, SpanSource
from collector.receivers.server_config import (
    ServerAuthConfig,
    ServerConfig,
    ServerTlsConfig,
    read_file,
    ssl_context,
)

__all__ = [
    "LOGS_PATH", "LOGS_SERVICE", "PROTOBUF", "TRACES_PATH", "TRACE_SERVICE", "BearerAuth", "ExportOutcome",
    "GrpcServerConfig", "PartitionIntake", "Receiver", "ReceiversConfig", "ServerAuthConfig", "ServerConfig",
    "ServerTlsConfig", "SpanSource", "build_receivers", "listening_at", "read_file", "ssl_context",
]  # fmt: skip
