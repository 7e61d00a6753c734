"""Gemini CLI: operations of its own under the GenAI conventions' attribute names.

The messages of a tool span hold the scheduler's request and its completed call.
"""

from collections import deque
from collections.abc import Sequence

from processors.model import ABSENT, DecodedValue, JsonObject, ToolError, decode_arguments, decode_result
from processors.shapes.attribute_reading import OPERATION, first_text, operation_name
from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.dialect import Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import agent_fields, roles
from processors.shapes.members import object_at, objects_at, text_at, value_at
from processors.shapes.messages import read_messages
from processors.spans import Attributes, LogRecord, Span

_INPUTS = ("gen_ai.input.messages", "input-json")
_OUTPUTS = ("gen_ai.output.messages", "output-json")
_CALL_RECORD, _REQUEST_RECORD = "gemini_cli.tool_call", "gemini_cli.api_request"
_ROLES = roles(tool="tool_call", agent="agent_call", model="llm_call", workflow="user_prompt")


def _role(span: Span) -> SpanRole | None:
    return _ROLES.get(operation_name(span.attributes))


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    request = _object(attributes, _INPUTS)
    result, error = _completed(attributes)
    return ToolReading(
        name=first_text(attributes, ("gen_ai.tool.name",)) or text_at(request, "name"),
        call_id=first_text(attributes, ("gen_ai.tool.call.id", "gen_ai.tool.call_id"))
        or text_at(request, "callId"),
        arguments=decode_arguments(request["args"]) if "args" in request else ABSENT,
        result=result,
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
    """Arguments go to a call below the span that the record names, a request to the turn that it names.

    Records of calls have no call id: those below one span match by tool and order.
    """
    due: dict[bytes, dict[str, deque[Span]]] = {}
    for record in records:
        attributes = record.attributes
        span = content.span(record.message.span_id)
        if span is None:
            continue
        if record.name == _CALL_RECORD:
            if span.span_id not in due:
                due[span.span_id] = _calls_below(content, span)
            tool = attributes.text("function_name") or ""
            if calls := due[span.span_id].get(tool):
                arguments = decode_arguments(attributes.text("function_args")).value
                content.offer(calls.popleft(), _INPUTS[0], {"name": tool, "args": arguments})
        elif record.name == _REQUEST_RECORD:
            content.offer(span, _INPUTS[0], attributes.text("request_text"))


def _calls_below(content: ContentSpans, span: Span) -> dict[str, deque[Span]]:
    """The calls right below a span, by tool, in order of start."""
    calls: dict[str, deque[Span]] = {}
    for child in content.children(span):
        if content.has_role(child, SpanRole.TOOL):
            calls.setdefault(child.attributes.text("gen_ai.tool.name") or "", deque()).append(child)
    return calls


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
    frozenset({"gemini_cli.user_prompt", _CALL_RECORD, _REQUEST_RECORD, "gemini_cli.api_response"}),
)
