"""How the service is monitored: /metrics and probes over HTTP, its own traces and logs over OTLP."""

from collector.monitoring.exposition import MetricsRegistry
from collector.monitoring.http import TelemetryServer
from collector.monitoring.own_telemetry import OwnLogs, OwnTraces, refuse_own_receivers

__all__ = ["MetricsRegistry", "OwnLogs", "OwnTraces", "TelemetryServer", "refuse_own_receivers"]
