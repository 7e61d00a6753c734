"""The service file: its shape, its loading, and its printing. A component's own settings are in its room.

Every problem of a file is reported in one pass, in the words of its writer; a secret is neither in a message
nor in what is printed.
"""

import re
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from os.path import normpath
from pathlib import Path as FilesystemPath
from typing import Annotated, Any

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializeAsAny,
)

from collector.buffer import GroupByTraceConfig
from collector.cluster import ClusterConfig
from collector.config_fields import (
    EMPTY_IS_DEFAULTS,
    Duration,
    Section,
    parse_endpoint,
)
from collector.criteria import EvaluationConfig
from collector.exporters import (
    DeadLettersConfig,
    SpanExporterConfig,
    contents_of,
    exporter_types,
)
from collector.journal import JournalConfig
from collector.kafka_connection import KafkaConnectionConfig
from collector.memory_limiter import MemoryLimiterConfig
from collector.page import PageConfig
from collector.receivers import ReceiversConfig, listening_at
from collector.results_config import ResultsConfig
from collector.stability import LEVELS, Level, Stability
from collector.store import StoreConfig, StoreSection
from collector.telemetry import PrometheusConfig, TelemetryConfig
from collector.text_file import read_text_file
from processors.documents import (
    MASK,
    InvalidInput,
    LocatedYaml,
    Path,
    Problem,
    StrictModel,
    did_you_mean,
    expand,
    plain_scalar,
    read_yaml,
    validated,
    without_user_info,
)
from processors.model import JsonObject, JsonValue

PROMETHEUS = "prometheus"

_REFERENCE = re.compile(r"\$\{env:\w+\}\Z")
_COMPONENT_ID = re.compile(r"[a-z0-9_]+(?:/[A-Za-z0-9_.-]+)?\Z")
_PIPELINES = ("service", "pipelines")


class ProcessorsConfig(StrictModel):
    """What happens to spans between receiving and exporting."""

    memory_limiter: Section[MemoryLimiterConfig] = MemoryLimiterConfig()
    group_by_trace: Section[GroupByTraceConfig] = GroupByTraceConfig()
    evaluation: Section[EvaluationConfig] = EvaluationConfig()


class ServiceSection(StrictModel):
    """The service as a whole."""

    telemetry: Section[TelemetryConfig] = TelemetryConfig()
    shutdown_timeout: Duration = 30.0
    """Time after SIGTERM for delivering everything that is held."""
    dead_letters: DeadLettersConfig | None = None
    """Stores what backends reject permanently in a file, from which `tracegrade redrive` resends it. Without
    it such requests are dropped; they are counted either way."""


class ServiceConfig(StrictModel):
    """The configuration of the service. There are no pipelines: every component written is active."""

    model_config = ConfigDict(title="tracegrade configuration")

    receivers: Section[ReceiversConfig] = ReceiversConfig()
    processors: Section[ProcessorsConfig] = ProcessorsConfig()
    exporters: Mapping[str, SerializeAsAny[BaseModel]] = Field(
        default_factory=dict,
        description="Where spans and results go, by `type` or `type/name`. "
        "Left out, results go to the console.",
    )
    """Without `prometheus`: once the file is loaded its endpoint is that of `service.telemetry`, and the rest
    of it is `prometheus`."""
    results: Section[ResultsConfig] = ResultsConfig()
    journal: JournalConfig | None = None
    """Preserves acknowledged spans across crashes. Off unless configured."""
    store: StoreSection = StoreConfig()
    page: Annotated[PageConfig | None, EMPTY_IS_DEFAULTS] = None
    """A page for browsing runs. Off unless configured; on in `tracegrade run` without a file."""
    cluster: ClusterConfig | None = None
    """The replicas, if there is more than one."""
    service: Section[ServiceSection] = ServiceSection()

    _prometheus: PrometheusConfig = PrivateAttr(default_factory=PrometheusConfig)
    _references: Mapping[tuple[str | int, ...], str] = PrivateAttr(default_factory=dict)

    @property
    def prometheus(self) -> PrometheusConfig:
        """What the series of agents contain."""
        return self._prometheus

    @property
    def references(self) -> Mapping[tuple[str | int, ...], str]:
        """The settings that came from environment variables, by path, as written and without values."""
        return self._references

    @property
    def keeps_runs(self) -> bool:
        """Whether there is a store: in a file, or in memory."""
        return self.store.enabled and (self.store.path is not None or self.page is not None)

    @property
    def hides_conversations(self) -> str:
        """Why this process sees but some runs of a conversation; empty: it sees them all."""
        if self.cluster is not None:
            return "there are several replicas, and each sees the traces that it was given"
        if self.receivers.kafka is not None:
            return "traces come by the partitions of a topic, which other members of the group may read"
        return ""

    def criteria_patterns(self) -> list[str]:
        """The criteria to load: `builtin`, files, folders and globs."""
        return list(self.processors.evaluation.criteria)

    def telemetry_endpoint(self) -> str:
        """Where metrics and health are served."""
        return self.service.telemetry.endpoint


