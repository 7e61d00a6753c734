"""The dashboards as files: the rules of good dashboards, and that everything they name is there."""

import datetime
import re
from collections.abc import Iterator
from itertools import combinations

import pytest
import yaml

from collector.telemetry import Metrics
from deploy.grafana.generator.files import dashboard_files
from processors.model import JsonObject
from tests.support.dashboard_exceptions import exceptions
from tests.support.dashboards import (
    ANY,
    GRAFANA,
    annotation_queries,
    dashboards,
    fill_in,
    member,
    objects,
    panel_queries,
    panels,
    variable_queries,
)
from tests.support.metric_table import known_series, series_names
from tests.support.promql_selectors import AVERAGING, Selector, read

MARKED = ANY | {
    "agent": "the-agent",
    "job": "the-job",
    "instance": "the-instance",
    "__rate_interval": "7m",
    "__range": "11h",
}
"""Values that are recognised in a query."""

BY_UID = {str(dashboard["uid"]): dashboard for dashboard in dashboards()}
each_dashboard = pytest.mark.parametrize("dashboard", BY_UID.values(), ids=BY_UID)


def selectors() -> Iterator[tuple[str, Selector]]:
    """Every selector of every panel, annotation and variable, with where it stands."""
    for query in (*panel_queries(), *annotation_queries()):
        for selector in read(fill_in(query.expression, MARKED)).selectors:
            yield str(query), selector
    for variable in variable_queries():
        for selector in read(fill_in(variable.selector, MARKED)).selectors:
            yield str(variable), selector


def test_the_files_are_what_the_generator_makes() -> None:
    made = dashboard_files()

    there = {path.name: path.read_text() for path in (GRAFANA / "dashboards").iterdir()}

    assert made == there


def test_the_three_dashboards_have_their_uids() -> None:
    assert {"tracegrade-agent-quality", "tracegrade-one-agent", "tracegrade-service-health"} == set(BY_UID)


@each_dashboard
def test_a_dashboard_belongs_to_no_server_and_nobody_edits_it_there(dashboard: JsonObject) -> None:
    assert dashboard["editable"] is False
    assert set() == {"id", "version", "__inputs", "__requires"} & set(dashboard)
    assert ["tracegrade"] == dashboard["tags"]


@each_dashboard
def test_a_dashboard_begins_with_what_good_looks_like(dashboard: JsonObject) -> None:
    first = panels(dashboard)[0]

    assert ("text", "What good looks like") == (first["type"], first["title"])
    assert "**Good:**" in str(member(first, "options", "content"))


@each_dashboard
def test_the_data_source_is_a_variable_and_nothing_names_another(dashboard: JsonObject) -> None:
    first, *others = objects(member(dashboard, "templating", "list"))
    asking = [
        *(panel for panel in panels(dashboard) if panel["type"] != "text"),
        *(target for panel in panels(dashboard) for target in objects(panel.get("targets", []))),
        *objects(member(dashboard, "annotations", "list")),
        *others,
    ]

    named = {str(member(one, "datasource", "uid")) for one in asking}

    assert ("datasource", "datasource", "prometheus") == (first["type"], first["name"], first["query"])
    assert {"${datasource}"} == named


@each_dashboard
def test_variables_are_asked_for_again_when_the_time_range_changes(dashboard: JsonObject) -> None:
    queried = [one for one in objects(member(dashboard, "templating", "list")) if one["type"] == "query"]

    assert {2} == {one["refresh"] for one in queried}
    assert all(one["label"] for one in queried)


@each_dashboard
def test_job_and_instance_can_be_picked_in_any_number(dashboard: JsonObject) -> None:
    variables = {str(one["name"]): one for one in objects(member(dashboard, "templating", "list"))}

    for name in ("job", "instance"):
        assert (True, True, ".+") == tuple(
            variables[name][key] for key in ("multi", "includeAll", "allValue")
        )


def test_only_known_variables_exist() -> None:
    names = {
        uid: [str(one["name"]) for one in objects(member(dashboard, "templating", "list"))]
        for uid, dashboard in BY_UID.items()
    }
    everywhere = ["datasource", "job", "instance"]

    assert {
        "tracegrade-agent-quality": [*everywhere, "agent", "evaluation", "version"],
        "tracegrade-one-agent": [*everywhere, "agent", "evaluation", "version"],
        "tracegrade-service-health": everywhere,
    } == names


