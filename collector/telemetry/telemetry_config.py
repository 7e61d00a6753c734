"""Configuration of `service.telemetry` and `exporters.prometheus`."""

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, SecretStr, field_validator

from collector.config_fields import Duration, Endpoint, FilePath, PositiveDuration, Section
from collector.telemetry.metrics import Metrics
from collector.telemetry.score_series import DEFAULT_EXPIRY_SECONDS
from processors.documents import StrictModel

_LABEL = re.compile(r"[a-z][a-z0-9_]*")
_NO_LABEL_CHARACTER = re.compile(r"[^a-z0-9_]")
_PROMETHEUS_LABELS = frozenset({"job", "instance", "le", "quantile"})
_MIN_EXPIRY_SECONDS = 60.0

_Expiry: TypeAlias = Annotated[Duration, Field(ge=_MIN_EXPIRY_SECONDS)]

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LogEncoding: TypeAlias = Literal["auto", "json", "console"]


class OtlpConfig(StrictModel):
    """Destination of the service's own telemetry, which cannot be one of its receivers."""

    endpoint: str = Field(min_length=1, examples=["localhost:14317", "http://localhost:14318"])
    """`host:port` for gRPC, a URL for either protocol. With http/protobuf a URL without a path gets
    `/v1/traces` or `/v1/logs`."""
    protocol: Literal["grpc", "http/protobuf"] = "grpc"
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Sent with every request, e.g. authorization."""


class TracesConfig(StrictModel):
    """The service's own spans; off unless `otlp` is given."""

    otlp: OtlpConfig | None = None
    sampling_ratio: float = Field(default=0.01, ge=0, le=1)
    """Share of evaluated traces with a span."""


class LogsConfig(StrictModel):
    """The service's own log, on standard error, and sent to `otlp` if that is given."""

    level: LogLevel = "info"
    encoding: LogEncoding = "auto"
    """auto: key=value lines on a terminal, JSON lines elsewhere."""
    otlp: OtlpConfig | None = None


class SelfCheckTlsConfig(StrictModel):
    """The client certificate of self-checks for a listener that requires one, as PEM files."""

    cert_file: FilePath
    """The client certificate, followed by its chain."""
    key_file: FilePath
    """The private key of the certificate, without a passphrase."""


class SelfCheckConfig(StrictModel):
    """Self-checks: two traces sent to the service's own listener, whose verdicts must be right."""

    enabled: bool = True
    interval: PositiveDuration = 60.0
    """Time between the starts of two checks. The bundled alert fires after 5 minutes without a success."""
    tls: SelfCheckTlsConfig | None = None
    """The client certificate for a listener with `client_ca_file`. Default: the listener's own certificate.
    """


class TelemetryConfig(StrictModel):
    """The service's own metrics, health, logs and spans."""

    endpoint: Endpoint = "127.0.0.1:9464"
    """Serves `/metrics`, `/healthz` and `/readyz`; port 0 selects a free one."""
    logs: LogsConfig = LogsConfig()
    traces: TracesConfig = TracesConfig()
    self_check: Section[SelfCheckConfig] = SelfCheckConfig()


class PrometheusConfig(StrictModel):
    """`exporters.prometheus`: where metrics and health are served, and the labels of agents' series."""

    endpoint: Endpoint | None = None
    """Overrides `service.telemetry.endpoint`."""
    resource_attributes: tuple[str, ...] = Field(
        default=(), max_length=10, examples=[["service.version", "deployment.environment.name"]]
    )
    """Resource attributes that become labels of the series of agents, with `_` for all characters but letters
    and digits: `service.version` is the label `service_version`."""
    series_expiry: _Expiry = DEFAULT_EXPIRY_SECONDS
    """How long series of agents remain without a count, at least `1m`. Those of agents named exactly in
    criteria never expire."""

    @field_validator("resource_attributes")
    @classmethod
    def _check_labels(cls, attributes: tuple[str, ...]) -> tuple[str, ...]:
        taken = _PROMETHEUS_LABELS.union(*(instrument.labels for instrument in Metrics().instruments()))
        seen: dict[str, str] = {}
        for attribute in attributes:
            label = label_of(attribute)
            if not _LABEL.fullmatch(label):
                raise ValueError(f'"{attribute}" cannot be a label: expected a letter as its first character')
            if label in taken:
                raise ValueError(f'"{attribute}" cannot be a label: {label} is already used')
            if label in seen:
                raise ValueError(f'"{seen[label]}" and "{attribute}" are the same label {label}')
            seen[label] = attribute
        return attributes

    def resource_labels(self) -> tuple[str, ...]:
        """The labels of `resource_attributes`, in the same order."""
        return tuple(label_of(attribute) for attribute in self.resource_attributes)


def label_of(attribute: str) -> str:
    """The label for an attribute: lower case, with `_` for every other character."""
    return _NO_LABEL_CHARACTER.sub("_", attribute.lower())
