"""OTLP: which of its protocols are listened for, and which listener speaks each."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, model_validator

from collector.clock import Clock
from collector.config_fields import EMPTY_IS_DEFAULTS, Section
from collector.receivers.consumer import Consumer
from collector.receivers.otlp_grpc import GrpcServerConfig, OtlpGrpcReceiver
from collector.receivers.otlp_grpc_uvicorn import UvicornGrpcReceiver
from collector.receivers.otlp_http import HttpServerConfig, OtlpHttpReceiver
from collector.receivers.receiver import Receiver, ReceiverType
from collector.telemetry import Metrics


class OtlpProtocols(BaseModel):
    """Listeners for OTLP. Where only one is written, the other is off."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    grpc: Annotated[GrpcServerConfig | None, EMPTY_IS_DEFAULTS] = None
    http: Annotated[HttpServerConfig | None, EMPTY_IS_DEFAULTS] = None

    @model_validator(mode="after")
    def _check_any(self) -> Self:
        if self.grpc is None and self.http is None:
            raise ValueError("expected grpc, http or both")
        return self


class OtlpReceiverConfig(BaseModel):
    """Receives spans over OTLP."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocols: Section[OtlpProtocols] = OtlpProtocols(grpc=GrpcServerConfig(), http=HttpServerConfig())


def _create(
    config: OtlpReceiverConfig, consumer: Consumer, metrics: Metrics, clock: Clock
) -> Mapping[str, Receiver]:
    grpc, http = config.protocols.grpc, config.protocols.http
    receivers: dict[str, Receiver] = {}
    if grpc is not None:
        server = UvicornGrpcReceiver if grpc.server == "uvicorn" else OtlpGrpcReceiver
        receivers["grpc"] = server(grpc, consumer, metrics, clock=clock)
    if http is not None:
        receivers["http"] = OtlpHttpReceiver(http, consumer, metrics, clock=clock)
    return receivers


COMPONENT = ReceiverType(
    type_name="otlp",
    config_model=OtlpReceiverConfig,
    create=_create,
    default=OtlpReceiverConfig(),
)
