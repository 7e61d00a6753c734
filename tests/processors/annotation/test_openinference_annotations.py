"""Results as evaluation attributes of OpenInference: flat, numbered, beside what the span has already."""

import json

from msgspec.structs import replace
from opentelemetry.proto.trace.v1 import trace_pb2

from processors.annotation import append_results
from processors.model import EvaluationResult, Stage
from processors.spans import RawSpan
from tests.support.agent_spans import span
from tests.support.graded_spans import (
    BROKEN,
    FAILED_CALL,
    NOT_EVALUATED,
    PASSED,
    RUN,
    SPANS,
    WITHOUT_CRITERIA,
    attributes_of,
)


def _annotate(
    *results: EvaluationResult, spans: list[RawSpan] = SPANS, events: bool = False
) -> list[trace_pb2.Span]:
    annotated = append_results(
        spans, [(RUN, results)], time_unix_nano=7, instance="i-1", events=events, openinference=True
    )
    return [trace_pb2.Span.FromString(payload) for _, payload, _ in annotated]


def _evaluation(carrier: trace_pb2.Span, index: int) -> dict[str, object]:
    prefix = f"evaluations.{index}.evaluation."
    return {
        key.removeprefix(prefix): value
        for key, value in attributes_of(list(carrier.attributes)).items()
        if key.startswith(prefix)
    }


def test_a_result_is_one_evaluation_judged_by_code() -> None:
    found = _evaluation(_annotate(PASSED)[1], 0)

    metadata = json.loads(str(found.pop("metadata")))
    assert {
        "name": "order",
        "score": 1.0,
        "label": "pass",
        "explanation": "lcs: a, b",
        "annotator_kind": "CODE",
        "identifier": "tracegrade",
    } == found
    assert {
        "evaluator": "tool-call-order",
        "evaluator_version": "1",
        "pass_threshold": 0.9,
        "criteria_hash": "abc",
        "severity": "page",
        "finish_reason": "root_incomplete",
    } == metadata


def test_what_a_result_lacks_is_left_out_and_what_it_has_beside_is_metadata() -> None:
    shadow = replace(NOT_EVALUATED, stage=Stage.SHADOW, muted_until_unix_nano=9)
    _, carrier = _annotate(BROKEN, shadow, WITHOUT_CRITERIA)

    broken, not_evaluated = _evaluation(carrier, 0), _evaluation(carrier, 1)
    assert {"name", "label", "annotator_kind", "identifier", "metadata"} == broken.keys()
    assert ("error", "not_evaluated") == (broken["label"], not_evaluated["label"])
    assert "KeyError" == json.loads(str(broken["metadata"]))["error_type"]
    metadata = json.loads(str(not_evaluated["metadata"]))
    assert ("incomplete_trace", "shadow", True) == (
        metadata["not_evaluated_reason"],
        metadata["stage"],
        metadata["muted"],
    )
    assert {} == _evaluation(carrier, 2)


def test_a_verdict_on_a_call_stands_on_the_span_of_the_call() -> None:
    tool, agent_span = _annotate(FAILED_CALL, PASSED)

    assert ("args", "call_1") == (
        _evaluation(tool, 0)["name"],
        json.loads(str(_evaluation(tool, 0)["metadata"]))["tool_call_id"],
    )
    assert "order" == _evaluation(agent_span, 0)["name"]


def test_evaluations_that_are_there_already_keep_their_numbers() -> None:
    theirs = span(1, None, "planner", {"evaluations.3.evaluation.name": "theirs", "evaluations.x": "y"})

    (annotated,) = _annotate(PASSED, spans=[theirs])

    assert {"name": "theirs"} == _evaluation(annotated, 3)
    assert "order" == _evaluation(annotated, 4)["name"]


def test_the_rest_of_the_span_stays_and_events_are_beside_if_asked_for() -> None:
    _, with_both = _annotate(PASSED, events=True)
    _, without = _annotate(PASSED)

    assert (1, 0) == (len(with_both.events), len(without.events))
    kept = [item for item in without.attributes if not item.key.startswith("evaluations.")]
    del without.attributes[:]
    without.attributes.extend(kept)
    assert trace_pb2.Span.FromString(SPANS[1][1]) == without
