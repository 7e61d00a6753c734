"""Google ADK: the `gcp.vertex.agent.*` attributes in addition to, or before, the GenAI conventions."""

import re
from collections.abc import Mapping, Sequence

from processors.model import (
    ABSENT,
    CallCategory,
    JsonObject,
    ToolError,
    decode_arguments,
    decode_result,
    json_text,
)
from processors.shapes.attribute_reading import first_arguments, first_result, first_text
from processors.shapes.available_tools import read_tool_definitions
from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.known_names import AGENT_TOOL_TYPES, SYNTHETIC_TOOL_NAMES
from processors.shapes.members import failure, object_at, objects_at, text_at, value_at
from processors.shapes.messages import ChatMessage, read_messages
from processors.shapes.record_messages import MESSAGE_RECORDS, RecordedTurn, recorded_turns
from processors.shapes.result_envelope import RESPONSE, OpenedResult
from processors.spans import AttributeValue, LogRecord, Span

_ARGUMENTS = "gcp.vertex.agent.tool_call_args"
_RESULT = "gcp.vertex.agent.tool_response"
_REQUEST = "gcp.vertex.agent.llm_request"
_RESPONSE = "gcp.vertex.agent.llm_response"
_EVENT_ID = "gcp.vertex.agent.event_id"
_TOOL_NAME = "gen_ai.tool.name"
_RESULTS = ("gen_ai.tool.call.result", _RESULT, "output.value")
_ARGUMENT_KEYS = frozenset({"gen_ai.tool.call.arguments", _ARGUMENTS, "input.value", "tool.parameters"})
_NOT_SPECIFIED = "<not specified>"
_CALL_IDS = ("gen_ai.tool.call.id", "gen_ai.tool_call.id")
_RETURNED_ERROR = "TOOL_ERROR"
_AGENT_SPAN = "agent_run ["
_TOOL_SPAN = "execute_tool "


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if _TOOL_NAME in attributes:
        return SpanRole.TOOL
    if not attributes:  # before version 1.17: a run, and a call whose tool raised
        if span.name.startswith(_TOOL_SPAN):
            return SpanRole.TOOL
        return SpanRole.AGENT if span.name.startswith(_AGENT_SPAN) else None
    return SpanRole.MODEL if _REQUEST in attributes or _RESPONSE in attributes else None


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    name = first_text(attributes, (_TOOL_NAME,))
    arguments, opened = ABSENT, OpenedResult(ABSENT)
    # Empty objects replace values that were not captured.
    if not attributes.get(_ARGUMENTS) == "{}" == attributes.get(_RESULT):
        arguments = first_arguments(attributes, (_ARGUMENTS,))
        # A placeholder replaces the response of a call that had none.
        result = attributes.get(_RESULT)
        is_bare = result == "{}" and first_text(attributes, _CALL_IDS) == _NOT_SPECIFIED
        if result != _NOT_SPECIFIED and not is_bare:
            opened = _opened(first_result(attributes, _RESULTS, RESPONSE))
        if _makes_object_of_list(span, object_at(opened.result.value)):
            opened = opened._replace(result=decode_result(value_at(opened.result.value, "results")))
    if arguments is ABSENT and _takes_none(span):
        arguments = decode_arguments("{}")
    is_agent = attributes.text("gen_ai.tool.type") in AGENT_TOOL_TYPES
    # A call that returned is described; in JavaScript one that raised has not even a status.
    is_described = bool(attributes) or span.dropped_attributes_count > 0
    error = opened.error or (None if is_described else failure())
    message = value_at(opened.result.value, "error")
    if attributes.get("error.type") == _RETURNED_ERROR and isinstance(message, str):
        error = ToolError(type=_RETURNED_ERROR, message=message)  # the tool returned it instead of raising
    return ToolReading(
        name=name,
        inferred_name="" if name else span.name.removeprefix(_TOOL_SPAN),
        call_id=opened.call_id or first_text(attributes, _CALL_IDS),
        arguments=arguments,
        result=opened.result,
        error=error,
        category=CallCategory.AGENT if is_agent else CallCategory.FUNCTION,
        is_synthetic=name in SYNTHETIC_TOOL_NAMES,
    )


def _agent(span: Span) -> AgentReading:
    is_run = not span.attributes and span.name.startswith(_AGENT_SPAN)
    return AgentReading(inferred_name=span.name[len(_AGENT_SPAN) :].removesuffix("]") if is_run else "")


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if _TOOL_NAME in attributes:
        return Conversation()
    return Conversation(
        lambda: _contents(attributes.get(_REQUEST), "contents"),
        lambda: _contents(attributes.get(_RESPONSE), "content"),
        lambda: read_tool_definitions(
            value_at(decode_result(attributes.get(_REQUEST)).value, "config", "tools")
        ),
    )


def _makes_object_of_list(span: Span, result: JsonObject) -> bool:
    """Whether the JavaScript SDK, which writes no blanks, put a list that a tool returned in `results`."""
    is_list = result.keys() == {"results"} and isinstance(result["results"], list)
    if not is_list or not (span.attributes.text(_RESULT) or "").startswith('{"results":['):
        return False
    language = span.envelope.resource_attributes.text("telemetry.sdk.language")
    return language in (None, "nodejs", "webjs")


