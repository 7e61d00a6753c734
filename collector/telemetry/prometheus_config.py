"""What the user writes under `exporters.prometheus`."""

import re
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from collector.config_fields import Duration, Endpoint
from collector.telemetry.metrics import Metrics
from collector.telemetry.score_series import DEFAULT_EXPIRY_SECONDS

_LABEL = re.compile(r"[a-z][a-z0-9_]*")
_NO_LABEL_CHARACTER = re.compile(r"[^a-z0-9_]")
_PROMETHEUS_LABELS = frozenset({"job", "instance", "le", "quantile"})
_MIN_EXPIRY_SECONDS = 60.0

_Expiry: TypeAlias = Annotated[Duration, Field(ge=_MIN_EXPIRY_SECONDS)]


class PrometheusConfig(BaseModel):
    """`exporters.prometheus`: where metrics and health are served, and what the series of agents tell."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoint: Endpoint | None = Field(
        default=None, description="Counts instead of `service.telemetry.endpoint`."
    )
    resource_attributes: tuple[str, ...] = Field(
        default=(),
        max_length=10,
        description="Attributes of agents' resources that are labels of the series of agents, with `_` for "
        "what is no letter or digit: `service.version` is the label `service_version`.",
        examples=[["service.version", "deployment.environment.name"]],
    )
    series_expiry: _Expiry = Field(
        default=DEFAULT_EXPIRY_SECONDS,
        description="After how long without a count series of agents are taken away, at least `1m`. Those of "
        "agents named exactly in criteria stay.",
    )

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
                raise ValueError(f'"{attribute}" cannot be a label: {label} has a meaning already')
            if label in seen:
                raise ValueError(f'"{seen[label]}" and "{attribute}" are the same label {label}')
            seen[label] = attribute
        return attributes

    def resource_labels(self) -> tuple[str, ...]:
        """The labels of `resource_attributes`, in their order."""
        return tuple(label_of(attribute) for attribute in self.resource_attributes)


def label_of(attribute: str) -> str:
    """The label that holds an attribute: in lower case, with `_` for every other character."""
    return _NO_LABEL_CHARACTER.sub("_", attribute.lower())
