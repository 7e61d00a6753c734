"""Agent runs as JSON objects, one a line: what `replay` and `results_file` write, and `run_reader` reads.

The form is a stable contract (`run_form`), and `schema` numbers it. A line holds all that
grading looks at, so that it gives the same verdicts as the spans.

Keys without information are left out: unknown times and amounts, states that are `present`, and what has
its default.
"""

from collections.abc import Iterable
from itertools import repeat

from msgspec import structs

from processors.annotation.run_form import SCHEMA_VERSION
from processors.model import (
    CUT_SHORT,
    AgentRun,
    EvaluationResult,
    FinishReason,
    GradedRun,
    IncompleteReason,
    JsonObject,
    Message,
    ModelCall,
    Scope,
    Stage,
    TokenUsage,
    ToolCall,
    ValueState,
    encode_json,
    inserted,
    time_text,
)


def format_run(graded: GradedRun) -> bytes:
    """A graded run as one line of JSON, without its end. Total: text that no JSON can hold is escaped."""
    return graded.line or encode_json(run_to_json(graded))


def run_to_json(graded: GradedRun) -> JsonObject:
    """A graded run as a JSON object, keys in the order of the contract."""
    run = graded.run
    executed, requested = _turns(run)
    entry: JsonObject = {
        "schema": SCHEMA_VERSION,
        "trace_id": run.trace_id.hex(),
        "span_id": _hex(run.span_id),
        "agent": structs.asdict(run.agent),
        "parent_agent": run.parent_agent,
        "session": run.session,
        **_times(start_time=run.start_unix_nano, end_time=run.end_unix_nano),
        **_times(graded_time=graded.graded_unix_nano),
        **({"instance": graded.instance} if graded.instance else {}),
        "input": run.input,
        "output": run.output,
        "finish_reason": run.finish_reason.value,
        "messages": [_message_to_json(message) for message in run.messages],
        "tool_calls": list(map(_call_to_json, run.tool_calls, executed)),
        "evaluations": [_result_to_json(result) for result in graded.results],
    }
    if run.input_state is not ValueState.PRESENT:
        entry["input_state"] = run.input_state.value
    if run.output_state is not ValueState.PRESENT:
        entry["output_state"] = run.output_state.value
    if run.error is not None:
        entry["error"] = structs.asdict(run.error)
    if not run.answers_are_known():
        entry["messages_state"] = run.messages_state.value
    if run.complete != is_complete_by_default(run.finish_reason):
        entry["complete"] = run.complete
    if not run.complete and run.incomplete_reason != incomplete_reason_of(run.finish_reason):
        entry["incomplete_reason"] = run.incomplete_reason
    if run.stands_for_trace:
        entry["stands_for"] = "trace"
    if run.tenant:
        entry["tenant"] = run.tenant
    if run.available_tools:
        entry["available_tools"] = dict(run.available_tools)
    if run.requested_calls:
        entry["requested_calls"] = [
            {"after": before, **_call_to_json(call, turn)}
            for (before, call), turn in zip(run.requested_calls, requested, strict=False)
        ]
    _add_known(entry, "duration_seconds", run.duration_seconds)
    _add_known(entry, "time_to_first_output_seconds", run.time_to_first_output_seconds)
    if run.model_calls:
        entry["model_calls"] = [_model_call_to_json(call) for call in run.model_calls]
    if run.models:
        entry["models"] = list(run.models)
    if run.usage is not None:
        entry["usage"] = _usage_to_json(run.usage)
    _add_known(entry, "cost", run.cost)
    if run.carrier_span_id != run.span_id:
        entry["carrier_span_id"] = _hex(run.carrier_span_id)
    if run.resource:
        entry["resource_attributes"] = dict(run.resource)
    if run.span_attributes:
        entry["span_attributes"] = dict(run.span_attributes)
    return entry


def is_complete_by_default(reason: FinishReason) -> bool:
    """Whether a run is complete as far as the finish reason of its trace shows."""
    return reason not in CUT_SHORT


def incomplete_reason_of(reason: FinishReason) -> IncompleteReason:
    """Why the runs of a trace that was cut short are not complete."""
    return "over_limit" if reason is FinishReason.OVER_LIMIT else "incomplete_trace"


