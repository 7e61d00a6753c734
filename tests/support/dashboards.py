"""The dashboards that ship, read as a test needs them: their panels, queries and variables.

`fill_in` puts values where Grafana would: what a query is then is what Prometheus gets.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from processors.model import JsonObject, JsonValue

GRAFANA = Path(__file__).parent.parent.parent / "deploy" / "grafana"
_LABEL_VALUES = re.compile(r"^label_values\((?P<selector>.+), (?P<label>[a-z_]+)\)$")
_VARIABLE = re.compile(r"\$(\w+|\{\w+\})")


@dataclass(frozen=True)
class DashboardQuery:
    """A query of a panel, or of an annotation (`panel` is its name then)."""

    dashboard: str
    panel: str
    ref: str
    expression: str
    legend: str
    instant: bool
    exemplar: bool

    def __str__(self) -> str:
        return f"{self.dashboard} / {self.panel} / {self.ref}"


@dataclass(frozen=True)
class VariableQuery:
    """A variable that offers the values of `label` in the series that `selector` selects."""

    dashboard: str
    name: str
    selector: str
    label: str

    def __str__(self) -> str:
        return f"{self.dashboard} / ${self.name}"


def dashboards() -> list[JsonObject]:
    """All dashboards, by file name."""
    return [json.loads(path.read_text()) for path in sorted((GRAFANA / "dashboards").glob("*.json"))]


def objects(value: JsonValue) -> list[JsonObject]:
    """`value` as the list of objects that it has to be."""
    assert isinstance(value, list)
    assert all(isinstance(item, dict) for item in value)
    return [item for item in value if isinstance(item, dict)]


def member(value: JsonValue, *keys: str) -> JsonValue:
    """The value at a path of keys; fails if there is none."""
    for key in keys:
        assert isinstance(value, dict), f"no {key}"
        assert key in value, f"no {key}"
        value = value[key]
    return value


def panels(dashboard: JsonObject, *, rows: bool = False) -> list[JsonObject]:
    """The panels of a dashboard; the headings of rows only if asked for."""
    return [panel for panel in objects(dashboard["panels"]) if rows or panel["type"] != "row"]


def panel_queries() -> Iterator[DashboardQuery]:
    """The queries of all panels."""
    for dashboard in dashboards():
        for panel in panels(dashboard):
            for target in objects(panel.get("targets", [])):
                yield DashboardQuery(
                    str(dashboard["uid"]),
                    str(panel["title"]),
                    str(target["refId"]),
                    str(target["expr"]),
                    str(target["legendFormat"]),
                    bool(target["instant"]),
                    bool(target["exemplar"]),
                )


def annotation_queries() -> Iterator[DashboardQuery]:
    """The queries of all annotations."""
    for dashboard in dashboards():
        for annotation in objects(member(dashboard, "annotations", "list")):
            expression = str(member(annotation, "target", "expr"))
            legend = f"{annotation['titleFormat']} {annotation['textFormat']}"
            yield DashboardQuery(
                str(dashboard["uid"]), str(annotation["name"]), "Anno", expression, legend, False, False
            )


def variable_queries() -> Iterator[VariableQuery]:
    """The queries of all variables that have one."""
    for dashboard in dashboards():
        for variable in objects(member(dashboard, "templating", "list")):
            if variable["type"] == "query":
                query = _LABEL_VALUES.match(str(member(variable, "query", "query")))
                assert query is not None, variable
                yield VariableQuery(
                    str(dashboard["uid"]), str(variable["name"]), query["selector"], query["label"]
                )


def fill_in(expression: str, values: Mapping[str, str]) -> str:
    """`expression` with the variables replaced; fails on one that `values` does not have."""
    return _VARIABLE.sub(lambda found: values[found[1].strip("{}")], expression)


ANY = {
    "__range": "1h",
    "__rate_interval": "1m",
    "job": ".+",
    "instance": ".+",
    "agent": ".+",
    "evaluation": ".+",
    "version": ".*",
}
"""Values that make any query PromQL."""


def legend_labels(query: DashboardQuery) -> set[str]:
    """The labels that the legend shows."""
    return set(re.findall(r"\{\{\s*(\w+)\s*\}\}", query.legend))