def exporter_models() -> dict[str, type[BaseModel]]:
    """The shape of the settings of each type of exporter, `prometheus` included."""
    models: dict[str, type[BaseModel]] = {name: kind.config_model for name, kind in exporter_types().items()}
    return {**models, PROMETHEUS: PrometheusConfig}


def load_configuration(path: FilesystemPath | None, environment: Mapping[str, str]) -> ServiceConfig:
    """The configuration in the file `path`; without one, the defaults.

    References to `environment` are replaced, and relative paths are made relative to the folder of the
    file. Whatever a component would open (certificates, criteria) is not looked at here.

    Raises:
        InvalidInput: the file cannot be read or holds mistakes: all of them.
    """
    if path is None:
        return parse_configuration("{}", "built-in configuration", environment)
    return parse_configuration(read_text_file(path), str(path), environment, path.parent)


def parse_configuration(
    text: str, file: str, environment: Mapping[str, str], folder: FilesystemPath | None = None
) -> ServiceConfig:
    """The configuration in `text`; raises as `load_configuration` does.

    `file` is the name that messages use, `folder` what relative paths are relative to; without one they
    stay as they are written.
    """
    document = read_yaml(text, file, partial(expand, environment=environment, dollars="service"))
    problems: list[Problem] = []
    content = {} if document.value is None else document.value
    exporters: dict[str, BaseModel] = {}
    if isinstance(content, dict):
        content = _without_pipelines(content, document, problems)
        exporters = _exporters(content.get("exporters"), document, problems, folder)
        content = {**content, "exporters": {}}
    config = validated(ServiceConfig, content, document, problems, context=folder)
    if config is not None:
        problems += _unused_exporters(exporters, config.results, document)
        problems += _lost_log_records(exporters, config.results, document)
        if config.journal is not None and config.receivers.kafka is not None:
            message = "Kafka keeps what is not delivered: expected no journal together with receivers.kafka"
            problems.append(document.problem(("journal",), message))
    problems += _shared_resources(config, exporters, document)
    problems = document.all_problems(problems)
    if problems or config is None:
        raise InvalidInput(problems)
    config = _with_exporters(config, exporters)
    config._references = {path: str(place.reference) for path, place in document.references()}
    return config


