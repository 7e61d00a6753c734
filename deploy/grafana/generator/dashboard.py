"""What the dashboards share: variables, annotations, links between them, and the grid their panels lie on."""

from collections.abc import Sequence

from deploy.grafana.generator.panels import DATA_SOURCE, RUNBOOKS, dashboard_link
from deploy.grafana.generator.promql import AGENT, EVALUATION, VERSION, select
from processors.model import JsonObject, JsonValue

AGENT_QUALITY = "tracegrade-agent-quality"
ONE_AGENT_UID = "tracegrade-one-agent"
SERVICE_HEALTH = "tracegrade-service-health"

_TAG = "tracegrade"
_WIDTH = 24
_SCHEMA_VERSION = 39
"""Of Grafana 10.4; newer versions bring it up to date when they load it."""

TO_ONE_AGENT = (
    f"/d/{ONE_AGENT_UID}?${{__url_time_range}}&${{datasource:queryparam}}&${{job:queryparam}}"
    "&${instance:queryparam}&var-agent="
)
"""The beginning of a link to the dashboard of an agent; its name is to follow."""

_NEW_VERSION = (
    f"sum by ({AGENT}, {VERSION}) (increase({{runs}}[5m])) > 0"
    f" unless sum by ({AGENT}, {VERSION}) (increase({{runs}}[1d] offset 5m)) > 0"
)
_CHANGED_CRITERIA = (
    f"count by ({AGENT}, {EVALUATION}, criteria_hash, evaluator_version) ({{info}})"
    f" unless count by ({AGENT}, {EVALUATION}, criteria_hash, evaluator_version) ({{info}} offset 5m)"
    f" and on ({AGENT}, {EVALUATION}) count by ({AGENT}, {EVALUATION}) ({{info}} offset 5m)"
)


def data_source_variable() -> JsonObject:
    """Which Prometheus is asked."""
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "regex": "",
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "refresh": 1,
        "current": {"text": "Prometheus", "value": "prometheus", "selected": True},
        "options": [],
    }


def many(name: str, label: str, selector: str, of: str, *, all_value: str = ".+") -> JsonObject:
    """A variable with the values of the label `of`, of which several or all can be picked."""
    return _query_variable(name, label, selector, of) | {
        "includeAll": True,
        "multi": True,
        "allValue": all_value,
        "current": {"text": ["All"], "value": ["$__all"], "selected": True},
    }


def one(name: str, label: str, selector: str, of: str) -> JsonObject:
    """A variable with the values of the label `of`, of which one is picked."""
    return _query_variable(name, label, selector, of) | {"includeAll": False, "multi": False}


def process_variables() -> list[JsonObject]:
    """The data source and the processes of the service: first on every dashboard."""
    return [
        data_source_variable(),
        many("job", "Job", "tracegrade_build_info", "job"),
        many("instance", "Instance", 'tracegrade_build_info{job=~"$job"}', "instance"),
    ]


def agent_annotations(agent_matcher: str) -> list[JsonObject]:
    """Marks where an agent's new version began to run and where its criteria changed."""
    runs = select("tracegrade_agent_runs_total", agent_matcher, f'{VERSION}!=""')
    info = select("tracegrade_evaluation_info", agent_matcher)
    return [
        _annotation(
            "New agent version",
            _NEW_VERSION.format(runs=runs),
            "blue",
            f"{{{{{AGENT}}}}} {{{{{VERSION}}}}}",
            "The first runs of this version in a day.",
        ),
        _annotation(
            "Criteria changed",
            _CHANGED_CRITERIA.format(info=info),
            "purple",
            f"{{{{{AGENT}}}}}: {{{{{EVALUATION}}}}}",
            "Scores before and after do not compare: criteria {{criteria_hash}}, "
            "evaluator version {{evaluator_version}}.",
        ),
    ]


def dashboard(
    uid: str,
    title: str,
    about: str,
    *,
    variables: Sequence[JsonObject],
    annotations: Sequence[JsonObject],
    rows: Sequence[tuple[str, Sequence[JsonObject]]],
    since: str,
) -> JsonObject:
    """A dashboard with its panels in `rows` (title, panels); a row without a title has no heading.

    Panels lie from left to right, and go on below where a line is full.
    """
    return {
        "uid": uid,
        "title": title,
        "description": about,
        "tags": [_TAG],
        "editable": False,
        "graphTooltip": 1,
        "refresh": "1m",
        "schemaVersion": _SCHEMA_VERSION,
        "time": {"from": since, "to": "now"},
        "timezone": "browser",
        "links": [
            {
                **dashboard_link("Dashboards", ""),
                "icon": "external link",
                "type": "dashboards",
                "tags": [_TAG],
                "includeVars": True,
                "keepTime": True,
                "targetBlank": False,
            },
            dashboard_link("Runbooks", RUNBOOKS),
        ],
        "templating": {"list": list(variables)},
        "annotations": {"list": list(annotations)},
        "panels": _laid_out(rows),
    }


def _query_variable(name: str, label: str, selector: str, of: str) -> JsonObject:
    query = f"label_values({selector}, {of})"
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": DATA_SOURCE,
        "definition": query,
        "query": {"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "regex": "",
        "hide": 0,
        "refresh": 2,
        "sort": 1,
        "options": [],
    }


def _annotation(name: str, expression: str, color: str, title: str, about: str) -> JsonObject:
    return {
        "name": name,
        "datasource": DATA_SOURCE,
        "enable": True,
        "hide": False,
        "iconColor": color,
        "target": {"refId": "Anno", "expr": expression, "interval": "60s"},
        "titleFormat": title,
        "textFormat": about,
        "tagKeys": "",
        "useValueForTime": False,
    }


def _laid_out(rows: Sequence[tuple[str, Sequence[JsonObject]]]) -> list[JsonValue]:
    laid_out: list[JsonValue] = []
    top = 0
    for number, (title, panels) in enumerate(rows):
        if title:
            heading: JsonObject = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
            laid_out.append(
                {
                    "id": 1_000_000 + number,
                    "type": "row",
                    "title": title,
                    "collapsed": False,
                    "gridPos": heading,
                    "panels": [],
                }
            )
            top += 1
        left = line_height = 0
        for panel in panels:
            width, height = _size(panel)
            if left + width > _WIDTH:
                left, top, line_height = 0, top + line_height, 0
            laid_out.append({**panel, "gridPos": {"x": left, "y": top, "w": width, "h": height}})
            left, line_height = left + width, max(line_height, height)
        top += line_height
    return laid_out


def _size(panel: JsonObject) -> tuple[int, int]:
    grid = panel["gridPos"]
    if not isinstance(grid, dict) or not isinstance(grid["w"], int) or not isinstance(grid["h"], int):
        raise TypeError(f"a panel without a size: {panel['title']}")
    return grid["w"], grid["h"]
