"""Results as a span of their own: small, in the same trace, always the same one, and never graded."""

from dataclasses import replace

from opentelemetry.proto.trace.v1 import trace_pb2

from processors.annotation import append_results
from processors.annotation.evaluation_span import SCOPE_NAME, evaluation_spans
from processors.model import AgentIdentity, AgentRun, EvaluationResult, FinishReason
from processors.reconstruction import reconstruct, span_reader
from processors.shapes import DialectMapping
from processors.spans import RawSpan
from tests.support.agent_spans import MILLISECOND, TRACE_ID, runs_of, span_id
from tests.support.graded_spans import (
    BROKEN,
    FAILED_CALL,
    PASSED,
    RUN,
    SPANS,
    WITHOUT_CRITERIA,
    attributes_of,
)


def _made(
    *results: EvaluationResult, run: AgentRun = RUN, time: int = 7, openinference: bool = False
) -> list[RawSpan]:
    return evaluation_spans(
        SPANS, [(run, results)], time_unix_nano=time, instance="i-1", openinference=openinference
    )


def _message(span: RawSpan) -> trace_pb2.Span:
    return trace_pb2.Span.FromString(span[1])


def test_it_is_a_child_of_the_agents_span_at_the_end_of_the_run() -> None:
    (made,) = _made(PASSED)

    span = _message(made)
    assert (TRACE_ID, span_id(1), "evaluate planner") == (span.trace_id, span.parent_span_id, span.name)
    assert made[0] == span.span_id
    assert 8 == len(span.span_id)
    assert (100 * MILLISECOND,) * 2 == (span.start_time_unix_nano, span.end_time_unix_nano)
    assert trace_pb2.Span.SPAN_KIND_INTERNAL == span.kind
    assert {"gen_ai.agent.name": "planner", "tracegrade.instance": "i-1"} == attributes_of(
        list(span.attributes)
    )


def test_it_carries_the_events_that_the_agents_spans_would_carry() -> None:
    results = [PASSED, BROKEN, FAILED_CALL, WITHOUT_CRITERIA]
    annotated = append_results(SPANS, [(RUN, results)], time_unix_nano=7, instance="i-1")
    expected = [event for span in annotated for event in _message(span).events]

    (made,) = _made(*results)

    found = list(_message(made).events)
    assert sorted(expected, key=str) == sorted(found, key=str)
    assert 3 == len(found)


def test_it_has_the_resource_of_the_agent_and_a_scope_of_its_own() -> None:
    (made,) = _made(PASSED)

    assert SPANS[1][2].resource == made[2].resource
    assert SCOPE_NAME == made[2].scope_name


def test_the_same_run_gives_the_same_id_whenever_it_is_graded() -> None:
    (first,), (again,) = _made(PASSED), _made(FAILED_CALL, time=99)

    assert first[0] == again[0]


def test_runs_that_share_a_span_have_spans_of_their_own() -> None:
    other = replace(RUN, agent=AgentIdentity(name="helper"))

    made = evaluation_spans(
        SPANS, [(RUN, [PASSED]), (other, [PASSED]), (RUN, [PASSED])], time_unix_nano=7, instance="i-1"
    )

    assert 3 == len({span[0] for span in made} - {span[0] for span in SPANS})


def test_a_run_without_results_or_without_spans_makes_none() -> None:
    assert [] == _made(WITHOUT_CRITERIA)
    assert [] == evaluation_spans((), [(RUN, [PASSED])], time_unix_nano=7, instance="i-1")


def test_a_run_whose_carrier_is_not_there_hangs_below_the_first_span() -> None:
    (made,) = _made(PASSED, run=replace(RUN, carrier_span_id=None, end_unix_nano=0))

    span = _message(made)
    assert span_id(2) == span.parent_span_id
    assert (7, 7) == (span.start_time_unix_nano, span.end_time_unix_nano)


def test_names_that_are_no_unicode_do_no_harm() -> None:
    (made,) = _made(PASSED, run=replace(RUN, agent=AgentIdentity(name="bad \ud800")))

    assert "evaluate bad ?" == _message(made).name


def test_no_dialect_reads_it_as_a_run_or_a_call() -> None:
    own = DialectMapping.model_validate(
        {"name": "acme", "agent": {"name": "acme.agent"}, "tool": {"name": "t"}}
    ).dialect()

    for openinference in (False, True):
        made = _made(PASSED, FAILED_CALL, openinference=openinference)

        assert [] == runs_of(made)
        assert [] == reconstruct(made, trace_id=TRACE_ID, reason=FinishReason.ROOT, reader=span_reader([own]))
        alone, together = runs_of(SPANS), runs_of([*SPANS, *made])
        assert 1 == len(alone)
        assert [(run.agent, run.tool_calls, run.complete) for run in alone] == [
            (run.agent, run.tool_calls, run.complete) for run in together
        ]


def test_with_annotations_it_is_an_evaluator_for_openinference() -> None:
    (made,) = _made(PASSED, openinference=True)

    attributes = attributes_of(list(_message(made).attributes))
    assert "EVALUATOR" == attributes["openinference.span.kind"]
    assert "order" == attributes["evaluations.0.evaluation.name"]
