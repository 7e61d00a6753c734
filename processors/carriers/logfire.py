"""Logfire's own spans of the OpenAI Agents SDK: span names are templates, `name` is the agent or tool."""

from typing import Final

from processors.model import ABSENT, CallCategory, ToolError, decode_arguments, decode_result
from processors.shapes.attribute_reading import first_arguments, first_result, first_text
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.messages import read_messages, read_model_response
from processors.shapes.span_event_messages import read_recorded_events
from processors.spans import Attributes, Span

_TEMPLATE = "logfire.msg_template"
_SPAN_TYPE = "logfire.span_type"
_ROLES = {
    "Function: {name}": SpanRole.TOOL,
    "Agent run: {name!r}": SpanRole.AGENT,
    "Chat completion with {gen_ai.request.model!r}": SpanRole.MODEL,
    "Responses API with {gen_ai.request.model!r}": SpanRole.MODEL,
    "Responses API": SpanRole.MODEL,
    "Guardrail {name!r} {triggered=}": SpanRole.JUDGE,
    "evaluator: {evaluator_name}": SpanRole.JUDGE,
}
_PROTOCOL_REQUEST = "MCP request: tools/call "
_PROTOCOL_VIEW = "MCP server handle request: tools/call"
_HANDOFFS = ("Handoff: {from_agent} → {to_agent}", "Handoff: {from_agent!r} → {to_agent!r}")


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if attributes.get(_SPAN_TYPE) == "pending_span":
        return SpanRole.OTHER
    template = attributes.text(_TEMPLATE) or ""
    is_call = template in _HANDOFFS or _is_protocol_call(template)
    return SpanRole.TOOL if is_call else _ROLES.get(template)


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    template = attributes.text(_TEMPLATE) or ""
    if _is_protocol_call(template):
        return _protocol_call(attributes, is_servers_view=template == _PROTOCOL_VIEW)
    if template in _HANDOFFS:
        to_agent = first_text(attributes, ("to_agent",))
        return ToolReading(name=f"handoff to {to_agent}".rstrip(), category=CallCategory.HANDOFF)
    opened = first_result(attributes, ("output",))
    return ToolReading(
        name=first_text(attributes, ("name",)),
        call_id=opened.call_id,
        arguments=first_arguments(attributes, ("input",)),
        result=opened.result,
        error=opened.error or _error(attributes),
        is_synthetic=attributes.get(_SPAN_TYPE) == "pending_span",
    )


def _agent(span: Span) -> AgentReading:
    if _role(span) is not SpanRole.AGENT:
        return AgentReading()
    return AgentReading(name=first_text(span.attributes, ("name",)))


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if _role(span) is not SpanRole.MODEL:
        return Conversation()
    if "events" in attributes:
        return read_recorded_events(attributes.get("events"))
    return Conversation(
        lambda: read_messages(attributes.get("input"), "user"),
        lambda: read_model_response(attributes.get("output")),
    )


def _is_protocol_call(template: str) -> bool:
    return template == _PROTOCOL_VIEW or template.startswith(_PROTOCOL_REQUEST)


def _protocol_call(attributes: Attributes, *, is_servers_view: bool) -> ToolReading:
    """A call over the Model Context Protocol: the request and the response as they were sent."""
    request = decode_arguments(attributes.get("request")).value
    params = request.get("params") if isinstance(request, dict) else None
    opened = first_result(attributes, ("response",))
    name = params.get("name") if isinstance(params, dict) else None
    asked = params.get("arguments") if isinstance(params, dict) else None
    return ToolReading(
        name=name if isinstance(name, str) else "",
        inferred_name=(attributes.text(_TEMPLATE) or "").removeprefix(_PROTOCOL_REQUEST),
        arguments=ABSENT if asked is None else decode_arguments(asked),
        result=opened.result,
        error=opened.error,
        category=CallCategory.MCP,
        is_part=is_servers_view,
    )


def _error(attributes: Attributes) -> ToolError | None:
    """What the SDK says of a failed call: the tool's own message where it is told."""
    if "error" not in attributes:
        return None
    told = decode_result(attributes.get("error")).value
    if not isinstance(told, dict):
        return None
    details = told.get("data")
    message = details.get("error") if isinstance(details, dict) else None
    if not isinstance(message, str):
        message = told.get("message")
    return ToolError(type="", message=message if isinstance(message, str) else "")


DIALECT: Final = Dialect("logfire", (_TEMPLATE, _SPAN_TYPE), _role, _tool, _agent, _conversation, rank=8)
