"""The service's own metrics, health and logs, as they are recorded; `collector.monitoring` serves them."""

from collector.telemetry.agent_series import OVERFLOW, Limits
from collector.telemetry.liveness import DEAD_SECONDS, Heartbeat, Watchdog, WatchedCode
from collector.telemetry.logs import OWN_LOGGERS, RateLimitedLogger, configure_logging, record_fields
from collector.telemetry.metrics import (
    AnyInstrument,
    Counter,
    Exemplar,
    Gauge,
    Histogram,
    HistogramSeries,
    Instrument,
    Labels,
    Metrics,
    ObservedSpan,
    observed_span,
)
from collector.telemetry.score_series import CLASSIFIERS, ScoreSeries
from collector.telemetry.signals import (
    BEFORE_FAN_OUT,
    Readiness,
    measure_loop_lag,
    observe_verdict_delays,
    publish_accounting_errors,
)
from collector.telemetry.telemetry_config import (
    OtlpConfig,
    PrometheusConfig,
    SelfCheckConfig,
    SelfCheckTlsConfig,
    TelemetryConfig,
)

__all__ = [
    "BEFORE_FAN_OUT", "CLASSIFIERS", "DEAD_SECONDS", "OVERFLOW", "OWN_LOGGERS", "AnyInstrument", "Counter",
    "Exemplar", "Gauge", "Heartbeat", "Histogram", "HistogramSeries", "Instrument", "Labels", "Limits",
    "Metrics", "ObservedSpan", "OtlpConfig", "PrometheusConfig", "RateLimitedLogger", "Readiness",
    "ScoreSeries", "SelfCheckConfig", "SelfCheckTlsConfig", "TelemetryConfig", "Watchdog", "WatchedCode",
    "configure_logging", "measure_loop_lag", "observe_verdict_delays", "observed_span",
    "publish_accounting_errors", "record_fields",
]  # fmt: skip
