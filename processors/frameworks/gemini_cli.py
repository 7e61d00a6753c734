"""Gemini CLI: operations of its own under the GenAI conventions' attribute names.

The messages of a tool span hold the scheduler's request and its completed call. Qwen Code, which was made
from it, writes its spans in the GenAI conventions, and the same log records under names of its own.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from processors.model import (
    ABSENT,
    DecodedValue,
    JsonObject,
    JsonValue,
    ToolError,
    decode_arguments,
    decode_result,
    json_text,
)
from processors.shapes.attribute_reading import (
    OPERATION,
    better,
    first_arguments,
    first_result,
    first_text,
    operation_name,
)
from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.dialect import Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import agent_fields, roles
from processors.shapes.members import object_at, objects_at, text_at, value_at
from processors.shapes.messages import read_messages
from processors.shapes.reported_runs import (
    INPUT_MESSAGES,
    OUTPUT_MESSAGES,
    ReportedCall,
    ReportedRun,
    call_in,
    has_failed,
    turn_in,
)
from processors.spans import Attributes, LogRecord, Span

_INPUTS = ("gen_ai.input.messages", "input-json")
_OUTPUTS = ("gen_ai.output.messages", "output-json")
_ARGUMENTS, _RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
_PROMPT_RECORD, _CALL_RECORD, _REQUEST_RECORD, _REPLY_RECORD = (
    "user_prompt", "tool_call", "api_request", "api_response",
)  # fmt: skip
"""Names of records behind that of the program."""
_ROLES = roles(tool="tool_call", agent="agent_call", model="llm_call", workflow="user_prompt")


_IN_RUN = "tracegrade.run_of_records"
"""An attribute of a call that a run has which its log records report."""
_WHOLE = (SpanRole.WORKFLOW, SpanRole.AGENT)
"""What is around the calls of a run that is one trace."""


def _role(span: Span) -> SpanRole | None:
    if _IN_RUN in span.by_key:
        return SpanRole.OTHER
    return _ROLES.get(operation_name(span.attributes))


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    request = _object(attributes, _INPUTS)
    result, error = _completed(attributes)
    return ToolReading(
        name=first_text(attributes, ("gen_ai.tool.name",)) or text_at(request, "name"),
        call_id=first_text(attributes, ("gen_ai.tool.call.id", "gen_ai.tool.call_id"))
        or text_at(request, "callId"),
        arguments=better(
            decode_arguments(request["args"]) if "args" in request else ABSENT,
            first_arguments(attributes, (_ARGUMENTS,)),
        ),
        result=better(result, first_result(attributes, (_RESULT,)).result),
        error=error,
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if operation_name(attributes) == "tool_call":
        return Conversation()
    return Conversation(
        lambda: read_messages(_first(attributes, _INPUTS), "user"),
        lambda: read_messages(_first(attributes, _OUTPUTS), "assistant"),
    )


def _completed(attributes: Attributes) -> tuple[DecodedValue, ToolError | None]:
    """The result, and the error, of the completed call that the scheduler recorded."""
    call = _object(attributes, _OUTPUTS)
    response = call.get("response")
    if not isinstance(response, dict):
        raw = _first(attributes, _OUTPUTS)
        return (ABSENT if raw is None else decode_result(raw)), None
    result = ABSENT
    for part in objects_at(response, "responseParts"):
        content = value_at(part, "functionResponse", "response")
        if isinstance(content, dict):
            only = next(iter(content), "") if len(content) == 1 else ""
            result = decode_result(content[only] if only in ("output", "error") else content)
            break
    if call.get("status") != "error":
        return result, None
    message = text_at(response, "error") or result.text or ""
    return result, ToolError(type=text_at(response, "errorType"), message=message)


def _object(attributes: Attributes, keys: tuple[str, ...]) -> JsonObject:
    return object_at(decode_arguments(_first(attributes, keys)).value)


def _first(attributes: Attributes, keys: tuple[str, ...]) -> str | None:
    return next((text for key in keys if (text := attributes.text(key)) is not None), None)


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    """What is of a call goes to that with the record's id, requests and replies to the turn that they name.

    Records of Gemini CLI have no call id, and name the span around calls: there they match by tool and order.
    Where nothing is around that, it is a trace of its own: then the call is in the run that records report.
    """
    due: dict[bytes, dict[str, deque[Span]]] = {}
    for record in records:
        span, event = content.span(record.message.span_id), _event(record)
        if event == _CALL_RECORD:
            call = content.call(record.attributes.text("call_id") or "")
            if call is None and span is not None:
                if span.span_id not in due:
                    due[span.span_id] = _calls_below(content, span)
                calls = due[span.span_id].get(record.attributes.text("function_name") or "")
                call = calls.popleft() if calls else None
            if call is not None:
                if record.name in RECORDS.of_pieces and not any(
                    content.ancestor(call, role) for role in _WHOLE
                ):
                    content.offer(call, _IN_RUN, "true")
                content.offer(call, _ARGUMENTS, record.attributes.text("function_args"))
                content.offer_decision(call, record)
                if has_failed(record):  # this is what the model is given as the result
                    content.offer(call, _RESULT, record.attributes.text("error"))
        elif span is not None and event == _REQUEST_RECORD:
            content.offer_messages(span, INPUT_MESSAGES, _history(record))
        elif span is not None and event == _REPLY_RECORD:
            content.offer_messages(span, OUTPUT_MESSAGES, _reply(record))


def _event(record: LogRecord) -> str:
    return record.name.partition(".")[2]


def _calls_below(content: ContentSpans, span: Span) -> dict[str, deque[Span]]:
    """The calls right below a span, by tool, in order of start."""
    calls: dict[str, deque[Span]] = {}
    for child in content.children(span):
        if content.has_role(child, SpanRole.TOOL):
            calls.setdefault(child.attributes.text("gen_ai.tool.name") or "", deque()).append(child)
    return calls


def _history(record: LogRecord) -> list[JsonObject]:
    """The messages of a request."""
    return objects_at(decode_result(record.attributes.get("request_text")).value)


def _reply(record: LogRecord) -> list[JsonObject]:
    """The message of a reply: its text, or the provider's response, in pieces where it was streamed."""
    text = record.attributes.text("response_text")
    if not text:
        return []
    pieces = objects_at(decode_result(text).value) if text.startswith("[") else []
    parts = [
        _with_id_of_history(part)
        for piece in pieces
        for candidate in objects_at(piece, "candidates")[:1]
        for part in objects_at(candidate, "content", "parts")
    ]
    return [{"role": "model", "parts": [*parts]} if parts else {"role": "assistant", "content": text}]


