"""Waits are learned from how long after their roots spans come, late ones included."""

import json
from pathlib import Path

import pytest

from collector.buffer import GroupByTraceConfig
from collector.buffer.learned_waits import (
    DEFAULT_WAIT_SECONDS,
    HORIZON_SECONDS,
    MAX_SERVICES,
    MAX_WAIT_SECONDS,
    MIN_GAPS,
    MIN_WAIT_SECONDS,
    OVERFLOW,
    GapHistogram,
    GapWatch,
    LearnedWaits,
)
from tests.support.held_spans import FIXED_GRACE, BufferUnderTest, batch, envelope, raw_span

_RECORDED = json.loads((Path(__file__).parents[2] / "data" / "root_gaps.json").read_text())
_TRACES = 10_000
"""So many of each recording are sent."""
ROOT, CHILD = raw_span(1), raw_span(2, parent=1)
AUTO = GroupByTraceConfig.model_validate({"root_grace": "auto"})


def _learned(*gaps: float, service: str = "agent") -> LearnedWaits:
    waits = LearnedWaits()
    for gap in gaps:
        waits.add(service, gap)
    return waits


def test_until_enough_was_seen_the_fixed_wait_counts() -> None:
    waits = _learned(*[0.0] * (MIN_GAPS - 1))

    assert DEFAULT_WAIT_SECONDS == waits.wait("agent")
    assert {} == waits.waits()
    waits.add("agent", 0.0)
    assert MIN_WAIT_SECONDS == waits.wait("agent")


@pytest.mark.parametrize(("gap", "wait"), [(0.0, 0.2), (0.5, 0.5), (3.0, 3.0), (30.0, MAX_WAIT_SECONDS)])
def test_the_wait_covers_the_gaps_to_a_tenth_within_its_bounds(gap: float, wait: float) -> None:
    found = _learned(*[0.0, gap] * MIN_GAPS).wait("agent")

    assert wait <= found <= min(1.1 * wait, MAX_WAIT_SECONDS)


def test_gaps_so_rare_that_they_may_be_missed_are() -> None:
    often = [0.0] * 9_990 + [4.0] * 10
    seldom = [0.0] * 9_996 + [4.0] * 4

    assert MIN_WAIT_SECONDS == _learned(*seldom[::-1]).wait("agent")
    assert 4.0 <= _learned(*often).wait("agent")


def test_what_was_seen_lately_weighs_most() -> None:
    histogram = GapHistogram()
    for _ in range(20_000):
        histogram.add(5.0)
    for _ in range(200_000):
        histogram.add(0.0)

    assert histogram.total <= 20_000
    assert 0.1 > histogram.quantile(0.9995)


def test_each_service_has_its_own_and_those_beyond_a_bound_one_together() -> None:
    waits = LearnedWaits()
    for number in range(MAX_SERVICES):
        waits.add(f"service-{number}", 0.0)
    for number in range(2 * MIN_GAPS):
        waits.add(f"other-{number}", 1.0)

    assert 1.0 <= waits.wait("other-1") == waits.wait("never seen") <= 1.1
    assert [OVERFLOW] == list(waits.waits())
    assert DEFAULT_WAIT_SECONDS == waits.wait("service-7")


def test_late_spans_are_part_of_the_gap() -> None:
    waits = LearnedWaits()
    watch = GapWatch(waits)
    for number in range(MIN_GAPS + 1):
        at = float(number)
        watch.finish(number.to_bytes(4), "agent", at, at, at + 0.2)
        watch.note_late(number.to_bytes(4), at + 1.5)
    watch.finish(b"", "agent", 1e6, 1e6, 1e6)

    assert 1.5 <= waits.wait("agent") <= 1.65


def test_a_gap_is_counted_once_its_late_spans_had_time_to_come() -> None:
    heard: list[str] = []

    class Waits(LearnedWaits):
        def add(self, service: str, seconds: float) -> None:
            heard.append(service)

    watch = GapWatch(Waits())
    watch.finish(b"1", "agent", 0.0, 0.0, 0.5)
    watch.finish(b"2", "other", 1.0, 1.0, 0.5 + HORIZON_SECONDS - 0.1)
    assert [] == heard
    watch.finish(b"3", "agent", 9.0, 9.0, 0.5 + HORIZON_SECONDS)
    assert ["agent"] == heard


def _buffer(
    waits: LearnedWaits | None, config: GroupByTraceConfig = AUTO, delay: float = 0.0
) -> BufferUnderTest:
    return BufferUnderTest(config, learned=waits, verdict_delay=delay)


def test_a_trace_finishes_after_the_wait_of_its_service() -> None:
    quick = envelope("quick")
    buffer = _buffer(_learned(*[0.0] * MIN_GAPS, service="quick"))
    buffer.admit(batch(ROOT), batch(raw_span(1, of=quick), trace=2))

    assert [quick] == [trace.spans[0][2] for trace in buffer.pass_time(0.5)]
    assert [] == buffer.pass_time(1.0)
    assert 1 == len(buffer.pass_time(0.5))


