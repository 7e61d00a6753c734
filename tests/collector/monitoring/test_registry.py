"""The metrics as text: parsed back, they are what was counted."""

import re
import subprocess
from collections.abc import Callable, Iterable

import pytest
from prometheus_client import exposition
from prometheus_client.core import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Exemplar as ParsedExemplar

from collector.monitoring.exposition import OPENMETRICS, TEXT, MetricsRegistry, gzip_accepted
from collector.telemetry import Counter, Histogram, HistogramSeries, Metrics, ObservedSpan, observed_span
from tests.support.metric_table import rendered

AWKWARD = 'quote " backslash \\ newline \n comma , brace } ünïcödé 日本'
OPENMETRICS_ACCEPT = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)

parse_openmetrics: Callable[[str], Iterable[Metric]] = openmetrics_parser.text_string_to_metric_families

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def metrics() -> Metrics:
    metrics = Metrics()
    metrics.spans_received.add(12)
    metrics.spans_dropped.add(3, "duplicate", "")
    metrics.tool_calls.add(2, AWKWARD, "tool", "ok")
    metrics.traces_held.read_from(lambda: 7.5)
    metrics.build_info.set(1, "0.1.0")
    metrics.score.observe(0.0, "weather_agent", "order")
    span = ObservedSpan(bytes(range(16)), bytes(range(8)), 1_700_000_000_500_000_000)
    HistogramSeries(metrics.score, ("weather_agent", "order")).observe(0.95, span)
    return metrics


def expected_samples(metrics: Metrics) -> Samples:
    """What the table holds, written down without the registry."""
    samples: Samples = {}
    for instrument in metrics.instruments():
        for labels in {**instrument.values, **getattr(instrument, "functions", {})}:
            named = frozenset(zip(instrument.labels, labels, strict=False))
            if isinstance(instrument, Histogram):
                row, cumulative = instrument.values[labels], 0.0
                for bound, count in zip((*instrument.buckets, float("inf")), row[:-1], strict=True):
                    cumulative += count
                    le = "+Inf" if bound == float("inf") else str(float(bound))
                    samples[f"{instrument.name}_bucket", named | {("le", le)}] = cumulative
                samples[f"{instrument.name}_count", named] = cumulative
                samples[f"{instrument.name}_sum", named] = row[-1]
            elif isinstance(instrument, Counter):
                samples[f"{instrument.name}_total", named] = instrument.values[labels]
            else:
                samples[instrument.name, named] = instrument.value(*labels)
    return samples


def is_own(name: str) -> bool:
    return name.startswith(("tracegrade_", "gen_ai_"))


def test_the_text_format_parses_back_equal(metrics: Metrics) -> None:
    snapshot = MetricsRegistry(metrics).snapshot()
    text, content_type = rendered(snapshot, "*/*"), snapshot.content_type("*/*")

    parsed = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse_text(text.decode())
        for sample in family.samples
        if is_own(sample.name)
    }
    assert expected_samples(metrics) == parsed
    assert TEXT == content_type


def test_openmetrics_parses_back_equal_with_its_exemplars(metrics: Metrics) -> None:
    snapshot = MetricsRegistry(metrics).snapshot()
    text, content_type = rendered(snapshot, OPENMETRICS_ACCEPT), snapshot.content_type(OPENMETRICS_ACCEPT)

    samples = [sample for family in parse_openmetrics(text.decode()) for sample in family.samples]
    parsed = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for sample in samples
        if is_own(sample.name)
    }
    exemplars = [(sample.labels["le"], sample.exemplar) for sample in samples if sample.exemplar]
    assert expected_samples(metrics) == parsed
    assert OPENMETRICS == content_type
    assert 1 == len(exemplars)
    bound, exemplar = exemplars[0]
    assert "0.99" == bound
    assert isinstance(exemplar, ParsedExemplar)
    assert {"trace_id": "000102030405060708090a0b0c0d0e0f", "span_id": "0001020304050607"} == exemplar.labels
    assert 0.95 == exemplar.value
    assert exemplar.timestamp is not None
    assert 1_700_000_000.5 == float(exemplar.timestamp)