def test_every_query_is_promql_of_the_picked_processes() -> None:
    without_instance = exceptions("without_instance")
    wrong = []
    for where, selector in selectors():
        wanted = {("job", "=~", "the-job"), ("instance", "=~", "the-instance")}
        if any(metric.startswith(beginning) for metric in selector.metrics for beginning in without_instance):
            wanted = {("job", "=~", "the-job")}
        if where.endswith("$job"):
            wanted = set()
        elif where.endswith("$instance"):
            wanted = {("job", "=~", "the-job")}
        if not wanted <= set(selector.matchers):
            wrong.append((where, selector))

    assert [] == wrong


def test_every_query_about_agents_is_about_the_picked_ones() -> None:
    known = known_series()

    unpicked = [
        (where, selector)
        for where, selector in selectors()
        if not where.startswith("tracegrade-service-health") and not where.endswith("$agent")
        if any("gen_ai_agent_name" in known[metric] for metric in selector.metrics)
        if {("gen_ai_agent_name", "=~", "the-agent"), ("gen_ai_agent_name", "=", "the-agent")}.isdisjoint(
            selector.matchers
        )
    ]

    assert [] == unpicked


def test_the_growth_of_counters_over_time_is_taken_in_the_rate_interval() -> None:
    excused = exceptions("other_windows")
    unexpected, seen = [], set()
    for query in panel_queries():
        allowed = {datetime.timedelta(hours=11)} if query.instant else {datetime.timedelta(minutes=7)}
        over_time = fill_in(query.expression, MARKED).replace("[11h] @ end()", "[7m]")
        for selector in read(over_time).selectors:
            if selector.window is not None and selector.window not in allowed:
                (
                    seen.add(query.panel)
                    if query.panel in excused
                    else unexpected.append((str(query), selector))
                )

    assert [] == unexpected
    assert set(excused) == seen


def test_counters_are_read_only_through_their_growth() -> None:
    counters = {
        series
        for instrument in Metrics().instruments()
        for series in series_names(instrument)
        if instrument.type != "gauge"
    } | {"process_cpu_seconds_total"}
    read_as_they_are = [
        (where, selector)
        for where, selector in selectors()
        if not where.rsplit(" / ", 1)[-1].startswith("$")
        and counters & set(selector.metrics)
        and selector.function not in AVERAGING
    ]

    assert [] == read_as_they_are


@each_dashboard
def test_a_panel_says_what_it_shows(dashboard: JsonObject) -> None:
    for panel in panels(dashboard):
        assert panel["title"]
        assert len(str(panel["description"])) > 20, panel["title"]
        if panel["type"] != "text":
            assert member(panel, "fieldConfig", "defaults", "unit"), panel["title"]
            assert objects(panel["targets"]), panel["title"]


@each_dashboard
def test_titles_and_ids_of_panels_are_unique(dashboard: JsonObject) -> None:
    all_panels = panels(dashboard, rows=True)

    assert len(all_panels) == len({panel["id"] for panel in all_panels})
    assert len(all_panels) == len({panel["title"] for panel in all_panels})


@each_dashboard
def test_panels_lie_within_the_grid_and_none_on_another(dashboard: JsonObject) -> None:
    cells = []
    for panel in panels(dashboard, rows=True):
        grid = yaml.safe_load(yaml.safe_dump(panel["gridPos"]))
        assert 0 <= grid["x"]
        assert grid["x"] + grid["w"] <= 24
        cells.append(
            (
                panel["title"],
                {
                    (x, y)
                    for x in range(grid["x"], grid["x"] + grid["w"])
                    for y in range(grid["y"], grid["y"] + grid["h"])
                },
            )
        )

    assert [] == [(one, other) for (one, here), (other, there) in combinations(cells, 2) if here & there]


def test_a_share_of_too_few_verdicts_is_called_not_enough_data() -> None:
    asking = [query for query in panel_queries() if "* 0 + 2)" in query.expression]
    for query in asking:
        (panel,) = (panel for panel in panels(BY_UID[query.dashboard]) if panel["title"] == query.panel)
        shown = str(panel["fieldConfig"])

        assert "'2': {'text': 'not enough data (< 20)', 'color': 'text'" in shown, query

    assert len(asking) > 10