def test_services_that_report_together_or_have_waits_of_their_own_are_left_alone() -> None:
    quick = envelope("quick")
    own = GroupByTraceConfig.model_validate(
        {"root_grace": "auto", "services": {"quick": {"root_grace": "3s"}}}
    )
    waits = _learned(*[0.0] * MIN_GAPS, service="quick")

    together = _buffer(waits)
    together.admit(batch(raw_span(1, of=quick), CHILD))
    alone = _buffer(waits, own)
    alone.admit(batch(raw_span(1, of=quick)))

    assert ([], 1) == (together.pass_time(5.5), len(together.pass_time(0.5)))
    assert ([], 1) == (alone.pass_time(2.5), len(alone.pass_time(0.5)))


def test_the_delay_of_verdicts_comes_on_top() -> None:
    buffer = _buffer(_learned(*[0.0] * MIN_GAPS), delay=3.0)
    buffer.admit(batch(ROOT))

    assert ([], 1) == (buffer.pass_time(3.0), len(buffer.pass_time(0.5)))


def test_with_a_fixed_wait_nothing_is_kept_to_learn_from() -> None:
    buffer = _buffer(None, GroupByTraceConfig())
    buffer.admit(batch(ROOT))

    (held,) = buffer.buffer._traces.values()
    assert held.arrivals is None


class _Simulation:
    """Recorded traces sent through a real buffer; of each the root comes first, then what came after it.

    Gaps are `slower` times as long as they were recorded.
    """

    def __init__(
        self, recording: str, config: GroupByTraceConfig, waits: LearnedWaits | None, slower: int = 1
    ) -> None:
        self._buffer = _buffer(waits, config)
        self.traces, self.late, self.waited = 0, 0, 0.0
        recorded = _RECORDED[recording]
        after = recorded["milliseconds_after_root"]
        due: list[tuple[int, int, int]] = []
        for number in range(_TRACES):
            start = 20 * number
            due.append((start, number, 1))
            gaps = enumerate(after.get(str(number), ()), 2)
            due += [(start + slower * gap, number, place) for place, gap in gaps]
        self._due = sorted(due)
        self._begin: dict[bytes, int] = {}

    def run(self, counted_from: int = 0) -> None:
        """Let all of it pass; traces are counted from one number on."""
        now, next_poll = 0, 0
        late: set[int] = set()
        for at, number, place in self._due:
            while next_poll <= at:
                self._poll(next_poll - now, counted_from)
                now, next_poll = next_poll, next_poll + 100
            self._buffer.clock.advance((at - now) / 1000)
            now = at
            spans = ROOT if place == 1 else raw_span(place, parent=1)
            if self._buffer.admit(batch(spans, trace=number + 1)) and number >= counted_from:
                late.add(number)
        for _ in range(80):
            self._poll(100, counted_from)
        self.late = len(late)

    def _poll(self, milliseconds: int, counted_from: int) -> None:
        self._buffer.clock.advance(milliseconds / 1000)
        for trace in self._buffer.buffer.poll():
            if int.from_bytes(trace.trace_id, "big") - 1 >= counted_from:
                self.traces += 1
                self.waited += trace.held_seconds


def _simulated(recording: str, slower: int = 1) -> tuple[_Simulation, _Simulation]:
    """With the fixed wait, and with the learned one once it was learned."""
    fixed = _Simulation(recording, FIXED_GRACE, None, slower)
    learned = _Simulation(recording, AUTO, LearnedWaits(), slower)
    for simulation in (fixed, learned):
        simulation.run(counted_from=_TRACES // 2)
    return fixed, learned


def test_recorded_traces_that_are_whole_with_their_root_wait_a_fraction_as_long() -> None:
    fixed, learned = _simulated("quick")

    assert fixed.traces == learned.traces > MIN_GAPS
    assert learned.late <= 0.001 * learned.traces
    assert learned.waited / learned.traces < 0.2 * fixed.waited / fixed.traces


@pytest.mark.parametrize(
    ("slower", "most_of_fixed"), [(1, 0.65), (4, 2.2)], ids=["as recorded", "slow exporter"]
)
def test_recorded_traces_with_spans_after_their_roots_wait_as_long_as_they_have_to(
    slower: int, most_of_fixed: float
) -> None:
    fixed, learned = _simulated("background", slower)

    assert fixed.traces == learned.traces > MIN_GAPS
    assert learned.late <= 0.001 * learned.traces
    assert learned.waited / learned.traces < most_of_fixed * fixed.waited / fixed.traces
    # Were the gaps four times as long, two seconds would be too few.
    assert (slower > 1) == (fixed.late > 0.001 * fixed.traces)