def _turns(run: AgentRun) -> tuple[Iterable[int | None], Iterable[int | None]]:
    """The model turns of `tool_calls` and of `requested_calls`."""
    if len(run.call_turns) != len(run.calls):
        return repeat(None), repeat(None)
    are_executed = inserted([True] * len(run.tool_calls), [(at, False) for at, _ in run.requested_calls])
    turns = list(zip(are_executed, run.call_turns, strict=True))
    return [turn for ran, turn in turns if ran], [turn for ran, turn in turns if not ran]


def _call_to_json(call: ToolCall, turn: int | None) -> JsonObject:
    entry: JsonObject = {
        "name": call.name,
        "arguments": call.arguments,
        "arguments_text": call.arguments_text,
        "arguments_state": call.arguments_state.value,
        "result": call.result,
        "result_text": call.result_text,
        "result_state": call.result_state.value,
        "error": None if call.error is None else structs.asdict(call.error),
        "call_id": call.call_id,
        "span_id": _hex(call.span_id),
        "category": call.category.value,
        "parallel_group": call.parallel_group,
        **_times(start_time=call.start_unix_nano, end_time=call.end_unix_nano),
    }
    _add_known(entry, "turn", turn)
    _add_known(entry, "duration_seconds", call.duration_seconds)
    if not call.executed:
        entry["executed"] = False
    if call.decision is not None:
        entry["decision"] = call.decision.value
    if call.decision_source:
        entry["decision_source"] = call.decision_source
    if call.lenient_values:
        entry["lenient_values"] = True
    if call.attempt != 1:
        entry["attempt"] = call.attempt
    if call.retry_of is not None:
        entry["retry_of"] = call.retry_of
    if call.agent:
        entry["agent"] = call.agent
    return entry


def _message_to_json(message: Message) -> JsonObject:
    entry = structs.asdict(message)
    if message.after is None:
        del entry["after"]
    return entry


def _model_call_to_json(call: ModelCall) -> JsonObject:
    entry: JsonObject = {"model": call.model}
    if call.usage is not None:
        entry["usage"] = _usage_to_json(call.usage)
    _add_known(entry, "time_to_first_output_seconds", call.time_to_first_output_seconds)
    if call.start_unix_nano:
        entry["start_time"] = time_text(call.start_unix_nano)
    _add_known(entry, "duration_seconds", call.duration_seconds)
    if call.failed:
        entry["failed"] = True
    return entry


def _usage_to_json(usage: TokenUsage) -> JsonObject:
    return {key: count for key, count in structs.asdict(usage).items() if count is not None}


def _add_known(entry: JsonObject, key: str, value: float | None) -> None:
    if value is not None:
        entry[key] = value


def _result_to_json(result: EvaluationResult) -> JsonObject:
    entry: JsonObject = {
        "name": result.name,
        "evaluator": result.evaluator,
        "outcome": result.outcome.value,
        "score": result.score,
        "explanation": result.explanation,
        "details": dict(result.details.items()),
        "reason": None if result.reason is None else result.reason.value,
        "severity": result.severity.value,
        "pass_threshold": result.pass_threshold,
        "evaluator_version": result.evaluator_version,
        "criteria_hash": result.criteria_hash,
    }
    if result.error_type is not None:
        entry["error_type"] = result.error_type
    if result.tool_call_id is not None:
        entry["tool_call_id"] = result.tool_call_id
    if result.tool_span_id is not None:
        entry["tool_span_id"] = _hex(result.tool_span_id)
    if result.conversation_runs:
        entry["conversation_runs"] = [str(run) for run in result.conversation_runs]
    if result.scope is not Scope.RUN:
        entry["scope"] = result.scope.value
    if result.stage is not Stage.LIVE:
        entry["stage"] = result.stage.value
    if result.muted_until_unix_nano:
        entry |= {"muted": True, "muted_until": time_text(result.muted_until_unix_nano)}
    return entry


def _times(**unix_nanos: int) -> JsonObject:
    """Those of the times that are known, as texts."""
    return {key: time_text(unix_nano) for key, unix_nano in unix_nanos.items() if unix_nano}


def _hex(identifier: bytes | None) -> str | None:
    return None if identifier is None else identifier.hex()
