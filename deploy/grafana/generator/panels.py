"""Panels of a dashboard, as Grafana's JSON: each builder gives one kind of panel its settings.

A panel's id follows from its title, so that links to a panel outlive the panels around it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from deploy.grafana.generator.promql import MIN_VERDICTS, NOT_ENOUGH_DATA
from processors.model import JsonObject, JsonValue

DATA_SOURCE: JsonObject = {"type": "prometheus", "uid": "${datasource}"}
RUNBOOKS = "https://github.com/tracegrade/tracegrade/blob/main/docs/runbooks.md"

SHARE_OF_PASSES = (("red", None), ("orange", 0.8), ("green", 0.95), ("text", 1.01))
"""Colours of pass rates and scores; what is above 1 is `NOT_ENOUGH_DATA`, which is never green."""
SHARE_OF_TROUBLE = (("green", None), ("orange", 0.01), ("red", 0.05))
COUNT_OF_TROUBLE = (("green", None), ("red", 1))
NO_JUDGEMENT = (("text", None),)

_COARSE = 120
"""Points over the time range where each is to hold several runs, or a bar is to be seen."""

Thresholds = Sequence[tuple[str, float | None]]


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a panel.

    Attributes:
        expression: PromQL with Grafana's variables.
        legend: What the series is called; in a table, the heading of the value's column.
        exemplar: Show exemplars, too; `expression` then selects the `_bucket` series that carry them.
    """

    expression: str
    legend: str = ""
    exemplar: bool = False


def text(title: str, content: str, *, height: int = 6) -> JsonObject:
    """A text over the whole width, in Markdown."""
    panel = _panel("text", title, "What good looks like, and what to do when it does not.", 24, height)
    return panel | {"options": {"mode": "markdown", "content": content}}


def stat(
    title: str,
    about: str,
    expression: str,
    *,
    unit: str = "short",
    thresholds: Thresholds = NO_JUDGEMENT,
    mappings: Mapping[str, tuple[str, str]] | None = None,
    runbook: str = "",
    width: int = 4,
    decimals: int | None = None,
) -> JsonObject:
    """One number for the whole time range; `mappings` gives values a text and a colour of their own."""
    panel = _panel("stat", title, about, width, 4, runbook)
    defaults = _defaults(unit, thresholds, mappings)
    if decimals is not None:
        defaults["decimals"] = decimals
    defaults["noValue"] = "no data"
    panel["fieldConfig"] = {"defaults": defaults, "overrides": []}
    panel["options"] = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "showPercentChange": False,
        "textMode": "auto",
        "wideLayout": True,
    }
    panel["targets"] = _targets([Query(expression)], instant=True)
    return panel


def time_series(
    title: str,
    about: str,
    queries: Sequence[Query],
    *,
    unit: str = "short",
    bars: bool = False,
    thresholds: Thresholds = (),
    colors: Mapping[str, str] | None = None,
    maximum: float | None = None,
    minimum: float | None = 0,
    links: Sequence[JsonObject] = (),
    runbook: str = "",
    width: int = 12,
    height: int = 8,
) -> JsonObject:
    """Lines, or stacked bars, over time. `colors` gives series their colour by name."""
    panel = _panel("timeseries", title, about, width, height, runbook)
    if bars or any(query.exemplar for query in queries):
        panel["maxDataPoints"] = _COARSE
    custom: JsonObject = {
        "drawStyle": "bars" if bars else "line",
        "fillOpacity": 70 if bars else 0,
        "lineWidth": 1,
        "showPoints": "never" if bars else "auto",
        "spanNulls": False,
        "stacking": {"mode": "normal" if bars else "none", "group": "A"},
    }
    if thresholds:
        custom["thresholdsStyle"] = {"mode": "dashed"}
    defaults = _defaults(unit, thresholds or (("green", None),), None)
    defaults |= {"custom": custom, "color": {"mode": "palette-classic"}}
    if minimum is not None:
        defaults["min"] = minimum
    if maximum is not None:
        defaults["max"] = maximum
    if links:
        defaults["links"] = list(links)
    overrides: list[JsonValue] = [
        _override(name, {"color": {"mode": "fixed", "fixedColor": color}})
        for name, color in (colors or {}).items()
    ]
    panel["fieldConfig"] = {"defaults": defaults, "overrides": overrides}
    panel["options"] = {
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    panel["targets"] = _targets(queries, instant=False)
    return panel


def state_timeline(
    title: str,
    about: str,
    query: Query,
    *,
    links: Sequence[JsonObject] = (),
    runbook: str = "",
    height: int = 9,
) -> JsonObject:
    """Shares as coloured bars over time, a row for each series; not enough data has a colour of its own."""
    panel = _panel("state-timeline", title, about, 24, height, runbook)
    defaults = _defaults("percentunit", SHARE_OF_PASSES, None)
    defaults |= {
        "color": {"mode": "thresholds"},
        "custom": {"fillOpacity": 80, "lineWidth": 0},
        "decimals": 0,
    }
    if links:
        defaults["links"] = list(links)
    panel["fieldConfig"] = {"defaults": defaults, "overrides": []}
    panel["options"] = {
        "alignValue": "left",
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
        "mergeValues": True,
        "rowHeight": 0.85,
        "showValue": "auto",
        "tooltip": {"mode": "single", "sort": "none"},
    }
    panel["targets"] = _targets([query], instant=False)
    return panel


def heatmap(title: str, about: str, query: Query, *, unit: str = "none", width: int = 12) -> JsonObject:
    """How many observations fell into each bucket, over time."""
    panel = _panel("heatmap", title, about, width, 8) | {"maxDataPoints": _COARSE}
    panel["fieldConfig"] = {"defaults": {"custom": {}, "unit": unit}, "overrides": []}
    panel["options"] = {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "exponent": 0.5,
            "fill": "dark-orange",
            "mode": "scheme",
            "reverse": False,
            "scale": "exponential",
            "scheme": "Oranges",
            "steps": 64,
        },
        "exemplars": {"color": "rgba(31, 96, 196, 0.9)"},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "showValue": "never",
        "tooltip": {"mode": "single", "showColorScale": False, "yHistogram": True},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": unit},
    }
    panel["targets"] = _targets([query], instant=False, form="heatmap")
    return panel


