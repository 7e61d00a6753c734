"""Everything that dashboards read exists, and everything that exists is read somewhere."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

from collector.telemetry import Metrics
from tests.support.dashboard_exceptions import exceptions
from tests.support.dashboards import (
    ANY,
    GRAFANA,
    annotation_queries,
    fill_in,
    legend_labels,
    panel_queries,
    variable_queries,
)
from tests.support.metric_table import RECORDED, known_series, series_names
from tests.support.promql_selectors import Reading, read

RULES = GRAFANA.parent / "prometheus" / "rules"


@cache
def readings() -> dict[str, Reading]:
    """What each query reads, by where it stands; the labels of its legend are among its labels."""
    found = {}
    for query in (*panel_queries(), *annotation_queries()):
        reading = read(fill_in(query.expression, ANY))
        reading.labels |= legend_labels(query)
        found[str(query)] = reading
    for variable in variable_queries():
        reading = read(fill_in(variable.selector, ANY))
        reading.labels.add(variable.label)
        found[str(variable)] = reading
    return found


def rules() -> Iterator[dict[str, str]]:
    for path in sorted(Path(RULES).glob("*.yaml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


def test_every_metric_that_a_query_reads_exists() -> None:
    known = known_series()

    unknown = {
        (where, metric)
        for where, reading in readings().items()
        for selector in reading.selectors
        for metric in selector.metrics
        if metric not in known
    }

    assert set() == unknown


def test_every_label_that_a_query_matches_is_one_of_the_metric() -> None:
    known = known_series()

    unknown = {
        (where, metric, label)
        for where, reading in readings().items()
        for selector in reading.selectors
        for metric in selector.metrics
        for label, _, _ in selector.matchers
        if label not in known[metric]
    }

    assert set() == unknown


def test_every_label_that_a_query_sums_by_or_shows_is_one_of_its_metrics() -> None:
    known = known_series()

    unknown = {
        (where, label)
        for where, reading in readings().items()
        for label in reading.labels
        if not any(label in known[metric] for selector in reading.selectors for metric in selector.metrics)
    }

    assert set() == unknown


def test_every_metric_is_on_a_dashboard_or_in_a_rule_or_excused() -> None:
    queries = [*readings().values(), *(read(str(rule["expr"])) for rule in rules())]
    used = {metric for reading in queries for selector in reading.selectors for metric in selector.metrics}

    unused = {
        instrument.name for instrument in Metrics().instruments() if used.isdisjoint(series_names(instrument))
    }

    assert set(exceptions("not_shown")) == unused


def test_every_recording_rule_that_a_dashboard_reads_is_shipped() -> None:
    shipped = {rule["record"] for rule in rules() if "record" in rule}
    used = {
        metric
        for reading in readings().values()
        for selector in reading.selectors
        for metric in selector.metrics
        if ":" in metric
    }

    assert set() == used - shipped
    assert set() == set(RECORDED) - shipped
