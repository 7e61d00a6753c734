"""All forms in which a verdict leaves carry the same facts.

A form is a function from a result to what a reader of that form finds: facts by name, as texts. A new form
joins `FORMS`; what it leaves out stands in `LEFT_OUT`, with the
reason.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp import join_spans
from collector.printing import RunPrintout
from processors.annotation import append_results, evaluation_spans, format_run, result_records
from processors.model import (
    AgentRun,
    EvaluationResult,
    GradedRun,
    NotEvaluatedReason,
    Outcome,
    Severity,
    Stage,
    time_text,
    unix_nano_of,
)
from processors.spans import Envelope, RawSpan
from tests.support.agent_spans import agent, runs_of, span_id, tool
from tests.support.graded_spans import attributes_of
from tests.support.score_backend import exported
from tests.support.stored_runs import filled

Facts: TypeAlias = dict[str, str]

GRADED, INSTANCE = 1_769_846_403_250_000_000, "tracegrade-0:17"
SPANS = [
    tool(2, 1, "get_weather", (10, 20), call_id="call_1"),
    agent(
        1,
        None,
        "planner",
        (0, 100),
        **{
            "gen_ai.agent.id": "agent-7",
            "gen_ai.agent.version": "2.1",
            "gen_ai.conversation.id": "talk-3",
        },
    ),
]


def rebuilt_run() -> AgentRun:
    (run,) = runs_of(SPANS)
    return replace(run, tenant="blue", content=None)


RUN = rebuilt_run()

RESULTS = [
    EvaluationResult(
        name="order",
        evaluator="tool-call-order",
        evaluator_version="3",
        outcome=Outcome.PASS,
        score=1.0,
        explanation="lcs: a, b",
        severity=Severity.PAGE,
        criteria_hash="0123456789abcdef",
    ),
    EvaluationResult(
        name="args",
        evaluator="tool-call-args",
        evaluator_version="2",
        outcome=Outcome.FAIL,
        score=0.25,
        explanation="city: expected London",
        pass_threshold=0.75,
        severity=Severity.ADVISORY,
        criteria_hash="fedcba9876543210",
        stage=Stage.SHADOW,
        muted_until_unix_nano=GRADED + 1,
        tool_call_id="call_1",
        tool_span_id=span_id(2),
    ),
    EvaluationResult(
        name="own",
        evaluator="polite",
        evaluator_version="1",
        outcome=Outcome.ERROR,
        error_type="KeyError",
        explanation="evaluator polite raised KeyError",
        criteria_hash="1",
    ),
    EvaluationResult(
        name="answer",
        evaluator="contains",
        evaluator_version="1",
        outcome=Outcome.NOT_EVALUATED,
        reason=NotEvaluatedReason.CONTENT_NOT_CAPTURED,
        explanation="the output",
        criteria_hash="2",
    ),
]

LEFT_OUT: Mapping[str, set[str]] = {
    "span event": set(),
    "log record": set(),
    "evaluation span": set(),
    "results_file": set(),
    "store": set(),
    "annotation in Phoenix": {"trace"},  # Phoenix knows a span by its id, and shows its trace
    "assessment in MLflow": set(),
    "score in Langfuse": set(),
    # People look these up by the trace id; the threshold is told where it was not reached.
    "console": {"evaluator", "evaluator version", "criteria hash", "instance", "span", "threshold"},
}


def facts_of(result: EvaluationResult) -> Facts:
    """What everybody has to be told of a verdict; what there is nothing to say of is left out."""
    told = {
        "trace": RUN.trace_id.hex(),
        "span": (result.tool_span_id or RUN.carrier_span_id or b"").hex(),
        "agent": "planner",
        "agent id": "agent-7",
        "agent version": "2.1",
        "conversation": "talk-3",
        "tenant": "blue",
        "service": "demo",
        "time": time_text(GRADED),
        "finish reason": RUN.finish_reason.value,
        "instance": INSTANCE,
        "evaluation": result.name,
        "evaluator": result.evaluator,
        "evaluator version": result.evaluator_version,
        "outcome": result.outcome.value,
        "score": "" if result.score is None else str(result.score),
        "threshold": str(result.pass_threshold),
        "explanation": result.explanation,
        "severity": result.severity.value,
        "criteria hash": result.criteria_hash,
        "stage": result.stage.value,
        "muted": "yes" if result.muted_until_unix_nano else "",
        "reason": result.reason or "",
        "error type": result.error_type or "",
        "call": result.tool_call_id or "",
    }
    return {name: text for name, text in told.items() if text}


_ATTRIBUTES = {
    "agent": "gen_ai.agent.name",
    "agent id": "gen_ai.agent.id",
    "agent version": "gen_ai.agent.version",
    "conversation": "gen_ai.conversation.id",
    "tenant": "tracegrade.tenant",
    "finish reason": "tracegrade.finish_reason",
    "instance": "tracegrade.instance",
    "evaluation": "gen_ai.evaluation.name",
    "evaluator": "tracegrade.evaluator.id",
    "evaluator version": "tracegrade.evaluator.version",
    "outcome": "gen_ai.evaluation.score.label",
    "score": "gen_ai.evaluation.score.value",
    "threshold": "tracegrade.pass_threshold",
    "explanation": "gen_ai.evaluation.explanation",
    "severity": "tracegrade.severity",
    "criteria hash": "tracegrade.criteria.hash",
    "reason": "tracegrade.not_evaluated.reason",
    "error type": "error.type",
    "call": "tracegrade.tool.call.id",
}


def _of_attributes(attributes: Mapping[str, object], envelope: Envelope, time: int, trace: bytes) -> Facts:
    told = {fact: str(attributes[key]) for fact, key in _ATTRIBUTES.items() if key in attributes}
    told["stage"] = str(attributes.get("tracegrade.stage", "live"))
    if attributes.get("tracegrade.muted"):
        told["muted"] = "yes"
    return {**told, "service": envelope.service_name, "time": time_text(time), "trace": trace.hex()}


def _graded(result: EvaluationResult) -> list[tuple[AgentRun, list[EvaluationResult]]]:
    return [(RUN, [result])]


def span_event(result: EvaluationResult) -> Facts:
    """The event, the span that it is on, and the agent's span, which arrive together."""
    annotated = append_results(SPANS, _graded(result), time_unix_nano=GRADED, instance=INSTANCE)
    spans = [(Span.FromString(payload), envelope) for _, payload, envelope in annotated]
    of_agent = attributes_of(list(spans[1][0].attributes))
    ((span, envelope, event),) = [(span, of, event) for span, of in spans for event in span.events]
    assert span is spans[1][0] or span.parent_span_id == spans[1][0].span_id
    attributes = of_agent | attributes_of(list(event.attributes))
    told = _of_attributes(attributes, envelope, event.time_unix_nano, span.trace_id)
    return {**told, "span": span.span_id.hex()}