@dataclass(frozen=True, slots=True)
class Column:
    """How one column of a table is shown. `field` is a label, or the legend of the query it comes from."""

    field: str
    title: str
    unit: str = ""
    thresholds: Thresholds = ()
    link: str = ""
    link_title: str = ""


def table(
    title: str,
    about: str,
    queries: Sequence[Query],
    columns: Sequence[Column],
    *,
    sort_by: str,
    descending: bool = True,
    unit: str = "short",
    runbook: str = "",
    width: int = 24,
    height: int = 9,
) -> JsonObject:
    """The answers of `queries` now, as rows joined by their common labels.

    Labels that are no column are left out. `sort_by` is the title of a column.
    """
    panel = _panel("table", title, about, width, height, runbook)
    defaults = _defaults(unit, NO_JUDGEMENT, None)
    defaults["custom"] = {
        "align": "auto",
        "cellOptions": {"type": "auto"},
        "filterable": True,
        "inspect": False,
    }
    panel["fieldConfig"] = {
        "defaults": defaults,
        "overrides": [
            _override(column.title, properties) for column in columns if (properties := _shown(column))
        ],
    }
    panel["options"] = {
        "cellHeight": "sm",
        "enablePagination": True,
        "frameIndex": 0,
        "showHeader": True,
        "sortBy": [{"displayName": sort_by, "desc": descending}],
    }
    panel["targets"] = _targets(queries, instant=True, form="table")
    # Grafana names the value of query A "Value #A" where there are several, "Value" where there is one.
    values = {
        query.legend: f"Value #{_letter(index)}" if len(queries) > 1 else "Value"
        for index, query in enumerate(queries)
    }
    names = [values.get(column.field, column.field) for column in columns]
    panel["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "filterFieldsByName", "options": {"include": {"names": [*names]}}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {},
                "indexByName": {name: index for index, name in enumerate(names)},
                "renameByName": {name: column.title for name, column in zip(names, columns, strict=True)},
            },
        },
    ]
    return panel


def link(title: str, url: str) -> JsonObject:
    """A link of a panel or a value."""
    return {"title": title, "url": url, "targetBlank": False}


def _panel(kind: str, title: str, about: str, width: int, height: int, runbook: str = "") -> JsonObject:
    panel: JsonObject = {
        "id": crc32(title.encode()) % 1_000_000,
        "type": kind,
        "title": title,
        "description": about,
        "gridPos": {"x": 0, "y": 0, "w": width, "h": height},
    }
    if kind != "text":
        panel["datasource"] = DATA_SOURCE
    if runbook:
        panel["links"] = [dashboard_link(f"Runbook: {runbook}", f"{RUNBOOKS}#{runbook.lower()}")]
    return panel


def dashboard_link(title: str, url: str) -> JsonObject:
    """A link to a page outside Grafana."""
    return {
        "asDropdown": False,
        "icon": "doc",
        "includeVars": False,
        "keepTime": False,
        "tags": [],
        "targetBlank": True,
        "title": title,
        "tooltip": "",
        "type": "link",
        "url": url,
    }


def _defaults(
    unit: str, thresholds: Thresholds, mappings: Mapping[str, tuple[str, str]] | None
) -> JsonObject:
    defaults: JsonObject = {
        "unit": unit,
        "thresholds": {
            "mode": "absolute",
            "steps": [{"color": color, "value": value} for color, value in thresholds],
        },
    }
    shown = dict(mappings or {})
    if thresholds is SHARE_OF_PASSES:
        shown[str(NOT_ENOUGH_DATA)] = (f"not enough data (< {MIN_VERDICTS})", "text")
    if shown:
        defaults["mappings"] = [_mapping(shown)]
    return defaults


def _mapping(texts: Mapping[str, tuple[str, str]]) -> JsonObject:
    options: JsonObject = {
        value: {"text": shown, "color": color, "index": index}
        for index, (value, (shown, color)) in enumerate(texts.items())
    }
    return {"type": "value", "options": options}


def _shown(column: Column) -> JsonObject:
    properties: JsonObject = {}
    if column.thresholds:
        properties |= {
            key: value for key, value in _defaults("", column.thresholds, None).items() if key != "unit"
        }
        properties["custom.cellOptions"] = {"type": "color-text"}
    if column.unit:
        properties["unit"] = column.unit
    if column.link:
        properties["links"] = [link(column.link_title, column.link)]
    return properties


def _override(name: str, properties: JsonObject) -> JsonObject:
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": key, "value": value} for key, value in properties.items()],
    }


def _targets(queries: Sequence[Query], *, instant: bool, form: str = "") -> list[JsonValue]:
    return [
        {
            "datasource": DATA_SOURCE,
            "refId": _letter(index),
            "expr": query.expression,
            "legendFormat": query.legend or "__auto",
            "instant": instant,
            "range": not instant,
            "exemplar": query.exemplar,
            "editorMode": "code",
            **({"format": form} if form else {}),
        }
        for index, query in enumerate(queries)
    ]


def _letter(index: int) -> str:
    return chr(ord("A") + index)
