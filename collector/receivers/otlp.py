"""OTLP: its protocols and their listeners."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from collector.clock import Clock
from collector.config_fields import EMPTY_IS_DEFAULTS, Section
from collector.receivers.consumer import Consumer
from collector.receivers.in_flight import InFlightBudget
from collector.receivers.otlp_grpc import GrpcServerConfig, OtlpGrpcReceiver
from collector.receivers.otlp_grpc_uvicorn import UvicornGrpcReceiver
from collector.receivers.otlp_http import HttpServerConfig, OtlpHttpReceiver
from collector.receivers.receiver import Receiver, ReceiverType
from collector.receivers.server_config import DEFAULT_MAX_BYTES_IN_FLIGHT
from collector.telemetry import Metrics
from processors.documents import StrictModel


class OtlpProtocols(StrictModel):
    """Listeners for OTLP. If only one is configured, the other is off."""

    grpc: Annotated[GrpcServerConfig | None, EMPTY_IS_DEFAULTS] = None
    http: Annotated[HttpServerConfig | None, EMPTY_IS_DEFAULTS] = None

    @model_validator(mode="after")
    def _check_any(self) -> Self:
        if self.grpc is None and self.http is None:
            raise ValueError("expected grpc, http or both")
        return self


class OtlpReceiverConfig(StrictModel):
    """Receives spans over OTLP."""

    protocols: Section[OtlpProtocols] = OtlpProtocols(grpc=GrpcServerConfig(), http=HttpServerConfig())
    max_bytes_in_flight: int = Field(
        default=DEFAULT_MAX_BYTES_IN_FLIGHT,
        ge=1,
        description="Limit for all messages being received together; once it is used up, senders wait. At "
        "least the largest max_request_bytes.",
    )

    @model_validator(mode="after")
    def _check_in_flight(self) -> Self:
        largest = self.max_message_bytes
        if "max_bytes_in_flight" in self.model_fields_set and self.max_bytes_in_flight < largest:
            raise ValueError(
                f"max_bytes_in_flight: expected at least max_request_bytes ({largest}), so that the largest "
                "request can be received"
            )
        return self

    @property
    def max_message_bytes(self) -> int:
        """The limit for a single message."""
        listeners = (self.protocols.grpc, self.protocols.http)
        return max(listener.max_request_bytes for listener in listeners if listener is not None)


def _create(
    config: OtlpReceiverConfig, consumer: Consumer, metrics: Metrics, clock: Clock
) -> Mapping[str, Receiver]:
    grpc, http = config.protocols.grpc, config.protocols.http
    budget = InFlightBudget(
        max(config.max_bytes_in_flight, config.max_message_bytes), config.max_message_bytes
    )
    metrics.bytes_in_flight.read_from(lambda: budget.used_bytes)
    metrics.bytes_in_flight_limit.set(budget.max_bytes)
    receivers: dict[str, Receiver] = {}
    if grpc is not None:
        server = UvicornGrpcReceiver if grpc.server == "uvicorn" else OtlpGrpcReceiver
        receivers["grpc"] = server(grpc, consumer, metrics, clock=clock, budget=budget)
    if http is not None:
        receivers["http"] = OtlpHttpReceiver(http, consumer, metrics, clock=clock, budget=budget)
    return receivers


COMPONENT = ReceiverType(
    type_name="otlp", config_model=OtlpReceiverConfig, create=_create, default=OtlpReceiverConfig()
)