def log_record(result: EvaluationResult) -> Facts:
    ((_, payload, envelope),) = result_records(
        SPANS, _graded(result), time_unix_nano=GRADED, instance=INSTANCE
    )
    record = LogRecord.FromString(payload)
    told = _of_attributes(
        attributes_of(list(record.attributes)), envelope, record.time_unix_nano, record.trace_id
    )
    return {**told, "span": record.span_id.hex()}


def evaluation_span(result: EvaluationResult) -> Facts:
    """The span of the verdict alone: its parent is named, and need not be there."""
    made: list[RawSpan] = evaluation_spans(SPANS, _graded(result), time_unix_nano=GRADED, instance=INSTANCE)
    ((_, payload, envelope),) = made
    span = Span.FromString(payload)
    (event,) = span.events
    attributes = attributes_of(list(span.attributes)) | attributes_of(list(event.attributes))
    told = _of_attributes(attributes, envelope, event.time_unix_nano, span.trace_id)
    of_call = attributes_of(list(event.attributes)).get("tracegrade.tool.span.id")
    return {**told, "span": str(of_call or span.parent_span_id.hex())}


def results_file(result: EvaluationResult) -> Facts:
    run = GradedRun(run=RUN, results=[result], graded_unix_nano=GRADED, instance=INSTANCE)
    return _of_line(json.loads(format_run(run)))


def store(result: EvaluationResult) -> Facts:
    """The line that the store gives back."""
    run = GradedRun(run=RUN, results=[result], graded_unix_nano=GRADED, instance=INSTANCE)
    ((_, line),) = filled([run]).runs_of_trace(RUN.trace_id.hex())
    return _of_line(line)


def _of_line(line: Mapping[str, Any]) -> Facts:
    (found,) = line["evaluations"]
    told: dict[str, Any] = {
        "trace": line["trace_id"],
        "span": found.get("tool_span_id") or line["span_id"],
        "agent": line["agent"]["name"],
        "agent id": line["agent"]["id"],
        "agent version": line["agent"]["version"],
        "conversation": line["session"],
        "tenant": line["tenant"],
        "service": line["resource_attributes"]["service.name"],
        "time": line["graded_time"],
        "finish reason": line["finish_reason"],
        "instance": line["instance"],
        "evaluation": found["name"],
        "evaluator": found["evaluator"],
        "evaluator version": found["evaluator_version"],
        "outcome": found["outcome"],
        "score": found["score"],
        "threshold": found["pass_threshold"],
        "explanation": found["explanation"],
        "severity": found["severity"],
        "criteria hash": found["criteria_hash"],
        "stage": found.get("stage", "live"),
        "muted": "yes" if found.get("muted") else None,
        "reason": found["reason"],
        "error type": found.get("error_type"),
        "call": found.get("tool_call_id"),
    }
    return {name: str(value) for name, value in told.items() if value is not None}


