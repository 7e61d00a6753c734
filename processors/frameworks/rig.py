"""Rig, for Rust: GenAI conventions, with the outcome of a call, and an agent's prompt and answer as texts."""

from processors.model import ToolError, text_value
from processors.shapes.attribute_reading import first_text, operation_name
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading
from processors.shapes.members import failure
from processors.spans import Attributes, Span

_OUTCOME = "gen_ai.tool.call.outcome"
_PROMPT = "gen_ai.prompt"
_ANSWER = "gen_ai.completion"
_TARGET = "target"
_OTHERS = frozenset({"langsmith.span.kind", "mastra.span.type"})


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    operation = operation_name(attributes)
    is_older = _is_older(attributes)
    if _OUTCOME in attributes or (is_older and operation == "execute_tool"):
        return SpanRole.TOOL
    is_own = is_older or _PROMPT in attributes or _ANSWER in attributes
    is_run = is_own and operation == "invoke_agent" and not attributes.among(_OTHERS)
    return SpanRole.AGENT if is_run else None


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    outcome = first_text(attributes, (_OUTCOME,))
    message = first_text(attributes, ("gen_ai.tool.call.result",))
    if not outcome and _is_older(attributes) and message.startswith("Toolset error: "):
        return ToolReading(error=failure(message))
    if outcome in ("", "success"):
        return ToolReading()
    error_type = first_text(attributes, ("gen_ai.tool.error.type",))
    return ToolReading(error=ToolError(type=error_type or outcome, message=message))


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    return AgentReading(
        input=text_value(attributes.text(_PROMPT)),
        output=text_value(attributes.text(_ANSWER)),
        hides_calls=_is_older(attributes),
    )


def _is_older(attributes: Attributes) -> bool:
    """Whether a version made the span that starts a trace for every call, unless a span is around them."""
    return (attributes.text(_TARGET) or "").startswith("rig::agent::")


DIALECT = Dialect("rig", (_OUTCOME, _PROMPT, _ANSWER, _TARGET), _role, _tool, _agent, rank=20)
