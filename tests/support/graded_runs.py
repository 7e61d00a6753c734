"""Graded runs made by hand, and strategies for any run that a line can hold."""

import dataclasses
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from collector.trace import GradedTrace
from processors.annotation.run_line import incomplete_reason_of
from processors.model import (
    AgentIdentity,
    AgentRun,
    CallCategory,
    EvaluationResult,
    FinishReason,
    GradedRun,
    IncompleteReason,
    Message,
    ModelCall,
    NotEvaluatedReason,
    Outcome,
    TokenUsage,
    ToolCall,
    ToolError,
    ValueState,
)

TRACE_ID = bytes(range(16))


def result(name: str = "check", outcome: Outcome = Outcome.PASS, **fields: Any) -> EvaluationResult:
    score = {Outcome.PASS: 1.0, Outcome.FAIL: 0.5}.get(outcome)
    fields = {"score": score, "evaluator": name, "evaluator_version": "1"} | fields
    return EvaluationResult(name=name, outcome=outcome, **fields)


def weather_run() -> GradedRun:
    """A run with one call of every kind that a reader meets, and one result of every outcome."""
    calls = [
        ToolCall(
            name="get_temperature",
            arguments={"city": "Oslo"},
            arguments_text='{"city": "Oslo"}',
            arguments_state=ValueState.PRESENT,
            result={"temperature": 21.5},
            result_text='{"temperature": 21.5}',
            result_state=ValueState.PRESENT,
            call_id="call_1",
            span_id=b"span0001",
        ),
        ToolCall(
            name="get_forecast",
            arguments={"days": 7},
            arguments_text='{"days": 7}',
            arguments_state=ValueState.PRESENT,
            error=ToolError(type="TimeoutError", message="took \x1b[31mtoo long"),
            span_id=b"span0002",
        ),
        ToolCall(name="send_mail", result_state=ValueState.REDACTED, executed=False),
    ]
    run = AgentRun(
        trace_id=TRACE_ID,
        span_id=b"agent001",
        carrier_span_id=b"agent001",
        agent=AgentIdentity(name="weather_agent", version="1.2"),
        start_unix_nano=1_769_846_400_000_000_000,
        end_unix_nano=1_769_846_402_500_000_001,
        tool_calls=calls,
        input={"action": "get_forecast"},
        input_state=ValueState.PRESENT,
        output="It is warm.",
        output_state=ValueState.PRESENT,
        messages=[Message(role="user", content="Weather?")],
    )
    results = [
        result("order", explanation="expected: [a]; actual: [a]", details={"expected": ["a"]}),
        result("args", Outcome.FAIL, explanation="days: expected 5"),
        result("output", Outcome.NOT_EVALUATED, reason=NotEvaluatedReason.CONTENT_NOT_CAPTURED),
        result("third-party", Outcome.ERROR, error_type="KeyError"),
    ]
    return GradedRun(run=run, results=results)


def trace_of(*runs: GradedRun) -> GradedTrace:
    return GradedTrace(trace_id=TRACE_ID, spans=(), runs=runs)


_texts = st.text(st.characters(codec="utf-8"), max_size=12)
_ids = st.binary(min_size=8, max_size=8).filter(any)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(_texts, children, max_size=3),
    max_leaves=8,
)
_attributes = st.dictionaries(_texts, _values, max_size=2)
_moments = st.integers(0, 2**64 - 1)
_calls = st.builds(
    ToolCall,
    name=_texts,
    call_id=st.none() | _texts,
    span_id=st.none() | _ids,
    category=st.sampled_from(CallCategory),
    arguments=_values,
    arguments_text=st.none() | _texts,
    arguments_state=st.sampled_from(ValueState),
    result=_values,
    result_text=st.none() | _texts,
    result_state=st.sampled_from(ValueState),
    error=st.none() | st.builds(ToolError, type=_texts, message=_texts),
    lenient_values=st.booleans(),
    parallel_group=st.none() | st.integers(0, 9),
    executed=st.booleans(),
    start_unix_nano=_moments,
    end_unix_nano=_moments,
    attempt=st.integers(0, 9),
    retry_of=st.none() | st.integers(0, 9),
)

_counts = st.integers(0, 10**12)
_seconds = st.none() | st.floats(0, 1e6)
_usages = st.builds(TokenUsage, _counts, _counts, *[st.none() | _counts] * 3)
_model_calls = st.builds(
    ModelCall,
    model=st.none() | _texts,
    usage=st.none() | _usages,
    time_to_first_output_seconds=_seconds,
    start_unix_nano=_moments,
    duration_seconds=_seconds,
    failed=st.booleans(),
)

_incomplete_reasons: st.SearchStrategy[IncompleteReason] = st.sampled_from(
    ["incomplete_trace", "over_limit", "content_not_captured"]
)


@st.composite
def agent_runs(draw: st.DrawFn) -> AgentRun:
    """Any run that a line can hold."""
    reason = draw(st.sampled_from(FinishReason))
    complete = draw(st.booleans())
    span_id = draw(st.none() | _ids)
    model_calls = tuple(draw(st.lists(_model_calls, max_size=2)))
    run = AgentRun(
        trace_id=draw(st.binary(min_size=16, max_size=16).filter(any)),
        span_id=span_id,
        carrier_span_id=draw(st.just(span_id) | st.none() | _ids),
        agent=AgentIdentity(name=draw(_texts), id=draw(st.none() | _texts), version=draw(st.none() | _texts)),
        tool_calls=draw(st.lists(_calls, max_size=3)),
        model_calls=model_calls,
        models=tuple(draw(st.lists(_texts, min_size=1, max_size=2, unique=True))),
        usage=draw(_usages if model_calls else st.none() | _usages),
        time_to_first_output_seconds=draw(_seconds),
        cost=draw(_seconds),
        parent_agent=draw(st.none() | _texts),
        session=draw(st.none() | _texts),
        input=draw(_values),
        input_state=draw(st.sampled_from(ValueState)),
        output=draw(_values),
        output_state=draw(st.sampled_from(ValueState)),
        error=draw(st.none() | st.builds(ToolError, type=_texts, message=_texts)),
        messages=draw(
            st.lists(
                st.builds(
                    Message,
                    role=st.sampled_from(["system", "user", "assistant", "tool"]),
                    content=_texts,
                    turn=st.integers(0, 5),
                ),
                max_size=3,
            )
        ),
        finish_reason=reason,
        complete=complete,
        # Where a run is complete the reason says nothing, so a line does not hold it.
        incomplete_reason=incomplete_reason_of(reason) if complete else draw(_incomplete_reasons),
        start_unix_nano=draw(_moments),
        end_unix_nano=draw(_moments),
        tenant=draw(_texts),
        resource=draw(_attributes),
        span_attributes=draw(_attributes),
        requested_calls=tuple(
            draw(
                st.lists(
                    st.tuples(st.integers(0, 3), st.builds(replace, _calls, executed=st.just(False))),
                    max_size=2,
                )
            )
        ),
    )
    turns = draw(st.lists(st.none() | st.integers(0, 5), min_size=len(run.calls), max_size=len(run.calls)))
    return dataclasses.replace(run, call_turns=() if set(turns) <= {None} else turns)