def _ends_the_run(record: LogRecord, answered: Sequence[JsonValue]) -> bool:
    """Whether this is the agent's own reply and requests nothing, which only the provider's form shows."""
    parts = [part for message in answered for part in objects_at(message, "parts")]
    is_main = record.attributes.get("role") == "main"
    return is_main and bool(parts) and not any("functionCall" in part for part in parts)


def _with_id_of_history(part: JsonObject) -> JsonObject:
    """A part of a reply, in which the id of a call has the tool's name before it; requests leave it out."""
    requested = object_at(part, "functionCall")
    if not requested:
        return part
    call_id = text_at(requested, "id").removeprefix(f"{text_at(requested, 'name')}__")
    return {**part, "functionCall": {**requested, "id": call_id}}


def _reported_run(records: Sequence[LogRecord]) -> ReportedRun | None:
    """A record for each call, each request to the model and each reply; none where one trace has them all."""
    run = ReportedRun(session=records[0].attributes.text("session.id") or "")
    history: Sequence[JsonObject] = ()
    events = {_event(record) for record in records}
    for record in records:
        event = _event(record)
        if event == _PROMPT_RECORD:
            run.prompt = record.attributes.text("prompt")
        elif event == _REQUEST_RECORD:
            history = _history(record)
        elif event == _CALL_RECORD:
            run.calls.append(
                call_in(record, name="function_name", call_id="call_id", arguments="function_args")
            )
        elif event == _REPLY_RECORD:
            answered: list[JsonValue] = [*_reply(record)]
            run.answer = next(
                (message.text for message in read_messages(answered) if message.text), run.answer
            )
            run.turns.append(turn_in(record, [*history], answered))
            run.is_over = record is records[-1] and _ends_the_run(record, answered)
    _identify(run.calls, history)
    traces = {record.message.trace_id for record in records if record.message.trace_id}
    if run.calls and len(traces) == 1:
        return None
    return run if {_PROMPT_RECORD, _REQUEST_RECORD} <= events and run.turns else None


def _identify(calls: list[ReportedCall], history: Sequence[JsonObject]) -> None:
    """Give calls whose records have no id that of the call in the last history that is the same.

    Which one a call is remains unknown where one turn has several of one tool with equal arguments.
    """
    ids: dict[tuple[str, str], dict[int, list[str]]] = {}
    for turn, message in enumerate(history):
        for part in objects_at(message, "parts"):
            requested = object_at(part, "functionCall")
            key = text_at(requested, "name"), json_text(requested.get("args") or {})
            ids.setdefault(key, {}).setdefault(turn, []).append(text_at(requested, "id"))
    for place, call in enumerate(calls):
        turns = ids.get((call.name, json_text(decode_arguments(call.arguments).value)), {})
        if not call.call_id and turns:
            first = next(iter(turns))
            call_ids = turns[first]
            if len(call_ids) == 1:
                calls[place] = replace(call, call_id=call_ids[0])
                del turns[first]


DIALECT = Dialect(
    "gemini_cli",
    (OPERATION,),
    _role,
    _tool,
    agent_fields(name=("gen_ai.agent.name",), session=("gen_ai.conversation.id",)),
    _conversation,
    rank=5,
)

RECORDS = ContentRecords(
    _join_records,
    frozenset(
        f"{program}.{event}"
        for program in ("gemini_cli", "qwen-code")
        for event in (_PROMPT_RECORD, _CALL_RECORD, _REQUEST_RECORD, _REPLY_RECORD)
    ),
    prompt_key="prompt_id",
    run=_reported_run,
    of_pieces=frozenset(
        f"gemini_cli.{event}" for event in (_PROMPT_RECORD, _CALL_RECORD, _REQUEST_RECORD, _REPLY_RECORD)
    ),
)