def console(result: EvaluationResult) -> Facts:
    """What `debug`, `replay` and `demo` print, read as a person does."""
    run = GradedRun(run=RUN, results=[result], graded_unix_nano=GRADED, instance=INSTANCE)
    head, about, *_, verdict = [
        line.plain for line in RunPrintout(width=None, show_content=True, unicode=True).lines(run)
    ]
    _, name, version, trace, *_ = head.split()
    known = dict(pair.split("=", 1) for pair in about.split())
    outcome, evaluation, *rest = verdict.split()
    words = set(rest)
    told = {
        "agent": name,
        "agent version": version,
        "trace": trace.removeprefix("trace_id="),
        "finish reason": head.split(", ")[1],
        "service": known["service"],
        "agent id": known["agent_id"],
        "conversation": known["conversation"],
        "tenant": known["tenant"],
        "time": time_text(unix_nano_of(known["graded"])),
        "outcome": outcome,
        "evaluation": evaluation,
        "severity": next((word for word in ("page", "advisory") if f"({word})" in words), "ticket"),
        "stage": "shadow" if "(shadow)" in words else "live",
        "muted": "yes" if "(muted)" in words else "",
        "score": next((str(float(word)) for word in rest if word.replace(".", "").isdigit()), ""),
        "call": verdict.partition("(call ")[2].partition(")")[0],
        "reason": next((reason for reason in NotEvaluatedReason if f"{reason}: " in verdict), ""),
        "error type": "KeyError" if "KeyError: " in verdict else "",
        "explanation": result.explanation if verdict.endswith(result.explanation) else verdict,
    }
    return {fact: text for fact, text in told.items() if text}


def _score(body: Mapping[str, Any], names: Mapping[str, str], metadata: Mapping[str, Any]) -> Facts:
    """A native score: what `names` say of the body, and what stands in its metadata."""
    of_body = {fact: str(body[key]) for fact, key in names.items() if body.get(key) not in (None, "")}
    of_metadata = {fact: str(metadata[key]) for fact, key in _ATTRIBUTES.items() if key in metadata}
    resource = metadata["resource"]
    resource = json.loads(resource) if isinstance(resource, str) else resource
    told = {
        "stage": str(metadata.get("tracegrade.stage", "live")),
        "muted": "yes" if metadata.get("tracegrade.muted") else "",
        "service": resource["service.name"],
        "time": metadata["tracegrade.graded_time"],
        **of_metadata,
        **of_body,
    }
    return {fact: text for fact, text in told.items() if text}


def _sent(kind: str, result: EvaluationResult, **settings: str) -> Any:
    records = result_records(SPANS, _graded(result), time_unix_nano=GRADED, instance=INSTANCE)
    return asyncio.run(exported(kind, join_spans(records), **settings))


def phoenix_annotation(result: EvaluationResult) -> Facts:
    (body,) = _sent("phoenix_annotations", result)["data"]
    names = {"outcome": "label", "score": "score", "explanation": "explanation"}
    told = _score(body["result"], names, body["metadata"])
    return {**told, "evaluation": body["name"], "span": body["span_id"]}


def mlflow_assessment(result: EvaluationResult) -> Facts:
    body = _sent("mlflow_assessments", result)["assessment"]
    value = body["feedback"].get("value")
    names = {"evaluation": "assessment_name", "explanation": "rationale", "span": "span_id"}
    told = _score(body, names, body["metadata"])
    score = {} if value is None else {"score": str(value)}
    outcome = body["metadata"]["tracegrade.outcome"]
    return {**told, **score, "outcome": outcome, "trace": body["trace_id"].removeprefix("tr-")}


def langfuse_score(result: EvaluationResult) -> Facts:
    (event,) = _sent("langfuse_scores", result, public_key="p", secret_key="s")["batch"]
    body = event["body"]
    names = {"evaluation": "name", "explanation": "comment", "span": "observationId", "trace": "traceId"}
    told = _score(body, names, body["metadata"])
    score = {"score": str(body["value"])} if body["dataType"] == "NUMERIC" else {}
    return {**told, **score, "outcome": body["metadata"]["tracegrade.outcome"]}


FORMS: Mapping[str, Callable[[EvaluationResult], Facts]] = {
    "span event": span_event,
    "log record": log_record,
    "evaluation span": evaluation_span,
    "results_file": results_file,
    "store": store,
    "console": console,
    "annotation in Phoenix": phoenix_annotation,
    "assessment in MLflow": mlflow_assessment,
    "score in Langfuse": langfuse_score,
}


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.name)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_verdict_carries_the_same_facts(form: str, result: EvaluationResult) -> None:
    expected = {fact: text for fact, text in facts_of(result).items() if fact not in LEFT_OUT[form]}

    assert expected == FORMS[form](result)


def test_the_results_together_have_every_fact() -> None:
    """Else a form could lack one without anybody seeing it."""
    all_facts = set[str]().union(*map(facts_of, RESULTS))

    assert {*_ATTRIBUTES, "stage", "muted", "service", "time", "trace", "span"} == all_facts
