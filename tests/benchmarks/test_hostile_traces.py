"""Hostile traces cost the same per span, however many spans they have."""

import gc
from collections.abc import Iterator

import pytest

from benchmarks.hostile import hostile_cost, peak_memory
from benchmarks.hostile_spans import TRACE_ID
from benchmarks.hostile_traces import HOSTILE_KINDS, HostileKind
from collector.criteria.criteria_files import load_criteria
from processors.criteria.agent_criteria import CriteriaSet
from processors.model.finish_reason import FinishReason
from processors.reconstruction.passes import reconstruct
from processors.spans.span_tree import SpanTree

SMALL, LARGE = 1_000, 8_000
GENEROUS = 3.0
PASSES = 3


@pytest.fixture(scope="module")
def criteria() -> CriteriaSet:
    return load_criteria(None, environment={})


@pytest.fixture
def no_collector() -> Iterator[None]:
    """No garbage collector: what it costs depends on all that the other tests of this process hold."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(params=HOSTILE_KINDS, ids=[kind.name for kind in HOSTILE_KINDS])
def kind(request: pytest.FixtureRequest) -> HostileKind:
    chosen = request.param
    assert isinstance(chosen, HostileKind)
    return chosen


@pytest.mark.slow
@pytest.mark.usefixtures("no_collector")
def test_a_span_of_a_large_hostile_trace_costs_about_what_one_of_a_small_one_costs(
    kind: HostileKind, criteria: CriteriaSet
) -> None:
    small = hostile_cost(kind.build(SMALL), criteria, seconds=0, passes=PASSES)
    spans = kind.build(LARGE)

    # What else the machine does can only make a pass look dearer, so one good pass is enough.
    costs = (hostile_cost(spans, criteria, seconds=0, passes=1) for _ in range(PASSES))

    assert any(
        large.reconstruction / LARGE < GENEROUS * small.reconstruction / SMALL
        # Grading has caps, so it alone may cost less in the large trace: it is held to both together.
        and large.total / LARGE < GENEROUS * small.total / SMALL
        for large in costs
    )


def test_a_kind_has_as_many_spans_as_are_asked_for(kind: HostileKind) -> None:
    assert SMALL == len(SpanTree(kind.build(SMALL)))


def test_a_hostile_trace_gives_runs(kind: HostileKind) -> None:
    assert reconstruct(kind.build(SMALL), trace_id=TRACE_ID, reason=FinishReason.ROOT)


def test_memory_is_measured_beside_the_bytes_of_the_spans(criteria: CriteriaSet) -> None:
    spans = HOSTILE_KINDS[0].build(SMALL)

    peak, held = peak_memory(spans, criteria)

    assert sum(len(raw) for _, raw, _ in spans) == held
    assert peak > 0
