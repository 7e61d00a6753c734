"""The shape of the service file. Each component's own settings stand beside the component."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializeAsAny,
    WithJsonSchema,
    field_validator,
)

from collector.buffer.finish_policy import GroupByTraceConfig
from collector.duration import Duration
from collector.memory_limiter import MemoryLimiterConfig
from collector.receivers.assembly import ReceiversConfig, receiver_sections
from collector.results_config import ResultsConfig
from collector.telemetry.prometheus_config import PrometheusConfig
from collector.telemetry.telemetry_config import TelemetryConfig
from collector.workers.config import WorkersConfig
from processors.frameworks.discovery import discover_dialects
from processors.frameworks.shapes.dialect_mapping import DialectMapping
from processors.frameworks.shapes.mapped_dialect import MappedDialect


def _checked_pattern(pattern: Path) -> Path:
    if not pattern.name:
        raise ValueError("expected a file, a folder or a glob such as criteria/*.yaml")
    return pattern


SECTIONS = (
    ("receivers",),
    *(("receivers", *section) for section in receiver_sections()),
    ("processors",),
    ("processors", "memory_limiter"),
    ("processors", "group_by_trace"),
    ("processors", "evaluation"),
    ("results",),
    ("service",),
    ("service", "telemetry"),
    ("service", "telemetry", "self_check"),
)
"""Parts of the file that may be written without anything in them, for their defaults, as in the Collector."""

FilePattern: TypeAlias = Annotated[Path, AfterValidator(_checked_pattern), WithJsonSchema({"type": "string"})]


class EvaluationConfig(WorkersConfig):
    """What agents are graded by."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    criteria: tuple[FilePattern, ...] | None = Field(
        default=None,
        min_length=1,
        description="Criteria files, folders of them or globs. Left out, built-in criteria that need no "
        "reference apply to every agent.",
        examples=[["criteria/*.yaml"]],
    )
    dialects: tuple[DialectMapping, ...] = Field(
        default=(),
        description="Telemetry conventions of your own. All known frameworks are read without any of these.",
    )

    @field_validator("dialects")
    @classmethod
    def _check_names(cls, dialects: tuple[DialectMapping, ...]) -> tuple[DialectMapping, ...]:
        taken = {dialect.name for dialect in discover_dialects()}
        for mapping in dialects:
            if mapping.name in taken:
                raise ValueError(f'two dialects are called "{mapping.name}": expected a name of its own')
            taken.add(mapping.name)
        return dialects


class ProcessorsConfig(BaseModel):
    """What happens to spans between receiving and exporting."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    memory_limiter: MemoryLimiterConfig = MemoryLimiterConfig()
    group_by_trace: GroupByTraceConfig = GroupByTraceConfig()
    evaluation: EvaluationConfig = EvaluationConfig()


class ServiceSection(BaseModel):
    """The service as a whole."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    telemetry: TelemetryConfig = TelemetryConfig()
    shutdown_timeout: Duration = Field(
        default=30.0, description="Time from SIGTERM in which everything held is delivered."
    )


class ServiceConfig(BaseModel):
    """The configuration of the service. There are no pipelines: every component written is active."""

    model_config = ConfigDict(extra="forbid", frozen=True, title="tracegrade configuration")

    receivers: ReceiversConfig = ReceiversConfig()
    processors: ProcessorsConfig = ProcessorsConfig()
    exporters: Mapping[str, SerializeAsAny[BaseModel]] = Field(
        default_factory=dict,
        description="Where spans and results go, by `type` or `type/name`. "
        "Left out, results go to the console.",
    )
    """Without `prometheus`: once the file is loaded its endpoint is that of `service.telemetry`, and the rest
    of it is `prometheus`."""
    results: ResultsConfig = ResultsConfig()
    service: ServiceSection = ServiceSection()

    _prometheus: PrometheusConfig = PrivateAttr(default_factory=PrometheusConfig)
    _references: Mapping[tuple[str | int, ...], str] = PrivateAttr(default_factory=dict)

    @property
    def prometheus(self) -> PrometheusConfig:
        """What the series of agents tell."""
        return self._prometheus

    @property
    def references(self) -> Mapping[tuple[str | int, ...], str]:
        """The settings that came from environment variables, by path, as written and without values."""
        return self._references

    def criteria_patterns(self) -> list[str] | None:
        """The criteria files to load; None: the built-in ones."""
        patterns = self.processors.evaluation.criteria
        return None if patterns is None else [str(pattern) for pattern in patterns]

    def own_dialects(self) -> list[MappedDialect]:
        """The telemetry conventions that the file describes."""
        return [MappedDialect(mapping) for mapping in self.processors.evaluation.dialects]

    def telemetry_endpoint(self) -> str:
        """Where metrics and health are served."""
        return self.service.telemetry.endpoint
