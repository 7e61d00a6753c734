"""Everything that users can rely on says how far."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from collector.commands import COMMANDS
from collector.configuration.service_file import (
    ServiceConfig,
    exporter_models,
    load_configuration,
    parse_configuration,
    print_configuration,
)
from collector.criteria import default_file
from collector.stability import LEVELS, Kind, Stability, level_of
from collector.telemetry import Metrics
from collector.tools.alerting import ObjectivesFile, RuleInputs, rules_text
from docs.generate.stability import stability_reference
from tests.support.backend_server import PROJECT

KINDS = get_args(Kind)


def names(kind: Kind) -> list[str]:
    """Everything of one kind that the product has."""
    if kind == "command":
        return list(COMMANDS)
    if kind == "metric":
        return [instrument.name for instrument in Metrics().instruments()]
    if kind == "rule":
        groups = yaml.safe_load(rules_text(RuleInputs()))["groups"]
        return [rule.get("alert") or rule["record"] for group in groups for rule in group["rules"]]
    found = [*_options(ServiceConfig, ""), *_options(ObjectivesFile, "objectives.")]
    return found + [
        name for kind, model in exporter_models().items() for name in _options(model, f"exporters.{kind}.")
    ]


def _options(model: type[BaseModel], prefix: str) -> Iterator[str]:
    """The paths of the settings of `model` that are no sections; `exporters` is listed by type."""
    for name, field in model.model_fields.items():
        sections = [part for part in _parts(field.annotation) if issubclass(part, BaseModel)]
        for section in sections:
            yield from _options(section, f"{prefix}{name}.")
        if not sections and name != "exporters":
            yield prefix + name


def _parts(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for argument in get_args(annotation):
        yield from _parts(argument)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_has_a_level(kind: Kind) -> None:
    assert [] == [name for name in names(kind) if level_of(kind, name) is None]


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_covers_something(kind: Kind) -> None:
    covered = {name: level_of(kind, name) for name in names(kind)}

    unused = [row for row in LEVELS[kind] if not any(name.startswith(row) for name in covered)]
    assert [] == unused


def test_what_is_experimental_states_when_it_is_decided() -> None:
    for rows in LEVELS.values():
        for name, level in rows.items():
            assert (level.stability is Stability.EXPERIMENTAL) == bool(level.decision), name


def test_print_config_marks_what_is_not_stable() -> None:
    text = "exporters: {kafka/a: {brokers: ['b:1'], topic: t}, otlp/b: {endpoint: 'a:1'}}"
    lines = print_configuration(parse_configuration(text, "tracegrade.yaml", {})).splitlines()

    assert ["exporters:", "  # beta"] == lines[lines.index("  kafka/a:") - 2 :][:2]
    server = next(number for number, line in enumerate(lines) if line.strip() == "server: grpcio")
    assert "        # experimental: stays once" in lines[server - 1]
    assert "# beta" not in lines[lines.index("  otlp/b:") - 1]


def test_what_print_config_prints_reads_as_before() -> None:
    config = load_configuration(default_file("tracegrade.yaml"), {})
    printed = print_configuration(config)

    assert printed == print_configuration(parse_configuration(printed, "tracegrade.yaml", {}))


def test_the_page_lists_every_row() -> None:
    page = stability_reference()

    assert all(f"| `{name}` |" in page for rows in LEVELS.values() for name in rows)


def test_the_page_is_the_one_of_the_table() -> None:
    assert (PROJECT / "docs" / "stability.md").read_text() == stability_reference(), "run: make reference"
