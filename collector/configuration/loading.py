"""Loads and prints the service file.

Every problem of a file is found in one pass and told in the words of its writer; a secret is neither in a
message nor in what is printed.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from os.path import normpath
from pathlib import Path
from typing import TypeVar, cast

import yaml
from pydantic import BaseModel

from collector.configuration.json_schemas import schema_documents
from collector.configuration.service_config import SECTIONS, ServiceConfig
from collector.endpoint import parse_endpoint
from collector.exporters.assembly import (
    exporter_types,
    receives_evaluation_spans,
    receives_log_records,
    receives_spans,
)
from collector.exporters.span_exporter_config import SpanExporterConfig
from collector.receivers.assembly import listening_at
from collector.results_config import ResultsConfig
from collector.telemetry.prometheus_config import PrometheusConfig
from collector.text_file import read_text_file
from processors.documents.environment import expand
from processors.documents.located_yaml import LocatedYaml, Place, read_yaml
from processors.documents.model_problems import MASK, validated, without_user_info
from processors.documents.problem import Problem, ProblemsFound, did_you_mean
from processors.documents.yaml_scalar import plain_scalar
from processors.model.json_value import JsonObject, JsonValue

__all__ = ["ServiceConfig", "load_configuration", "print_configuration", "schema_documents"]

PROMETHEUS = "prometheus"

_REFERENCE = re.compile(r"\$\{env:\w+\}\Z")
_COMPONENT_ID = re.compile(r"[a-z0-9_]+(?:/[A-Za-z0-9_.-]+)?\Z")
_PLANNED: Mapping[tuple[str, ...], str] = {
    ("journal",): '"journal" is not supported by this version: held spans live in memory',
    ("service", "pipelines"): "there are no pipelines: every component written is active",
}
ModelT = TypeVar("ModelT", bound=BaseModel)


def load_configuration(path: Path | None, environment: Mapping[str, str]) -> ServiceConfig:
    """The configuration in the file `path`; without one, the defaults.

    References to `environment` are replaced, and relative paths are made relative to the folder of the
    file. Whatever a component would open (certificates, criteria) is not looked at here.

    Raises:
        ProblemsFound: the file cannot be read or holds mistakes: all of them.
    """
    text = "{}"
    file = "built-in configuration"
    if path is not None:
        file = str(path)
        text = read_text_file(path)
    config = parse_configuration(text, file, environment)
    return config if path is None else _with_paths_relative_to(config, path.parent)


def parse_configuration(text: str, file: str, environment: Mapping[str, str]) -> ServiceConfig:
    """The configuration in `text`, with paths as they are written; raises as `load_configuration` does.

    `file` is the name that messages use.
    """
    document = read_yaml(text, file, partial(expand, environment=environment, dollars="service"))
    problems: list[Problem] = []
    content = document.value if document.value is not None else {}
    exporters: dict[str, BaseModel] = {}
    if isinstance(content, dict):
        content = _with_empty_sections(_without_planned(content, document, problems))
        exporters = _exporters(content.get("exporters"), document, problems)
        content = {**content, "exporters": {}}
    config = validated(ServiceConfig, content, document, problems)
    if config is not None:
        problems += _unused_exporters(exporters, config.results, document)
        problems += _shared_addresses(config, exporters, document)
    problems += _shared_files(exporters, document)
    problems = document.all_problems(problems)
    if problems or config is None:
        raise ProblemsFound(problems)
    config = _with_exporters(config, exporters)
    config._references = dict(_references(document.place))
    return config


def print_configuration(config: ServiceConfig) -> str:
    """`config` as YAML, with every default and without secrets.

    What came from the environment is printed as the reference that it was.
    """
    content = config.model_dump(mode="json")
    if config.prometheus.model_dump(exclude={"endpoint"}, exclude_defaults=True):
        content["exporters"][PROMETHEUS] = config.prometheus.model_dump(mode="json", exclude={"endpoint"})
    protocols = content["receivers"]["otlp"]["protocols"]
    for name in [name for name, listener in protocols.items() if listener is None]:
        del protocols[name]  # written without settings it would be on
    for path, reference in config.references.items():
        _replace(content, path, reference)
    return yaml.dump(_masked(content), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


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


def _without_planned(content: JsonObject, document: LocatedYaml, problems: list[Problem]) -> JsonObject:
    """`content` without settings of features that are not built yet, each of them reported."""
    for path, message in _PLANNED.items():
        if document.place_of(path) is not None:
            problems.append(document.problem(path, message))
            content = _without(content, path)
    return content


def _without(content: JsonObject, path: tuple[str, ...]) -> JsonObject:
    inner = content.get(path[0])
    if len(path) == 1:
        return {key: value for key, value in content.items() if key != path[0]}
    return {**content, path[0]: _without(inner, path[1:])} if isinstance(inner, dict) else content


def _with_empty_sections(content: JsonObject) -> JsonObject:
    """`content` with `{}` where a section is written without anything in it, as in the Collector."""
    for path in SECTIONS:
        content = _fill(content, path)
    return content


def _fill(content: JsonObject, path: tuple[str, ...]) -> JsonObject:
    if path[0] not in content:
        return content
    inner = content[path[0]]
    if len(path) == 1:
        return {**content, path[0]: {}} if inner is None else content
    return {**content, path[0]: _fill(inner, path[1:])} if isinstance(inner, dict) else content


def _exporters(value: JsonValue, document: LocatedYaml, problems: list[Problem]) -> dict[str, BaseModel]:
    """The configuration of each exporter; without any, the one that prints to the console."""
    types: dict[str, type[BaseModel]] = {
        name: component.config_model for name, component in exporter_types().items()
    }
    types[PROMETHEUS] = PrometheusConfig
    if value is None or value == {}:
        return {"debug": types["debug"].model_validate({})}
    if not isinstance(value, dict):
        problems.append(
            document.problem(("exporters",), "expected a mapping of exporter ids to their settings")
        )
        return {}
    found: dict[str, BaseModel] = {}
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
            config = validated(types[kind], {} if settings is None else settings, document, problems, path)
            if config is not None:
                found[exporter] = config
    return found


def _unused_exporters(
    exporters: Mapping[str, BaseModel], results: ResultsConfig, document: LocatedYaml
) -> Iterator[Problem]:
    """Exporters of spans, and settings of them, that nothing would go to in this way of giving results."""
    for name, exporter in exporters.items():
        if not isinstance(exporter, SpanExporterConfig):
            continue
        if not (
            receives_spans(exporter, results)
            or receives_log_records(exporter, results)
            or receives_evaluation_spans(exporter, results)
        ):
            spans = (
                'results.mode "verdicts_only" forwards no spans'
                if exporter.takes_spans
                else "it takes no spans"
            )
            message = f"nothing would go there: {spans}, and results.emit names no form that it takes"
            yield document.problem(("exporters", name), message)
        elif "log" not in results.emit:
            for key in ("logs_path", "logs_endpoint"):
                if getattr(exporter, key, None) is not None:
                    yield document.problem(("exporters", name, key), 'needs "log" in results.emit')


def _shared_files(exporters: Mapping[str, BaseModel], document: LocatedYaml) -> Iterator[Problem]:
    """Files that two settings of exporters name: what is in them could not be told apart."""
    taken: dict[str, str] = {}
    for name, exporter in exporters.items():
        for key in ("path", "logs_path"):
            file = getattr(exporter, key, None)
            if file is not None:
                where = f"exporters.{name}.{key}"
                first = taken.setdefault(normpath(file), where)
                if first != where:
                    yield document.problem(("exporters", name, key), f"{first} is the same file")


def _shared_addresses(
    config: ServiceConfig, exporters: Mapping[str, BaseModel], document: LocatedYaml
) -> Iterator[Problem]:
    """Endpoints at which two listeners would be."""
    prometheus = exporters.get(PROMETHEUS)
    endpoint = prometheus.endpoint if isinstance(prometheus, PrometheusConfig) else None
    listeners = [
        *listening_at(config.receivers, ("receivers",)),
        (("service", "telemetry", "endpoint"), None if endpoint else config.service.telemetry.endpoint),
        (("exporters", PROMETHEUS, "endpoint"), endpoint),
    ]
    taken: dict[tuple[str, int], tuple[str, ...]] = {}
    for path, text in listeners:
        address = parse_endpoint(text or ":0")
        if address[1]:  # 0 takes a free port
            first = taken.setdefault(address, path)
            if first != path:
                message = f"{'.'.join(first)} is the same address: expected another port"
                yield document.problem(path, message)


def _with_exporters(config: ServiceConfig, exporters: Mapping[str, BaseModel]) -> ServiceConfig:
    """`config` with `exporters`; the endpoint of `prometheus` becomes that of the telemetry."""
    service = config.service
    prometheus = exporters.get(PROMETHEUS)
    if isinstance(prometheus, PrometheusConfig) and prometheus.endpoint is not None:
        telemetry = service.telemetry.model_copy(update={"endpoint": prometheus.endpoint})
        service = service.model_copy(update={"telemetry": telemetry})
    others = {name: exporter for name, exporter in exporters.items() if name != PROMETHEUS}
    config = config.model_copy(update={"exporters": others, "service": service})
    if isinstance(prometheus, PrometheusConfig):
        config._prometheus = prometheus.model_copy(update={"endpoint": None})
    return config


def _with_paths_relative_to(model: ModelT, folder: Path) -> ModelT:
    """`model` with every relative path in it, at any depth, below `folder`."""
    update = {}
    for name in type(model).model_fields:
        value = getattr(model, name)
        moved = _moved(value, folder)
        if moved is not value:
            update[name] = moved
    return model.model_copy(update=update) if update else model


def _moved(value: object, folder: Path) -> object:
    if isinstance(value, Path):
        return folder / value
    if isinstance(value, BaseModel):
        return _with_paths_relative_to(value, folder)
    if isinstance(value, Mapping):
        return {key: _moved(inner, folder) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_moved(inner, folder) for inner in value)
    return value


def _references(
    place: Place, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if place.reference is not None:
        yield path, place.reference
    for step, inner in place.children.items():
        yield from _references(inner, (*path, step))


def _replace(content: object, path: tuple[str | int, ...], reference: str) -> None:
    """Put `reference` where the value at `path` is, if there is one."""
    for step in path[:-1]:
        if isinstance(content, dict):
            content = content.get(step)
        elif isinstance(content, list) and isinstance(step, int) and step < len(content):
            content = content[step]
        else:
            return
    last = path[-1]
    if (isinstance(content, dict) and last in content) or (
        isinstance(content, list) and isinstance(last, int) and last < len(content)
    ):
        holder = cast("dict[str | int, object]", content)
        if holder[last] != MASK or _REFERENCE.match(reference):  # the text around one may be secret as well
            holder[last] = reference


def _masked(value: object) -> object:
    if isinstance(value, dict):
        return {key: _masked(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner) for inner in value]
    return without_user_info(value) if isinstance(value, str) else value
