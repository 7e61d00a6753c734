"""What the user writes under `service.telemetry`."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from collector.config_fields import Endpoint, FilePath, PositiveDuration, Section

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]
LogEncoding: TypeAlias = Literal["auto", "json", "console"]


class OtlpConfig(BaseModel):
    """Where the service sends telemetry about itself. Never its own receivers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoint: str = Field(
        min_length=1,
        description="`host:port` for gRPC, a URL for either protocol. With http/protobuf a URL without a "
        "path gets `/v1/traces` or `/v1/logs`.",
        examples=["localhost:14317", "http://localhost:14318"],
    )
    protocol: Literal["grpc", "http/protobuf"] = "grpc"
    headers: dict[str, SecretStr] = Field(
        default_factory=dict, description="Sent with every request, e.g. authorization."
    )


class TracesConfig(BaseModel):
    """The service's own spans; off unless `otlp` is given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    otlp: OtlpConfig | None = None
    sampling_ratio: float = Field(
        default=0.01, ge=0, le=1, description="Share of evaluated traces with a span."
    )


class LogsConfig(BaseModel):
    """The service's own log, on standard error and, if `otlp` is given, sent there as well."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: LogLevel = "info"
    encoding: LogEncoding = Field(
        default="auto", description="auto: key=value lines on a terminal, JSON lines elsewhere."
    )
    otlp: OtlpConfig | None = None


class SelfCheckTlsConfig(BaseModel):
    """The certificate that self-checks show to a listener which asks clients for one, as PEM files."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cert_file: FilePath = Field(description="The client certificate, followed by its chain.")
    key_file: FilePath = Field(description="The private key of the certificate, without a passphrase.")


class SelfCheckConfig(BaseModel):
    """The service's check of itself: two traces through its own listener, whose verdicts must be right."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = True
    interval: PositiveDuration = Field(
        default=60.0,
        description="From the start of one check to the next. The alert that ships fires after 5 minutes "
        "without a success.",
    )
    tls: SelfCheckTlsConfig | None = Field(
        default=None,
        description="The client certificate for a listener with `client_ca_file`. Left out, the listener's "
        "own certificate is shown.",
    )


class TelemetryConfig(BaseModel):
    """The service's own metrics, health, logs and spans."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoint: Endpoint = Field(
        default="127.0.0.1:9464",
        description="Serves `/metrics`, `/healthz` and `/readyz`; port 0 takes a free one.",
    )
    logs: LogsConfig = LogsConfig()
    traces: TracesConfig = TracesConfig()
    self_check: Section[SelfCheckConfig] = SelfCheckConfig()
