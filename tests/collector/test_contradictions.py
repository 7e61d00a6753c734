"""Late spans are held against the verdicts on their traces: the traces are graded again, and nothing else."""

import pytest

from collector.clock import ManualClock
from collector.contradictions import KEPT_BYTES, KEPT_SECONDS, SETTLE_SECONDS, Contradictions
from collector.grading import Grader, GradingStage
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, SpanBatch
from processors.criteria import CriteriaSet, read_criteria
from processors.model import FinishReason
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.both_signals import traces_in

_CRITERIA = """
agents:
  shop:
    evaluations:
      - {evaluator: tool-permission, criteria: {deny: [delete]}}
      - {evaluator: tool-call-count, criteria: {tool_calls_count: {search: [">=", 2]}}}
"""


class _Checked:
    """A trace of one search, graded by the real stage and kept."""

    def __init__(self, padding: str = "") -> None:
        self.clock = ManualClock()
        self.metrics = Metrics()
        self.criteria = CriteriaSet(read_criteria(_CRITERIA, "criteria.yaml", {}).agents)
        self.stage = GradingStage(
            grader=Grader(criteria=lambda: self.criteria, clock=self.clock, instance="test"),
            metrics=self.metrics,
            clock=self.clock,
        )
        self.contradictions = Contradictions(
            self.stage.regrade, criteria=lambda: self.criteria, metrics=self.metrics, clock=self.clock
        )
        self.keep(TRACE_ID, padding)

    def keep(self, trace_id: bytes, padding: str = "") -> None:
        spans = [tool(2, 1, "search", result=padding), agent(1, None, "shop")]
        trace = FinishedTrace(
            trace_id=trace_id,
            spans=[(key, payload.replace(TRACE_ID, trace_id), of) for key, payload, of in spans],
            reason=FinishReason.ROOT,
        )
        self.contradictions.keep(trace, self.stage.grade_now(trace))

    def late(self, *spans: RawSpan) -> None:
        """Let spans come late, and be looked at."""
        self.contradictions.note_late(SpanBatch(TRACE_ID, spans))
        self.clock.advance(SETTLE_SECONDS)
        self.contradictions.check()

    @property
    def contradicted(self) -> dict[str, float]:
        values = self.metrics.verdicts_contradicted.values
        return {outcome: count for (outcome,), count in values.items() if count}

    @property
    def checked(self) -> dict[str, float]:
        values = self.metrics.late_traces_checked.values
        return {result: count for (result,), count in values.items() if count}


def test_a_late_call_that_changes_verdicts_contradicts_them() -> None:
    checked = _Checked()

    checked.late(tool(3, 1, "delete"))
    assert ({"pass": 1}, {"contradicted": 1}) == (checked.contradicted, checked.checked)

    checked.late(tool(4, 1, "search", at=(30, 40)))
    assert {"pass": 1, "fail": 1} == checked.contradicted


def test_one_that_changes_none_does_not() -> None:
    checked = _Checked()

    checked.late(tool(3, 1, "look"))

    assert ({}, {"same": 1}) == (checked.contradicted, checked.checked)


def test_late_spans_of_one_trace_are_looked_at_together_once_no_more_come() -> None:
    checked = _Checked()
    checked.contradictions.note_late(SpanBatch(TRACE_ID, [tool(3, 1, "delete")]))
    checked.clock.advance(SETTLE_SECONDS / 2)
    checked.contradictions.check()
    assert {} == checked.checked

    checked.late(tool(4, 1, "delete", at=(30, 40)))

    assert {"contradicted": 1} == checked.checked


def test_grading_again_leaves_no_other_mark() -> None:
    checked = _Checked()
    before = {
        instrument.name: dict(instrument.values)
        for instrument in checked.metrics.instruments()
        if hasattr(instrument, "values")
    }

    checked.late(tool(3, 1, "delete"))

    after = {
        instrument.name: dict(instrument.values)
        for instrument in checked.metrics.instruments()
        if hasattr(instrument, "values")
    }
    changed = {name for name, values in after.items() if before[name] != values}
    assert {"tracegrade_verdicts_contradicted", "tracegrade_late_traces_checked"} == changed


def test_after_a_reload_nothing_is_compared() -> None:
    checked = _Checked()
    checked.criteria = CriteriaSet(
        read_criteria(_CRITERIA.replace("delete", "search"), "criteria.yaml", {}).agents
    )

    checked.late(tool(3, 1, "delete"))

    assert ({}, {"not_graded": 1}) == (checked.contradicted, checked.checked)


@pytest.mark.parametrize("why", ["age", "room", "size"])
def test_what_is_kept_is_bounded_and_what_is_not_kept_is_counted(why: str) -> None:
    checked = _Checked(padding="x" * 2_000_000 if why == "size" else "")
    if why == "age":
        checked.clock.advance(KEPT_SECONDS)
        checked.keep(b"\7" * 16)
    if why == "room":
        for number in range(1, 40):
            checked.keep(number.to_bytes(16, "big"), padding="x" * 950_000)

    checked.late(tool(3, 1, "delete"))

    assert checked.contradictions.kept_bytes <= KEPT_BYTES
    assert ({}, {"not_kept": 1}) == (checked.contradicted, checked.checked)


def test_late_log_records_are_looked_at_as_late_spans_are() -> None:
    checked = _Checked()
    ((trace_id, of),) = traces_in("adot_strands").items()
    trace = FinishedTrace(trace_id=trace_id, spans=of.spans, reason=FinishReason.ROOT)
    checked.criteria = CriteriaSet(
        read_criteria(_CRITERIA.replace("shop", '"*"'), "criteria.yaml", {}).agents
    )
    checked.contradictions.keep(trace, checked.stage.grade_now(trace))

    checked.contradictions.note_late(SpanBatch(trace_id, of.records), are_records=True)
    checked.clock.advance(SETTLE_SECONDS)
    checked.contradictions.check()

    assert ({}, {"same": 1}) == (checked.contradicted, checked.checked)
