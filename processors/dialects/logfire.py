"""Logfire's own spans of the OpenAI Agents SDK: span names are templates, `name` is the agent or tool."""

from typing import Final

from processors.agent_run import CallCategory, ToolError
from processors.captured.messages import read_messages
from processors.captured.values import decode_result
from processors.conventions.attribute_reading import first_arguments, first_result, first_text
from processors.conventions.model_response import read_model_response
from processors.conventions.recorded_events import read_recorded_events
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.framework import Framework
from processors.spans.attributes import Attributes
from processors.spans.span import Span

_TEMPLATE = "logfire.msg_template"
_SPAN_TYPE = "logfire.span_type"
_ROLES = {
    "Function: {name}": SpanRole.TOOL,
    "Agent run: {name!r}": SpanRole.AGENT,
    "Chat completion with {gen_ai.request.model!r}": SpanRole.MODEL,
    "Responses API with {gen_ai.request.model!r}": SpanRole.MODEL,
    "Responses API": SpanRole.MODEL,
}
_HANDOFFS = ("Handoff: {from_agent} → {to_agent}", "Handoff: {from_agent!r} → {to_agent!r}")


class _Logfire:
    name: Final = "logfire"
    rank: Final = 8
    keys: Final = (_TEMPLATE, _SPAN_TYPE)
    frameworks: Final = (
        Framework(
            name="Logfire, OpenAI Agents SDK",
            versions="5 (built from logfire 5.2)",
            reads="`Function: {name}` spans are calls, `Agent run: {name!r}` spans are runs; records of "
            "spans that have only begun are left out",
            capture="nothing",
            unknown="call ids; an answer that is a tool's result (`stop_on_first_tool`); that a tool of an "
            "MCP server failed",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        if attributes.get(_SPAN_TYPE) == "pending_span":
            return SpanRole.OTHER
        template = attributes.text(_TEMPLATE) or ""
        return SpanRole.TOOL if template in _HANDOFFS else _ROLES.get(template)

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        if attributes.text(_TEMPLATE) in _HANDOFFS:
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

    def agent(self, span: Span) -> AgentReading:
        if self.role(span) is not SpanRole.AGENT:
            return AgentReading()
        return AgentReading(name=first_text(span.attributes, ("name",)))

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if self.role(span) is not SpanRole.MODEL:
            return Conversation()
        if "events" in attributes:
            return read_recorded_events(attributes.get("events"))
        return Conversation(
            lambda: read_messages(attributes.get("input"), "user"),
            lambda: read_model_response(attributes.get("output")),
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


DIALECT = _Logfire()
