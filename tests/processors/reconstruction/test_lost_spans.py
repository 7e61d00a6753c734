"""Spans that were lost on the way never turn a verdict around: it stays, or there is none."""

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.otlp.codec import split_request
from processors.criteria.agent_criteria import CriteriaSet
from processors.criteria.criteria_file import read_criteria
from processors.evaluate import evaluate_run
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import Outcome
from processors.model.finish_reason import CUT_SHORT, FinishReason
from processors.reconstruction.passes import reconstruct
from processors.spans.span import RawSpan, Span
from tests.support.corpus import recorded_requests

FRAMEWORKS = (
    "pydantic_ai",
    "openinference_langchain",
    "openinference_openai_agents",
    "uipath_style",
    "agent-framework",
)

CRITERIA = """
agents:
  "*":
    evaluations:
      - evaluator: tool-call-order
        criteria: {tool_calls_order: [get_temperature, get_humidity, get_forecast]}
      - evaluator: tool-call-order
        name: strict order
        config: {strict: true}
        criteria: {tool_calls_order: [get_temperature, get_weather_condition, get_humidity, get_forecast]}
      - evaluator: tool-call-count
        criteria: {tool_calls_count: {get_temperature: ["=", 1], get_forecast: [">=", 1]}}
      - evaluator: tool-call-count
        name: at most
        criteria: {tool_calls_count: {get_temperature: ["<=", 1]}}
      - evaluator: tool-call-args
        criteria: {tool_calls: [{name: get_temperature, args: {city: London}}]}
      - evaluator: tool-call-args
        name: tokyo
        criteria: {tool_calls: [{name: get_temperature, args: {city: Tokyo}}]}
      - evaluator: tool-call-output
        criteria: {tool_outputs: [{name: get_humidity, output: {humidity: 80}}]}
      - evaluator: tool-call-output
        name: strict output
        config: {strict: true}
        criteria: {tool_outputs: [{name: get_humidity, output: {humidity: 80}}]}
      - evaluator: tool-repetition
      - evaluator: tool-repetition
        name: twice
        config: {threshold: 2}
      - evaluator: tool-error-recovery
"""


@cache
def _criteria() -> CriteriaSet:
    return CriteriaSet(read_criteria(CRITERIA, "criteria.yaml", {}).agents)


@cache
def _traces() -> list[tuple[bytes, Sequence[RawSpan]]]:
    traces: dict[bytes, list[RawSpan]] = {}
    for framework in FRAMEWORKS:
        for body in recorded_requests(framework):
            for trace_id, spans in split_request(body).traces.items():
                traces.setdefault(trace_id, []).extend(spans)
    return list(traces.items())


def _verdicts(runs: Sequence[AgentRun]) -> dict[str, set[Outcome]]:
    """The outcomes of every evaluation over all runs of a trace."""
    verdicts: dict[str, set[Outcome]] = {}
    for run in runs:
        for result in evaluate_run(run, _criteria().evaluations_for(run.agent.name)):
            verdicts.setdefault(result.name, set()).add(result.outcome)
    return verdicts


def _assert_no_other_verdict(
    trace_id: bytes, spans: Sequence[RawSpan], disturbed: Sequence[AgentRun]
) -> None:
    undisturbed = _verdicts(reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT))
    for name, outcomes in _verdicts(disturbed).items():
        assert outcomes <= undisturbed[name] | {Outcome.NOT_EVALUATED}, (name, outcomes, undisturbed[name])


@given(st.data())
def test_a_verdict_on_an_interrupted_trace_is_the_undisturbed_one_or_none(data: st.DataObject) -> None:
    trace_id, spans = _traces()[data.draw(st.integers(0, len(_traces()) - 1))]
    kept = [spans[index] for index in data.draw(st.sets(st.integers(0, len(spans) - 1), min_size=1))]

    runs = reconstruct(kept, trace_id=trace_id, reason=FinishReason.ROOT_INCOMPLETE, interrupted=True)

    _assert_no_other_verdict(trace_id, spans, runs)


@given(st.data(), st.sampled_from(sorted(CUT_SHORT)))
def test_a_trace_that_was_cut_short_never_gives_another_verdict(
    data: st.DataObject, reason: FinishReason
) -> None:
    trace_id, spans = _traces()[data.draw(st.integers(0, len(_traces()) - 1))]
    by_end = sorted(spans, key=lambda span: Span(span[1]).end_unix_nano)
    kept = by_end[: data.draw(st.integers(1, len(by_end)))]

    runs = reconstruct(kept, trace_id=trace_id, reason=reason)

    _assert_no_other_verdict(trace_id, spans, runs)


@pytest.mark.parametrize("index", range(len(_traces())))
def test_without_the_invocation_span_the_verdict_stays_or_there_is_none(index: int) -> None:
    trace_id, spans = _traces()[index]
    carriers = {run.span_id for run in reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)}
    kept = [span for span in spans if span[0] not in carriers]

    runs = reconstruct(kept, trace_id=trace_id, reason=FinishReason.IDLE)

    _assert_no_other_verdict(trace_id, spans, runs)
