"""Logfire's own spans of the OpenAI Agents SDK: span names are templates, `name` is the agent or tool."""

from processors.model import ABSENT, CallCategory, ToolError, decode_arguments
from processors.shapes.attribute_reading import first_arguments, first_result, first_text, first_value
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import model_messages, roles
from processors.shapes.members import failure, text_at, value_at
from processors.shapes.span_event_messages import read_recorded_events
from processors.spans import Attributes, Span

_TEMPLATE = "logfire.msg_template"
_SPAN_TYPE = "logfire.span_type"
_OF_MODEL = " with {gen_ai.request.model!r}"
_ROLES = roles(
    tool="Function: {name}",
    agent="Agent run: {name!r}",
    model=("Chat completion" + _OF_MODEL, "Responses API" + _OF_MODEL, "Responses API"),
    judge=("Guardrail {name!r} {triggered=}", "evaluator: {evaluator_name}"),
)
_PROTOCOL_REQUEST = "MCP request: tools/call "
_PROTOCOL_VIEW = "MCP server handle request: tools/call"
_HANDOFFS = ("Handoff: {from_agent} → {to_agent}", "Handoff: {from_agent!r} → {to_agent!r}")


_messages_of_model = model_messages(("input",), ("output",), role=lambda span: _role(span))


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
        # Over the Model Context Protocol: the request and the response as they were sent.
        request = decode_arguments(attributes.get("request")).value
        opened = first_result(attributes, ("response",))
        given = value_at(request, "params", "arguments")
        return ToolReading(
            name=text_at(request, "params", "name"),
            inferred_name=template.removeprefix(_PROTOCOL_REQUEST),
            arguments=ABSENT if given is None else decode_arguments(given),
            result=opened.result,
            error=opened.error,
            category=CallCategory.MCP,
            is_part=template == _PROTOCOL_VIEW,
        )
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
    is_agent = _role(span) is SpanRole.AGENT
    return AgentReading(name=first_text(span.attributes, ("name",)) if is_agent else "")


def _conversation(span: Span) -> Conversation:
    if _role(span) is SpanRole.MODEL and "events" in span.attributes:
        return read_recorded_events(span.attributes.get("events"))
    return _messages_of_model(span)


def _is_protocol_call(template: str) -> bool:
    return template == _PROTOCOL_VIEW or template.startswith(_PROTOCOL_REQUEST)


def _error(attributes: Attributes) -> ToolError | None:
    """What the SDK reports of a failed call: the tool's own message, else the SDK's."""
    reported = first_value(attributes, ("error",))
    if not isinstance(reported, dict):
        return None
    message = value_at(reported, "data", "error")
    return failure(message if isinstance(message, str) else text_at(reported, "message"))


DIALECT = Dialect("logfire", (_TEMPLATE, _SPAN_TYPE), _role, _tool, _agent, _conversation, rank=8)