def print_configuration(config: ServiceConfig) -> str:
    """`config` as YAML, with every default but those that mean nothing, and without secrets.

    What came from the environment is printed as the reference that it was. Before what is not stable a
    comment says so.
    """
    content = config.model_dump(mode="json", exclude_none=True)
    if config.prometheus.model_dump(exclude={"endpoint"}, exclude_defaults=True):
        content["exporters"][PROMETHEUS] = config.prometheus.model_dump(mode="json", exclude={"endpoint"})
    if "log" in config.results.emit and not _takes_log_records(config.exporters, config.results):
        del content["results"]["emit"]  # written it would be a mistake
    for path, reference in config.references.items():
        _replace(content, path, reference)
    text = yaml.dump(_masked(content), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    lines = text.split("\n")
    for line, level in sorted(_unstable(read_yaml(text, "")), reverse=True):
        indent = len(lines[line - 1]) - len(lines[line - 1].lstrip())
        lines.insert(line - 1, f"{' ' * indent}# {level}")
    return "\n".join(lines)


def _unstable(document: LocatedYaml) -> Iterator[tuple[int, Level]]:
    """The lines with parts of which the level is not stable."""
    for path in document.paths():
        names = [str(step) for step in path]
        if names[0] == "exporters":
            names[1:2] = [name.partition("/")[0] for name in names[1:2]]
        level = LEVELS["option"].get(".".join(names))
        if level is not None and level.stability is not Stability.STABLE:
            yield document.line(path), level


class _Dumper(yaml.SafeDumper):
    """Puts in quotes what `read_yaml` would not read as a text: it knows more numbers than PyYAML."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """A text, in quotes where it needs them."""
        try:
            is_plain = isinstance(plain_scalar(data), str)
        except ValueError:
            is_plain = False
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if is_plain else "'")


_Dumper.add_representer(str, _Dumper.represent_str)


def _without_pipelines(content: JsonObject, document: LocatedYaml, problems: list[Problem]) -> JsonObject:
    """`content` without pipelines, which are reported: their writer would expect them to have an effect."""
    if document.place_of(_PIPELINES) is None:
        return content
    message = "there are no pipelines: every component written is active"
    problems.append(document.problem(_PIPELINES, message))
    section, key = _PIPELINES
    written = content[section]
    assert isinstance(written, dict)  # or it would have no key
    return {**content, section: {name: value for name, value in written.items() if name != key}}


def _exporters(
    value: JsonValue, document: LocatedYaml, problems: list[Problem], folder: FilesystemPath | None
) -> dict[str, BaseModel]:
    """The configuration of each exporter; without any, the one that prints to the console."""
    types = exporter_models()
    if value is None or value == {}:
        return {"debug": types["debug"].model_validate({})}
    if not isinstance(value, dict):
        problems.append(
            document.problem(("exporters",), "expected a mapping of exporter ids to their settings")
        )
        return {}
    collected: dict[str, BaseModel] = {}
    for exporter, settings in value.items():
        path = ("exporters", exporter)
        kind = exporter.partition("/")[0]
        if kind not in types:
            message = f'unknown exporter type "{kind[:100]}"{did_you_mean(kind, list(types))}'
            problems.append(document.problem(path, message))
        elif not _COMPONENT_ID.match(exporter) or (kind == PROMETHEUS and exporter != kind):
            expected = f'expected "{kind}"' + ("" if kind == PROMETHEUS else f' or "{kind}/name"')
            problems.append(document.problem(path, f"not an exporter id: {expected}"))
        else:
            written = {} if settings is None else settings
            config = validated(types[kind], written, document, problems, path, folder)
            if config is not None:
                collected[exporter] = config
    return collected


def _unused_exporters(
    exporters: Mapping[str, BaseModel], results: ResultsConfig, document: LocatedYaml
) -> Iterator[Problem]:
    """Exporters of spans, and settings of them, that nothing would go to in this way of giving results."""
    for name, exporter in exporters.items():
        if not isinstance(exporter, SpanExporterConfig):
            continue
        if not contents_of(exporter, results):
            spans = (
                'results.mode "verdicts_only" forwards no spans'
                if "traces" in exporter.accepts
                else "it takes no spans"
            )
            message = f"nothing would go there: {spans}, and results.emit names no form that it takes"
            yield document.problem(("exporters", name), message)
        elif results.mode == "verdicts_only" and "log" not in results.emit:
            for key in ("logs_path", "logs_endpoint"):
                if getattr(exporter, key, None) is not None:
                    message = 'in results.mode "verdicts_only" it needs "log" in results.emit'
                    yield document.problem(("exporters", name, key), message)


def _lost_log_records(
    exporters: Mapping[str, BaseModel], results: ResultsConfig, document: LocatedYaml
) -> Iterator[Problem]:
    """Log records that are requested and that no exporter takes."""
    path = ("results", "emit")
    is_written = document.place_of(path) is not None
    if is_written and "log" in results.emit and not _takes_log_records(exporters, results):
        message = '"log" goes nowhere: expected logs in the signals of an exporter, or a file with logs_path'
        yield document.problem(path, message)


def _takes_log_records(exporters: Mapping[str, BaseModel], results: ResultsConfig) -> bool:
    return any("log" in contents_of(exporter, results) for exporter in exporters.values())


def _shared_resources(
    config: ServiceConfig | None, exporters: Mapping[str, BaseModel], document: LocatedYaml
) -> Iterator[Problem]:
    """Addresses, topics and files that two settings name: they would mix, or read each other's."""
    taken: dict[Hashable, Path] = {}
    known: set[Path] = set()
    for path, kind, value in _resources(config, exporters):
        first = taken.setdefault((kind, value), path)
        if first != path and path not in known:
            known.add(path)  # a topic may be shared at several brokers
            hint = ": expected another port" if kind == "address" else ""
            yield document.problem(path, f"{'.'.join(map(str, first))} is the same {kind}{hint}")


def _resources(
    config: ServiceConfig | None, exporters: Mapping[str, BaseModel]
) -> Iterator[tuple[Path, str, Hashable]]:
    """The path of each setting that names a resource, the kind of the resource, and which one it is."""
    kafka: list[tuple[Path, Any]] = [(("exporters", name), exporter) for name, exporter in exporters.items()]
    files: list[tuple[Path, Any]] = [
        (("exporters", name, key), getattr(exporter, key, None))
        for name, exporter in exporters.items()
        for key in ("path", "logs_path")
    ]
    if config is not None:
        kafka.insert(0, (("receivers", "kafka"), config.receivers.kafka))
        if config.service.dead_letters is not None:
            files.append((("service", "dead_letters", "path"), config.service.dead_letters.path))
        files.append((("store", "path"), config.store.path))
        listeners: list[tuple[Path, str]] = [*listening_at(config.receivers, ("receivers",))]
        if endpoint := getattr(exporters.get(PROMETHEUS), "endpoint", None):
            listeners.append((("exporters", PROMETHEUS, "endpoint"), endpoint))
        else:
            listeners.append((("service", "telemetry", "endpoint"), config.service.telemetry.endpoint))
        if config.page is not None:
            listeners.append((("page", "endpoint"), config.page.endpoint))
        for path, text in listeners:
            if (address := parse_endpoint(text))[1]:  # port 0 takes a free one
                yield path, "address", address
    for path, settings in kafka:
        if isinstance(settings, KafkaConnectionConfig):
            for broker in settings.brokers:
                for key, topic in settings.topics.items():
                    yield (*path, key), "topic", (broker, topic)
    for path, file in files:
        if file is not None:
            yield path, "file", normpath(file)


def _with_exporters(config: ServiceConfig, exporters: dict[str, BaseModel]) -> ServiceConfig:
    """`config` with `exporters`; the endpoint of `prometheus` becomes that of the telemetry."""
    service = config.service
    prometheus = exporters.pop(PROMETHEUS, None)
    if isinstance(prometheus, PrometheusConfig) and prometheus.endpoint is not None:
        telemetry = service.telemetry.model_copy(update={"endpoint": prometheus.endpoint})
        service = service.model_copy(update={"telemetry": telemetry})
    config = config.model_copy(update={"exporters": exporters, "service": service})
    if isinstance(prometheus, PrometheusConfig):
        config._prometheus = prometheus.model_copy(update={"endpoint": None})
    return config


def _replace(content: Any, path: Path, reference: str) -> None:
    """Put `reference` where the value at `path` is, if there is one."""
    with suppress(KeyError, IndexError, TypeError):
        for step in path[:-1]:
            content = content[step]
        # The text around a reference may be secret as well.
        if content[path[-1]] != MASK or _REFERENCE.match(reference):
            content[path[-1]] = reference


def _masked(value: object) -> object:
    if isinstance(value, dict):
        return {key: _masked(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner) for inner in value]
    return without_user_info(value) if isinstance(value, str) else value
