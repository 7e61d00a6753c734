"""Reads agent runs from JSON objects, in the form that `run_form` describes."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from processors.annotation.run_form import (
    Agent,
    Call,
    Error,
    Evaluation,
    ModelRequest,
    RequestedCall,
    Run,
    Time,
    Usage,
    decode_part,
    line_of_json,
)
from processors.annotation.run_line import incomplete_reason_of, is_complete_by_default
from processors.documents import did_you_mean
from processors.model import (
    ABSENT,
    AgentIdentity,
    AgentRun,
    CallCategory,
    Decision,
    DecodedValue,
    EvaluationResult,
    FinishReason,
    GradedRun,
    JsonValue,
    Message,
    ModelCall,
    RunReference,
    TokenUsage,
    ToolCall,
    ToolError,
    ValueState,
    decode_arguments,
    decode_result,
    inserted,
    sum_of_usage,
)

_PRESENT, _ABSENT = ValueState.PRESENT, ValueState.ABSENT
_KINDS: dict[object, str] = {
    str: "a text",
    bool: "true or false",
    list: "a list",
    Time: 'a time from 1970 on such as "2026-01-31T08:00:00.5Z"',
}


def run_from_json(entry: object, where: str) -> AgentRun:
    """The agent run that a parsed line describes; `where` (`file:line`) names it in messages.

    Every key but the agent's name may be missing, and `evaluations` is ignored. A value whose key is missing
    is `absent`, one whose key is there, null included, is `present`. A call's `arguments` and `result` are
    what telemetry carried, decoded as such (texts as JSON where they are JSON); with `arguments_text` or
    `result_text` beside them, as printed lines have it, they are taken as they are. A missing trace or
    span id is derived from `where`; ids that are null stay unknown.

    Raises:
        ValueError: one line `where: path: what is wrong, what was expected` for every problem.
    """
    if isinstance(entry, dict):
        entry = {key: value for key, value in entry.items() if key != "evaluations"}
    return _run(_checked(entry, where), where)


def graded_run_from_json(entry: JsonValue, where: str) -> GradedRun:
    """A graded run as `run_line` writes it; of version 1, what it has of its results.

    Raises:
        ValueError: as `run_from_json`.
    """
    line = _checked(entry, where)
    return GradedRun(
        run=_run(line, where),
        results=list(map(_result, line.evaluations)),
        graded_unix_nano=line.graded_time or 0,
        instance=line.instance,
    )


def _run(line: Run, where: str) -> AgentRun:
    reason = line.finish_reason or FinishReason.ROOT
    span_id = _id(line.span_id, 8, where, "", "span")
    has_other = line.input is not UNSET or line.output is not UNSET or bool(line.tool_calls)
    # A line with other content has no messages; a line of nothing is an empty trajectory.
    is_left_out = line.messages is UNSET and has_other
    messages_state = line.messages_state or (_ABSENT if is_left_out else _PRESENT)
    is_complete = is_complete_by_default(reason) if line.complete is UNSET else line.complete
    incomplete_reason = line.incomplete_reason or incomplete_reason_of(reason)
    if is_complete and messages_state in (ValueState.REDACTED, ValueState.TRUNCATED):
        # The writer of the line left out content: only verdicts that none of it could change may count.
        is_complete, incomplete_reason = False, "content_not_captured"
    model_calls = tuple(map(_model_call, line.model_calls or ()))
    models = line.models
    if models is None:
        models = list(dict.fromkeys(call.model for call in model_calls if call.model))
    start, end = _times(line)
    requested = line.requested_calls or ()
    turns = inserted(
        [call.turn for call in line.tool_calls or ()], [(_after(call), call.turn) for call in requested]
    )
    return AgentRun(
        trace_id=_id(line.trace_id or UNSET, 16, where, "", "trace") or b"",
        span_id=span_id,
        carrier_span_id=span_id
        if line.carrier_span_id is UNSET
        else _id(line.carrier_span_id, 8, where, "", "carrier_span"),
        agent=AgentIdentity(**structs.asdict(line.agent)),
        parent_agent=line.parent_agent,
        stands_for_trace=line.stands_for == "trace",
        session=line.session,
        input=None if line.input is UNSET else line.input,
        input_state=line.input_state or (_ABSENT if line.input is UNSET else _PRESENT),
        output=None if line.output is UNSET else line.output,
        output_state=line.output_state or (_ABSENT if line.output is UNSET else _PRESENT),
        error=_error(line.error),
        messages=[
            Message(
                role=message.role,
                content=message.content or "",
                turn=message.turn or 0,
                after=message.after,
            )
            for message in line.messages or ()
        ],
        messages_state=messages_state,
        tool_calls=[
            _call(call, where, f"tool_calls[{place}]") for place, call in enumerate(line.tool_calls or ())
        ],
        finish_reason=reason,
        complete=is_complete,
        incomplete_reason=incomplete_reason,
        start_unix_nano=start,
        end_unix_nano=end,
        tenant=line.tenant or "",
        available_tools=line.available_tools,
        requested_calls=tuple(
            (_after(call), structs.replace(_call(call, where, f"requested_calls[{place}]"), executed=False))
            for place, call in enumerate(requested)
        ),
        call_turns=() if all(turn is None for turn in turns) else turns,
        model_calls=model_calls,
        models=tuple(models),
        usage=_usage(line.usage) or _sum_of_usage(model_calls),
        time_to_first_output_seconds=line.time_to_first_output_seconds,
        cost=line.cost,
        resource=line.resource_attributes or {},
        span_attributes=line.span_attributes or {},
    )


def _after(call: RequestedCall) -> int:
    return sys.maxsize if call.after is None else call.after


def _result(written: Evaluation) -> EvaluationResult:
    fields = structs.asdict(written)
    was_muted, muted_until = fields.pop("muted"), fields.pop("muted_until")
    span_id, runs = fields.pop("tool_span_id"), fields.pop("conversation_runs")
    return EvaluationResult(
        **fields,
        # Version 1 states that there was a mute, and not until when.
        muted_until_unix_nano=muted_until or int(was_muted),
        tool_span_id=None if span_id is None else bytes.fromhex(span_id),
        conversation_runs=tuple(map(RunReference.parsed, runs or ())),
    )


def _call(call: Call, where: str, path: str) -> ToolCall:
    arguments = _value(call.arguments, call.arguments_text, call.arguments_state, decode_arguments)
    result = _value(call.result, call.result_text, call.result_state, decode_result)
    start, end = _times(call)
    is_let_through = call.decision is None or call.decision is Decision.APPROVED
    return ToolCall(
        name=call.name,
        arguments=arguments.value,
        arguments_text=arguments.text,
        arguments_state=arguments.state,
        result=result.value,
        result_text=result.text,
        result_state=result.state,
        error=_error(call.error),
        call_id=call.call_id,
        span_id=_id(call.span_id, 8, where, path, "span"),
        category=call.category or CallCategory.FUNCTION,
        parallel_group=call.parallel_group,
        executed=is_let_through if call.executed is UNSET else call.executed,
        decision=call.decision,
        decision_source=call.decision_source or "",
        lenient_values=call.lenient_values,
        start_unix_nano=start,
        end_unix_nano=end,
        attempt=1 if call.attempt is None else call.attempt,
        retry_of=call.retry_of,
        agent=call.agent or "",
    )


def _value(
    value: Any,
    text: str | UnsetType | None,
    state: ValueState | None,
    decode: Callable[[JsonValue], DecodedValue],
) -> DecodedValue:
    if value is UNSET:
        result = decode(text)._replace(text=text) if isinstance(text, str) else ABSENT
    elif text is not UNSET:
        result = DecodedValue(value, text, _PRESENT)
    elif state is _ABSENT:
        return ABSENT
    else:
        result = decode(value)
        if isinstance(value, str):  # a text stays as it was carried, JSON of a text as well
            result = result._replace(text=value)
    return result._replace(state=state or result.state)


def _error(error: Error | str | None) -> ToolError | None:
    """Why the call or the run failed."""
    if error is None:
        return None
    if isinstance(error, str):
        return ToolError(type="", message=error)
    return ToolError(type=error.type or "", message=error.message or "")


def _model_call(call: ModelRequest) -> ModelCall:
    fields = structs.asdict(call)
    start = fields.pop("start_time") or 0
    return ModelCall(**{**fields, "usage": _usage(call.usage), "start_unix_nano": start})


def _usage(usage: Usage | None) -> TokenUsage | None:
    return None if usage is None else TokenUsage(**structs.asdict(usage))


def _sum_of_usage(calls: Sequence[ModelCall]) -> TokenUsage | None:
    """That of the calls, if all that did not fail have theirs."""
    parts = [call.usage for call in calls if call.usage is not None]
    is_whole = all(call.usage is not None or call.failed for call in calls)
    return sum_of_usage(parts) if parts and is_whole else None


def _times(entry: Run | Call) -> tuple[int, int]:
    """When something began and ended, 0 where that is not known.

    Where only `duration_seconds` is known they are that far apart.
    """
    start, end, seconds = entry.start_time or 0, entry.end_time or 0, entry.duration_seconds
    if seconds is None or end:
        return start, end
    return start or 1, (start or 1) + round(seconds * 1e9)


def _id(text: str | UnsetType | None, size: int, where: str, path: str, kind: str) -> bytes | None:
    if text is UNSET:
        return hashlib.sha256(f"{where}\0{path}\0{kind}".encode()).digest()[:size]
    return None if text is None else bytes.fromhex(text)


def _checked(entry: object, where: str) -> Run:
    """The line, if nothing is wrong with it; else every problem in it, which takes longer to find."""
    if not isinstance(entry, dict):
        raise ValueError(f"{where}: expected an object that describes one agent run")
    try:
        return line_of_json(entry)
    except (msgspec.ValidationError, OverflowError):
        lines = [": ".join(filter(None, (where, *problem))) for problem in _problems(entry, Run, "")]
        raise ValueError("\n".join(" ".join(line.splitlines()) for line in lines)) from None


def _problems(value: Any, kind: Any, path: str) -> Iterator[tuple[str, str]]:
    """What is wrong with `value`, which should be of type `kind`: places and messages."""
    members = list(_members(kind))
    part = next(
        (member for member in members if isinstance(member, type) and issubclass(member, Struct)), None
    )
    items = next((get_args(member)[0] for member in members if get_origin(member) is list), None)
    if isinstance(value, list) and items is not None:
        for place, item in enumerate(value):
            yield from _problems(item, items, f"{path}[{place}]")
    elif isinstance(value, dict) and part is not None:
        fields = {field.name: field for field in structs.fields(part)}
        prefix = f"{path}." if path else ""
        for key in [key for key in value if key not in fields]:
            yield prefix + key, f"unknown key{did_you_mean(key, list(fields))}"
        for name, field in fields.items():
            if name in value:
                yield from _problems(value[name], field.type, prefix + name)
            elif field.required and Agent in _members(field.type):
                yield from _problems({}, Agent, prefix + name)
            elif field.required:
                yield prefix + name, f"missing, expected {_expected(field.type)}"
    else:
        try:
            msgspec.convert(value, kind, dec_hook=decode_part)
        except (msgspec.ValidationError, OverflowError):
            text = json.dumps(value, ensure_ascii=False, default=str)
            shown = text if len(text) <= 60 else text[:59] + "…"
            yield path, f"expected {_expected(kind)}, found {shown}"


def _members(kind: Any) -> Iterator[Any]:
    """The types of which one has to fit."""
    origin = get_origin(kind)
    if origin is Annotated:
        yield from _members(get_args(kind)[0])
    elif origin in (Union, UnionType):
        for member in get_args(kind):
            yield from _members(member)
    else:
        yield kind


def _expected(kind: Any) -> str:
    """What a value of type `kind` is, in words."""
    if get_origin(kind) is Annotated:
        for meta in kind.__metadata__:
            if meta.extra:
                expected: str = meta.extra["expected"]
                return expected
        return _expected(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        members = [member for member in get_args(kind) if member not in (type(None), UnsetType)]
        return " or ".join(map(_expected, members))
    if get_origin(kind) is Literal:
        *others, last = map(str, get_args(kind))
        return f"{', '.join(others)} or {last}"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "one of " + ", ".join(kind)
    return _KINDS.get(get_origin(kind) or kind, "an object")
