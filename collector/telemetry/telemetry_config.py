"""What the user writes under `service.telemetry`."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from collector.endpoint import Endpoint

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


class TelemetryConfig(BaseModel):
    """The service's own metrics, health, logs and spans."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoint: Endpoint = Field(
        default="127.0.0.1:9464",
        description="Serves `/metrics`, `/healthz` and `/readyz`; port 0 takes a free one.",
    )
    logs: LogsConfig = LogsConfig()
    traces: TracesConfig = TracesConfig()
