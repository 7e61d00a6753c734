"""Results become events; nothing else of a span changes."""

from msgspec.structs import replace
from opentelemetry.proto.trace.v1 import trace_pb2

from processors.annotation import EVENT_NAME, append_results, count_results
from processors.model import (
    AgentIdentity,
    AgentRun,
    EvaluationResult,
    FinishReason,
    NotEvaluatedReason,
    Outcome,
    Severity,
    Stage,
)
from processors.spans import RawSpan
from processors.spans.envelope import NO_ENVELOPE

_AGENT_SPAN = trace_pb2.Span(trace_id=b"t" * 16, span_id=b"a" * 8, name="invoke_agent", flags=0x100)
_TOOL_SPAN = trace_pb2.Span(trace_id=b"t" * 16, span_id=b"b" * 8, name="execute_tool")
_SPANS: list[RawSpan] = [
    (span.span_id, span.SerializeToString(), NO_ENVELOPE) for span in (_TOOL_SPAN, _AGENT_SPAN)
]
_RUN = AgentRun(
    trace_id=b"t" * 16,
    span_id=b"a" * 8,
    carrier_span_id=b"a" * 8,
    agent=AgentIdentity(name="planner"),
    finish_reason=FinishReason.ROOT_INCOMPLETE,
)
_PASSED = EvaluationResult(
    name="order",
    evaluator="tool-call-order",
    evaluator_version="1",
    outcome=Outcome.PASS,
    score=1.0,
    explanation="lcs: a, b",
    pass_threshold=0.9,
    severity=Severity.PAGE,
    criteria_hash="abc",
)


def _annotate(*results: EvaluationResult) -> list[trace_pb2.Span]:
    spans = append_results(_SPANS, [(_RUN, results)], time_unix_nano=7, instance="i-1")
    return [trace_pb2.Span.FromString(span[1]) for span in spans]


def _attributes(event: trace_pb2.Span.Event) -> dict[str, object]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value") or "") for item in event.attributes}


def test_a_verdict_is_one_event_on_the_carrier_and_the_rest_of_the_bytes_stay() -> None:
    tool, agent = _annotate(_PASSED)

    assert _TOOL_SPAN == tool
    assert [(EVENT_NAME, 7)] == [(event.name, event.time_unix_nano) for event in agent.events]
    assert {
        "gen_ai.evaluation.name": "order",
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.score.label": "pass",
        "gen_ai.evaluation.explanation": "lcs: a, b",
        "tracegrade.evaluator.id": "tool-call-order",
        "tracegrade.evaluator.version": "1",
        "tracegrade.pass_threshold": 0.9,
        "tracegrade.criteria.hash": "abc",
        "tracegrade.finish_reason": "root_incomplete",
        "tracegrade.instance": "i-1",
        "tracegrade.severity": "page",
    } == _attributes(agent.events[0])
    del agent.events[:]
    assert _AGENT_SPAN == agent


def test_the_score_is_a_double_even_when_it_is_whole() -> None:
    event = _annotate(_PASSED)[1].events[0]

    kinds = {item.key: item.value.WhichOneof("value") for item in event.attributes}

    assert kinds["gen_ai.evaluation.score.value"] == "double_value"


def test_an_error_names_its_type_and_has_no_score() -> None:
    result = EvaluationResult(
        name="n", evaluator="e", evaluator_version="1", outcome=Outcome.ERROR, error_type="ZeroDivisionError"
    )

    attributes = _attributes(_annotate(result)[1].events[0])

    assert "ZeroDivisionError" == attributes["error.type"]
    assert "gen_ai.evaluation.score.value" not in attributes


def test_not_evaluated_tells_its_reason_but_no_criteria_makes_no_event() -> None:
    def result(reason: NotEvaluatedReason) -> EvaluationResult:
        return EvaluationResult(
            name="n", evaluator="e", evaluator_version="1", outcome=Outcome.NOT_EVALUATED, reason=reason
        )

    agent = _annotate(result(NotEvaluatedReason.INCOMPLETE_TRACE), result(NotEvaluatedReason.NO_CRITERIA))[1]

    assert ["incomplete_trace"] == [
        _attributes(event)["tracegrade.not_evaluated.reason"] for event in agent.events
    ]


def test_a_verdict_on_a_call_rides_on_its_span() -> None:
    result = EvaluationResult(
        name="n",
        evaluator="e",
        evaluator_version="1",
        outcome=Outcome.PASS,
        score=0.5,
        tool_call_id="c1",
        tool_span_id=b"b" * 8,
    )

    tool, agent = _annotate(result)

    assert ["c1"] == [_attributes(event)["tracegrade.tool.call.id"] for event in tool.events]
    assert not agent.events


def test_a_verdict_whose_carrier_is_not_there_rides_on_the_first_span() -> None:
    run = AgentRun(trace_id=b"t" * 16, span_id=None, agent=AgentIdentity(name="planner"))

    spans = append_results(_SPANS, [(run, [_PASSED])], time_unix_nano=7, instance="i-1")

    assert 1 == len(trace_pb2.Span.FromString(spans[0][1]).events)


def test_events_that_came_in_are_counted_and_names_quoted_elsewhere_are_not() -> None:
    graded = append_results(_SPANS, [(_RUN, [_PASSED, _PASSED])], time_unix_nano=7, instance="i-1")
    quoted = trace_pb2.Span(name="about gen_ai.evaluation.result").SerializeToString()

    assert 2 == count_results([*graded, (b"q" * 8, quoted, NO_ENVELOPE)])


def test_events_behind_a_tag_that_is_longer_than_it_must_be_are_counted() -> None:
    event = trace_pb2.Span.Event(name=EVENT_NAME).SerializeToString()
    span_bytes = trace_pb2.Span(name="agent").SerializeToString()

    # Field 11, length-delimited, as a varint of one byte and of two.
    for tag in (b"\x5a", b"\xda\x00"):
        assert 1 == count_results([(b"q" * 8, span_bytes + tag + bytes([len(event)]) + event, NO_ENVELOPE)])


def test_text_that_is_no_unicode_does_not_break_the_event() -> None:
    result = EvaluationResult(
        name="n",
        evaluator="e",
        evaluator_version="1",
        outcome=Outcome.FAIL,
        score=0.0,
        explanation="bad \ud800 text",
    )

    assert "bad ? text" == _attributes(_annotate(result)[1].events[0])["gen_ai.evaluation.explanation"]


def test_an_event_says_when_its_result_is_in_shadow_or_muted_and_only_then() -> None:
    _, agent = _annotate(_PASSED, replace(_PASSED, stage=Stage.SHADOW, muted_until_unix_nano=5))

    live, shadow = map(_attributes, agent.events)
    assert {"tracegrade.stage": "shadow", "tracegrade.muted": True} == {
        key: value for key, value in shadow.items() if key not in live
    }
    assert live.keys() <= shadow.keys()
