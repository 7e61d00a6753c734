"""From the configured receivers to listeners and other sources of spans."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, create_model

from collector import receivers as _this_folder
from collector.clock import Clock
from collector.component_discovery import find_components
from collector.config_fields import Section
from collector.receivers.consumer import RecordConsumer
from collector.receivers.receiver import ReceiverType, SpanSource
from collector.receivers.server_config import ServerConfig
from collector.telemetry import Metrics


@cache
def receiver_types() -> Mapping[str, ReceiverType[BaseModel]]:
    """All receiver types by the name that configuration uses, in the order of their names.

    Raises:
        TypeError: a `COMPONENT` is something else, or two modules claim one type name.
    """
    return find_components(_this_folder, (ReceiverType,))


if TYPE_CHECKING:

    class ReceiversConfig(BaseModel):
        """Has a field for each receiver type."""

        def __getattr__(self, name: str) -> Any: ...

else:
    ReceiversConfig = create_model(
        "ReceiversConfig",
        __doc__="Where spans come from.",
        __config__=ConfigDict(extra="forbid", frozen=True),
        **{
            name: (Section[kind.config_model] if kind.default else kind.config_model | None, kind.default)
            for name, kind in receiver_types().items()
        },
    )


def build_receivers(
    config: ReceiversConfig,
    consumer: RecordConsumer,
    metrics: Metrics,
    clock: Clock,
    *,
    max_bytes_in_flight: int | None = None,
) -> dict[str, SpanSource]:
    """The sources of spans of all receivers that are on, by name.

    `max_bytes_in_flight` applies where the configuration sets no such limit.
    """
    collected: dict[str, SpanSource] = {}
    for name, kind in receiver_types().items():
        if (settings := getattr(config, name)) is not None:
            limit = "max_bytes_in_flight"
            has_limit = limit in type(settings).model_fields and limit not in settings.model_fields_set
            if max_bytes_in_flight is not None and has_limit:
                settings = settings.model_copy(update={limit: max_bytes_in_flight})
            collected.update(kind.create(settings, consumer, metrics, clock))
    return collected


def listening_at(config: BaseModel, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The configuration path of each endpoint in `config`, and the endpoint."""
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, ServerConfig):
            yield (*path, name, "endpoint"), value.endpoint
        elif isinstance(value, BaseModel):
            yield from listening_at(value, (*path, name))
