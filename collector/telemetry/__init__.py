"""The service's own metrics, health and logs."""

from collector.telemetry.agent_series import (
    HOLD_SECONDS,
    MAX_AGENTS,
    MAX_CLASS_LENGTH,
    MAX_CLASS_SERIES,
    MAX_CLASSES,
    MAX_LABEL_SETS,
    MAX_RESOURCE_VALUES,
    MAX_TOOLS,
    MAX_TOOLS_PER_AGENT,
    MAX_VERSIONS,
    OVERFLOW,
)
from collector.telemetry.exposition import MetricsRegistry
from collector.telemetry.http import TelemetryServer
from collector.telemetry.liveness import Heartbeat, Watchdog, WatchedCode
from collector.telemetry.logs import RateLimitedLogger, configure_logging
from collector.telemetry.metrics import Counter, Gauge, Histogram, Metrics
from collector.telemetry.own_telemetry import OwnLogs, OwnTraces, refuse_own_receivers
from collector.telemetry.score_series import CLASSIFIERS, ScoreSeries
from collector.telemetry.signals import (
    BEFORE_FAN_OUT,
    Readiness,
    measure_loop_lag,
    observe_verdict_delays,
    publish_accounting_errors,
)
from collector.telemetry.telemetry_config import (
    PrometheusConfig,
    SelfCheckConfig,
    SelfCheckTlsConfig,
    TelemetryConfig,
)

__all__ = [
    "BEFORE_FAN_OUT", "CLASSIFIERS", "HOLD_SECONDS", "MAX_AGENTS", "MAX_CLASSES", "MAX_CLASS_LENGTH",
    "MAX_CLASS_SERIES", "MAX_LABEL_SETS", "MAX_RESOURCE_VALUES", "MAX_TOOLS", "MAX_TOOLS_PER_AGENT",
    "MAX_VERSIONS", "OVERFLOW", "Counter", "Gauge", "Heartbeat", "Histogram", "Metrics", "MetricsRegistry",
    "OwnLogs", "OwnTraces", "PrometheusConfig", "RateLimitedLogger", "Readiness", "ScoreSeries",
    "SelfCheckConfig", "SelfCheckTlsConfig", "TelemetryConfig", "TelemetryServer", "Watchdog", "WatchedCode",
    "configure_logging", "measure_loop_lag", "observe_verdict_delays", "publish_accounting_errors",
    "refuse_own_receivers",
]  # fmt: skip