def test_no_threshold_colours_what_is_not_known_green() -> None:
    for query in panel_queries():
        if "* 0 + 2)" in query.expression:
            (panel,) = (panel for panel in panels(BY_UID[query.dashboard]) if panel["title"] == query.panel)
            for steps in re.findall(r"'steps': (\[[^]]*\])", str(panel["fieldConfig"])):
                highest = yaml.safe_load(steps.replace("None", "null"))[-1]

                assert "green" != highest["color"], query


OF_RUNS = {
    f"{histogram}_bucket"
    for histogram in (
        "gen_ai_evaluation_score",
        "tracegrade_agent_run_duration_seconds",
        "tracegrade_agent_run_tokens",
        "tracegrade_agent_run_cost",
    )
}
"""The buckets of which each observation is a run, whose trace an exemplar names."""


def test_exemplars_are_asked_of_the_series_that_carry_them() -> None:
    asking = [query for query in panel_queries() if query.exemplar]
    for query in asking:
        names = {name for one in read(fill_in(query.expression, ANY)).selectors for name in one.metrics}

        assert 1 == len(names & OF_RUNS) == len(names), query
        assert not query.instant

    assert {"tracegrade-agent-quality", "tracegrade-one-agent"} == {query.dashboard for query in asking}


@each_dashboard
def test_dashboards_lead_to_each_other_and_to_the_runbooks(dashboard: JsonObject) -> None:
    together, runbooks = objects(dashboard["links"])

    assert ("dashboards", ["tracegrade"], True, True) == tuple(
        together[key] for key in ("type", "tags", "includeVars", "keepTime")
    )
    assert str(runbooks["url"]).endswith("/docs/runbooks.md")


def test_links_into_dashboards_name_dashboards_and_variables_that_exist() -> None:
    urls = re.findall(r'"url": "/d/([^"?]*)\?([^"]*)"', "".join(dashboard_files().values()))

    for uid, query in urls:
        known = {str(one["name"]) for one in objects(member(BY_UID[uid], "templating", "list"))}
        assert set(re.findall(r"var-(\w+)=", query)) <= known
        assert set(re.findall(r"\$\{(\w+):queryparam\}", query)) <= known
    assert urls


def test_annotations_mark_new_versions_and_changed_criteria_of_agents() -> None:
    marks: dict[str, list[str]] = {uid: [] for uid in BY_UID}
    for query in annotation_queries():
        marks[query.dashboard].append(query.panel)

    of_agents = ["New agent version", "Criteria changed"]
    assert {
        "tracegrade-agent-quality": of_agents,
        "tracegrade-one-agent": of_agents,
        "tracegrade-service-health": [],
    } == marks


def test_provisioned_data_sources_are_the_ones_that_the_dashboards_ask() -> None:
    sources = yaml.safe_load((GRAFANA / "provisioning" / "datasources" / "tracegrade.yaml").read_text())
    by_uid = {source["uid"]: source for source in sources["datasources"]}
    (exemplars,) = by_uid["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    picked = {
        str(member(objects(member(one, "templating", "list"))[0], "current", "value"))
        for one in BY_UID.values()
    }

    assert {"prometheus"} == picked
    assert {"prometheus": "prometheus", "tempo": "tempo"} == {uid: one["type"] for uid, one in by_uid.items()}
    assert ("trace_id", "tempo") == (exemplars["name"], exemplars["datasourceUid"])


def test_a_dollar_sign_in_provisioning_is_written_twice() -> None:
    for path in (GRAFANA / "provisioning").rglob("*.yaml"):
        lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]

        assert [] == re.findall(r"(?<!\$)\$(?!\$)", "\n".join(lines).replace("$$", "")), path


def test_the_provider_reads_a_folder_and_lets_nobody_edit() -> None:
    (provider,) = yaml.safe_load((GRAFANA / "provisioning" / "dashboards" / "tracegrade.yaml").read_text())[
        "providers"
    ]

    assert ("file", False) == (provider["type"], provider["allowUiUpdates"])
    assert "/var/lib/grafana/dashboards" == provider["options"]["path"]
