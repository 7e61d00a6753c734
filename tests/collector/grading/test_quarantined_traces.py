"""Traces over which processes crashed: errors in place of verdicts, and nothing is rebuilt."""

from dataclasses import replace

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.clock import SystemClock
from collector.grading.grader import Graded, Grader, advance
from collector.journal_file.verdicts import StoredVerdicts, decode_graded, encode_graded
from collector.otlp import EnvelopeRegistry
from collector.results_config import ResultsConfig
from collector.trace import FinishedTrace, GradedTrace
from processors.criteria import CriteriaSet, read_criteria
from processors.model import EvaluationResult, FinishReason, Outcome, SkipReason
from tests.support.agent_spans import TRACE_ID, agent, tool

CRITERIA = """
agents:
  shop:
    evaluations:
      - {evaluator: tool-call-count, criteria: {tool_calls_count: {refund: ["=", 1]}}}
      - name: for the few
        evaluator: tool-call-order
        when: {input: {matches: "refund"}}
        criteria: {tool_calls_order: [refund]}
      - {name: never drawn, evaluator: run-error, sample: 1e-9}
"""
TRACE = FinishedTrace(
    trace_id=TRACE_ID,
    spans=[agent(1, None, "shop"), agent(2, 1, "clerk"), tool(3, 2, "refund")],
    reason=FinishReason.ROOT,
    quarantined=True,
)


def a_grader() -> Grader:
    criteria = CriteriaSet(read_criteria(CRITERIA, "criteria.yaml", {}).agents)
    return Grader(
        criteria=lambda: criteria,
        clock=SystemClock(),
        instance="here",
        missing_parents="grade",
        dialects=(),
        prices=None,
        uses_workers=True,
        results=ResultsConfig(),
        writes_scores=False,
    )


@pytest.fixture(autouse=True)
def rebuilding_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    def killing(*_: object, **__: object) -> None:
        raise SystemExit("a trace that crashes processes is rebuilt again")

    monkeypatch.setattr("collector.grading.grader.reconstruct", killing)


def graded_trace() -> Graded:
    graded = advance(a_grader().steps(TRACE))
    assert isinstance(graded, Graded)
    return graded


def results_of(graded: GradedTrace) -> dict[str, list[EvaluationResult]]:
    return {run.run.agent.name: list(run.results) for run in graded.runs}


def test_all_that_applies_to_an_agent_ends_in_an_error_but_what_the_sample_leaves_out() -> None:
    found_trace = graded_trace()
    graded, tally = found_trace.trace, found_trace.tally

    found = results_of(graded)

    assert ["tool-call-count", "for the few"] == [result.name for result in found["shop"]]
    for result in found["shop"]:
        assert (Outcome.ERROR, "quarantined", None) == (result.outcome, result.error_type, result.score)
        assert "the service crashed again and again while it graded this trace" == result.explanation
    assert [] == found["clerk"]
    assert (1, {SkipReason.SAMPLE: 1}, None) == (tally.without_criteria, tally.skipped, tally.failure)
    events = [event.name for event in Span.FromString(graded.spans[0][1]).events]
    assert ["gen_ai.evaluation.result"] * 2 == events
    assert TRACE.spans[1:] == graded.spans[1:]


def test_after_a_restart_it_leaves_as_it_was_without_being_rebuilt() -> None:
    graded = graded_trace().trace
    stored = decode_graded(encode_graded(TRACE, graded), EnvelopeRegistry().envelope)
    assert isinstance(stored, StoredVerdicts)

    again = a_grader().restore(
        replace(TRACE, quarantined=stored.quarantined),
        stored.results,
        unix_nano=stored.unix_nano,
        instance=stored.instance,
    )

    assert again is not None
    assert again.tally.failure is None
    assert graded.spans == again.trace.spans
    assert [run.run.agent for run in graded.runs] == [run.run.agent for run in again.trace.runs]