def test_counters_end_in_total_once_and_nothing_is_created(metrics: Metrics) -> None:
    for accept in ("", OPENMETRICS_ACCEPT):
        text = rendered(MetricsRegistry(metrics).snapshot(), accept)

        own = [line for line in text.decode().splitlines() if is_own(line)]
        assert [] == [line for line in own if "_created" in line or "_total_total" in line]
        assert "tracegrade_spans_received_total 12.0" in own


def test_a_snapshot_does_not_change_with_the_table(metrics: Metrics) -> None:
    snapshot = MetricsRegistry(metrics).snapshot()
    expected = expected_samples(metrics)

    metrics.spans_received.add(1)
    metrics.score.observe(1.0, "weather_agent", "order")
    metrics.score.observe(1.0, "new", "order")
    text = rendered(snapshot)

    parsed = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in parse_text(text.decode())
        for sample in family.samples
        if is_own(sample.name)
    }
    assert expected == parsed


def test_process_and_platform_metrics_are_there(metrics: Metrics) -> None:
    text = rendered(MetricsRegistry(metrics).snapshot())

    assert b"process_resident_memory_bytes" in text
    assert b"python_info" in text


def test_the_registry_shares_nothing_with_the_global_one(metrics: Metrics) -> None:
    MetricsRegistry(metrics)
    MetricsRegistry(Metrics())

    assert b"tracegrade_" not in exposition.generate_latest()


def test_the_names_in_the_table_keep_the_rules() -> None:
    instruments = Metrics(("service_version",)).instruments()
    names = [instrument.name for instrument in instruments]

    assert len(names) == len(set(names))
    for instrument in instruments:
        for name in (instrument.name, *instrument.labels):
            assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        # These suffixes are added when it is rendered.
        assert not instrument.name.endswith(("_total", "_created", "_bucket", "_count", "_sum"))


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("text/plain", TEXT),
        ("application/openmetrics-text", OPENMETRICS),
        (OPENMETRICS_ACCEPT, OPENMETRICS),
        ("application/openmetrics-text; version=banana", OPENMETRICS),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.9", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=x", TEXT),
        (";;;,,,=", TEXT),
    ],
)
def test_the_accept_header_decides_the_format(metrics: Metrics, accept: str, content_type: str) -> None:
    assert content_type == MetricsRegistry(metrics).snapshot().content_type(accept)


@pytest.mark.parametrize(
    ("header", "accepted"),
    [("", False), ("gzip", True), ("deflate, GZIP;q=0.5", True), ("gzip;q=0", False), ("br", False)],
)
def test_gzip_is_used_only_where_it_is_accepted(header: str, accepted: bool) -> None:
    assert accepted == gzip_accepted(header)


@pytest.mark.parametrize(("trace_id", "span_id"), [(b"", b""), (b"x" * 17, b""), (b"x" * 16, b"x" * 3)])
def test_an_exemplar_with_odd_ids_is_left_out(trace_id: bytes, span_id: bytes) -> None:
    metrics = Metrics()

    HistogramSeries(metrics.score, ("a", "b")).observe(0.5, observed_span(trace_id, span_id, 0))

    assert 1 == sum(metrics.score.row("a", "b")[:-1])
    assert {} == metrics.score.exemplars


@pytest.mark.requires_program("promtool")
def test_promtool_finds_nothing_to_complain_about(metrics: Metrics) -> None:
    own_only = b"".join(
        line
        for line in rendered(MetricsRegistry(metrics).snapshot()).splitlines(keepends=True)
        if b"tracegrade_" in line or b"gen_ai_" in line
    )

    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=own_only, capture_output=True, check=False, timeout=30
    )

    assert (0, b"") == (checked.returncode, checked.stderr)