def _takes_none(span: Span) -> bool:
    """Whether OpenInference's instrumentor, which leaves out arguments only where there are none, did so."""
    attributes = span.attributes
    return (
        attributes.get("openinference.span.kind") == "TOOL"
        and "output.value" in attributes
        and _EVENT_ID in attributes
        and not attributes.among(_ARGUMENT_KEYS)
        and not span.dropped_attributes_count
    )


def _opened(opened: OpenedResult) -> OpenedResult:
    """What a tool returned, out of the event that reports it and the envelope of what is no object."""
    value = opened.result.value
    if value == {"result": _NOT_SPECIFIED}:
        return OpenedResult(ABSENT)
    response = value_at(value, "content", "parts", 0, "function_response")
    if isinstance(response, dict):
        value, call_id = response.get("response"), response.get("id")
        opened = OpenedResult(decode_result(value), call_id if isinstance(call_id, str) else opened.call_id)
    if isinstance(value, dict) and value.keys() == {"result"} and not isinstance(value["result"], dict):
        return OpenedResult(decode_result(value["result"]), opened.call_id)
    return opened


def _contents(raw: AttributeValue, key: str) -> list[ChatMessage]:
    """The messages under `key` in a recorded request or response; in Go that of a request has a capital."""
    recorded = object_at(decode_result(raw).value)
    return read_messages(
        recorded.get(key, recorded.get(key.title())), "user" if key == "contents" else "assistant"
    )


DIALECT = Dialect(
    "google_adk",
    (_EVENT_ID, _ARGUMENTS, _RESULT, _REQUEST, _RESPONSE),
    _role,
    _tool,
    _agent,
    _conversation,
    rank=8,
    scopes=("gcp.vertex.agent",),
)


_SCOPE = "gcp.vertex.agent"
_INVENTED_ID = re.compile(r"(.+)_[0-9]+")
"""An id in a log record where the model gave none: the tool's name and a number, from 0 in each list."""


def _join_records(records: Sequence[LogRecord], content: ContentSpans) -> None:
    """Messages with the ids that the spans of the calls have, in place of those that were invented."""
    turns = {turn.span.span_id: turn for turn in recorded_turns(records, content)}
    for turn in turns.values():
        for message in (*turn.given, *turn.answered):
            message.update(object_at(message, "content") if "parts" not in message else {})
    runs: dict[bytes, list[Span]] = {}
    for span in content.with_role(SpanRole.MODEL, SpanRole.TOOL):
        run = content.ancestor(span, SpanRole.AGENT)
        runs.setdefault(b"" if run is None else run.span_id, []).append(span)
    for spans in runs.values():
        _rename_calls(spans, turns, content)
    for turn in turns.values():
        turn.offer(content)


def _rename_calls(spans: Sequence[Span], turns: Mapping[bytes, RecordedTurn], content: ContentSpans) -> None:
    """Match the calls in the messages of a run by tool and order with those in `spans`, in order of start.

    A turn's calls start before the next turn. Its history ends with the latest calls. Whose result is whose
    is unknown for calls of one tool in one turn with equal arguments.
    """
    calls_after: dict[bytes, dict[str, list[str]]] = {}
    calls: dict[str, list[str]] = {}
    for span in spans:
        reading = content.reading(span)
        if content.has_role(span, SpanRole.MODEL):
            calls = calls_after[span.span_id] = {}
        elif reading is not None and not reading.tool.is_synthetic:
            calls.setdefault(reading.tool.name, []).append(reading.tool.call_id)
    known: dict[str, list[str]] = {}
    for span_id, calls in calls_after.items():
        turn = turns.get(span_id)
        requested = {} if turn is None else _invented(turn.answered, "tool_call")
        if turn is not None:
            for kind in ("tool_call", "tool_call_response"):
                for tool, parts in _invented(turn.given, kind).items():
                    _rename(tool, parts[::-1], known.get(tool, [])[::-1])
        for tool, call_ids in calls.items():
            arguments = [json_text(part.get("arguments")) for part in requested.get(tool, ())]
            is_known = len(arguments) == len(call_ids) == len(set(arguments))
            known.setdefault(tool, []).extend(call_ids if is_known else [""] * len(call_ids))
        for tool, parts in requested.items():
            call_ids = calls.get(tool, [])
            _rename(tool, parts, call_ids if len(call_ids) == len(parts) else [])


def _invented(messages: Sequence[JsonObject], kind: str) -> dict[str, list[JsonObject]]:
    """The parts of this kind with an invented id, by the tool that it names."""
    by_tool: dict[str, list[JsonObject]] = {}
    for message in messages:
        for part in objects_at(message, "parts"):
            invented = _INVENTED_ID.fullmatch(text_at(part, "id"))
            if part.get("type") == kind and invented and part.get("name", invented[1]) == invented[1]:
                by_tool.setdefault(invented[1], []).append(part)
    return by_tool


def _rename(tool: str, parts: Sequence[JsonObject], call_ids: Sequence[str]) -> None:
    for part in parts:
        del part["id"]
        part["name"] = tool
    for part, call_id in zip(parts, call_ids, strict=False):
        if call_id:
            part["id"] = call_id


RECORDS = ContentRecords(_join_records, MESSAGE_RECORDS, scope=_SCOPE)
