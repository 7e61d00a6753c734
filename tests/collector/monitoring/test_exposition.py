"""Our own writer says what prometheus_client's parser reads as what was counted, after any change."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.core import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from collector.monitoring import MetricsRegistry
from collector.telemetry import Counter, Exemplar, Histogram, HistogramSeries, Metrics, ObservedSpan
from tests.support.metric_table import rendered

OPENMETRICS_ACCEPT = "application/openmetrics-text"
AGENTS, EVALUATIONS = 500, 10

parse_openmetrics: Callable[[str], Iterable[Metric]] = openmetrics_parser.text_string_to_metric_families
Written = tuple[str, tuple[tuple[str, str], ...], float, tuple[object, ...] | None]


def written(sample: Sample, *, exemplars: bool) -> Written:
    """What a sample says, comparable."""
    exemplar = sample.exemplar if exemplars else None
    named = exemplar and (
        tuple(sorted(exemplar.labels.items())),
        exemplar.value,
        float(exemplar.timestamp or 0),
    )
    return sample.name, tuple(sorted(sample.labels.items())), sample.value, named or None


def own(families: Iterable[Metric], *, exemplars: bool) -> list[Written]:
    return sorted(
        written(sample, exemplars=exemplars)
        for family in families
        for sample in family.samples
        if sample.name.startswith(("tracegrade_", "gen_ai_"))
    )


def counted(metrics: Metrics, *, exemplars: bool) -> list[Written]:
    """What the table holds, written down without the registry."""
    samples: list[Written] = []

    def add(name: str, pairs: dict[str, str], value: float, exemplar: Exemplar | None = None) -> None:
        named = None
        if exemplar and exemplars:
            value_of_span, span = exemplar
            ids = {"trace_id": span.trace_id.hex(), "span_id": span.span_id.hex()}
            held = tuple(sorted((key, text) for key, text in ids.items() if text))
            named = held, value_of_span, round(span.unix_nano / 1e9, 3)
        samples.append((name, tuple(sorted(pairs.items())), value, named))

    for instrument in metrics.instruments():
        for labels in instrument.values:
            pairs = dict(instrument.named_labels(labels))
            if isinstance(instrument, Histogram):
                row, count = instrument.values[labels], 0.0
                found = instrument.exemplars.get(labels, {})
                for bucket, bound in enumerate((*map(str, map(float, instrument.buckets)), "+Inf")):
                    count += row[bucket]
                    add(f"{instrument.name}_bucket", pairs | {"le": bound}, count, found.get(bucket))
                add(f"{instrument.name}_count", pairs, count)
                add(f"{instrument.name}_sum", pairs, row[-1])
            else:
                suffix = "_total" if isinstance(instrument, Counter) else ""
                add(instrument.name + suffix, pairs, instrument.value(*labels))
    return sorted(samples)


def assert_text_reads_back_equal(metrics: Metrics, registry: MetricsRegistry) -> None:
    text = rendered(registry.snapshot())

    assert counted(metrics, exemplars=False) == own(parse_text(text.decode()), exemplars=False)


def assert_openmetrics_reads_back_equal(metrics: Metrics, registry: MetricsRegistry) -> None:
    text = rendered(registry.snapshot(), OPENMETRICS_ACCEPT)

    assert counted(metrics, exemplars=True) == own(parse_openmetrics(text.decode()), exemplars=True)


def fill(metrics: Metrics, agents: int) -> None:
    """Give agents results of all outcomes, and a score with an exemplar, in every evaluation."""
    for agent in range(agents):
        for evaluation in range(EVALUATIONS):
            labels = f"agent-{agent}", f"evaluation-{evaluation}"
            for outcome in ("pass", "fail", "error", "not_evaluated"):
                metrics.results.add(agent, *labels, outcome)
            score = (agent + evaluation) % 11 / 10
            span = ObservedSpan(agent.to_bytes(16), b"", 1_700_000_000_250_000_000 + evaluation)
            HistogramSeries(metrics.score, labels).observe(score, span)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.mark.slow
def test_a_big_scrape_reads_back_equal(metrics: Metrics) -> None:
    registry = MetricsRegistry(metrics)
    fill(metrics, AGENTS)
    rendered(registry.snapshot())
    for agent in range(0, AGENTS, 7):
        metrics.score.observe(1.0, f"agent-{agent}", "evaluation-3")

    assert 95_000 < rendered(registry.snapshot()).count(b"\n")
    assert_text_reads_back_equal(metrics, registry)


@pytest.mark.slow
def test_a_big_scrape_in_openmetrics_reads_back_equal_with_its_exemplars(metrics: Metrics) -> None:
    registry = MetricsRegistry(metrics)
    fill(metrics, AGENTS // 5)
    rendered(registry.snapshot(), OPENMETRICS_ACCEPT)
    for agent in range(0, AGENTS // 5, 7):
        metrics.score.observe(1.0, f"agent-{agent}", "evaluation-3")

    assert_openmetrics_reads_back_equal(metrics, registry)


_NAMES = st.sampled_from(["a", 'quote " \\ \n %s %d {} 100%'])
_CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("count"), _NAMES, st.floats(0, 1e18)),
        st.tuples(st.just("observe"), _NAMES, st.sampled_from([0.0, 0.1, 0.95, 1.0, 7.5])),
        st.tuples(st.just("set"), _NAMES, st.floats(allow_nan=False)),
        st.tuples(st.just("remove"), _NAMES, st.just(0.0)),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=30)
@given(st.lists(_CHANGES, min_size=2, max_size=4))
def test_whatever_changes_between_scrapes_the_next_one_reads_back_equal(
    rounds: list[list[tuple[str, str, float]]],
) -> None:
    metrics = Metrics(("region",))
    registry = MetricsRegistry(metrics)
    for changes in rounds:
        for number, (change, name, value) in enumerate(changes):
            if change == "count":
                metrics.agent_runs.add(value, name)
                metrics.agent_runs.add(value, name, "1", "eu")
                metrics.agent_runs.add(value, name, "", "eu")
            elif change == "observe":
                span = ObservedSpan(bytes(15) + b"1", number.to_bytes(8), number * 10**9)
                HistogramSeries(metrics.score, (name, "order")).observe(value, span)
            elif change == "set":
                metrics.queue_bytes.set(value, name)
            else:
                metrics.agent_runs.values.pop((name,), None)
                metrics.score.remove(name, "order")
                metrics.queue_bytes.remove(name)

        assert_text_reads_back_equal(metrics, registry)
        assert_openmetrics_reads_back_equal(metrics, registry)


def test_an_optional_label_without_a_value_is_left_out_and_a_required_one_is_not(metrics: Metrics) -> None:
    metrics.evaluation_info.set(1, "a", "order", "id", "1", "hash", "page", "", "#weather")
    metrics.spans_dropped.add(1, "duplicate", "")

    lines = rendered(MetricsRegistry(metrics).snapshot()).decode().splitlines()

    assert (
        'tracegrade_evaluation_info{gen_ai_agent_name="a",gen_ai_evaluation_name="order",evaluator="id",'
        'evaluator_version="1",criteria_hash="hash",severity="page",contact="#weather"} 1.0'
    ) in lines
    assert 'tracegrade_spans_dropped_total{reason="duplicate",exporter=""} 1.0' in lines


def test_a_name_that_cannot_be_encoded_does_not_make_a_scrape_fail(metrics: Metrics) -> None:
    metrics.results.add(1, "a", "half \ud800", "pass")

    text = rendered(MetricsRegistry(metrics).snapshot())

    assert b'gen_ai_evaluation_name="half ?"' in text


@pytest.mark.slow
def test_no_block_of_a_big_scrape_is_long(metrics: Metrics) -> None:
    for agent in range(AGENTS):
        for evaluation in range(EVALUATIONS):
            metrics.score.observe(1.0, f"agent-{agent}", f"evaluation-{evaluation}")
            metrics.results.add(1, f"agent-{agent}", f"evaluation-{evaluation}", "pass")

    blocks = list(MetricsRegistry(metrics).snapshot().blocks())

    assert 300 >= max(block.count(b"\n") for block in blocks)


def test_what_did_not_change_is_not_written_again(metrics: Metrics) -> None:
    registry = MetricsRegistry(metrics)
    for number in range(1000):
        metrics.score.observe(1.0, f"agent-{number}", "order")
    first = list(registry.snapshot().blocks())
    metrics.score.observe(1.0, "agent-500", "order")

    second = list(registry.snapshot().blocks())

    scores = [block for block in first if block.startswith(b"gen_ai_evaluation_score_bucket")]
    again = {id(block) for block in second}
    assert 1 == sum(id(block) not in again for block in scores)
