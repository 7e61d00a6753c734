"""AgentOps: `agentops.span.kind`, as its instrumentation of agent SDKs and its decorators write it."""

from processors.model import CallCategory
from processors.shapes.attribute_reading import (
    arguments_of_recorded_call,
    first_arguments,
    first_decoded,
    first_result,
    first_text,
    flattened_list,
)
from processors.shapes.chat_envelope import first_output, input_of_recorded_call
from processors.shapes.dialect import AgentReading, Conversation, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import by_kind, roles
from processors.shapes.known_names import GENERIC_CHAIN_NAMES
from processors.shapes.members import failure
from processors.shapes.messages import read_messages
from processors.spans import Span

_KIND = "agentops.span.kind"
_RECEIVER = "to_agent"
_REQUEST_TYPE = "tool.call.type"
_FAILURE = "error.message"
_CONTENT = ("agent", "workflow", "session", "entity")
_INPUTS = tuple(f"agentops.{holder}.input" for holder in _CONTENT)
_OUTPUTS = tuple(f"agentops.{holder}.output" for holder in _CONTENT)
_UNNAMED_RUNS = frozenset({"default", "session"}) | GENERIC_CHAIN_NAMES
"""Names of traces that the SDK begins by itself."""

_role_of_kind = by_kind(
    (_KIND,), roles(agent="agent", model="llm", tool="tool", workflow="workflow", judge="guardrail")
)


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    is_handoff = attributes.text(_KIND) is None and attributes.get("instrumentation.name") == "agentops"
    return SpanRole.TOOL if _is_request(span) or is_handoff else _role_of_kind(span)


def _is_request(span: Span) -> bool:
    """Whether the span only repeats a call that a model requested; it may lack its kind."""
    return _REQUEST_TYPE in span.attributes and span.name.startswith("tool_call.")


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    if _is_request(span):
        return ToolReading(is_synthetic=True)
    if _KIND not in attributes:
        receiver = first_text(attributes, (_RECEIVER,))
        return ToolReading(name=f"handoff to {receiver}", category=CallCategory.HANDOFF)
    opened = first_result(attributes, ("tool.result", "agentops.tool.output", "agentops.entity.output"))
    error = opened.error
    if attributes.get("tool.status") in ("error", "failed") or _FAILURE in attributes:
        error = error or failure(first_text(attributes, (_FAILURE,)))
    return ToolReading(
        name=first_text(attributes, ("tool.name", "agentops.entity.name", "operation.name")),
        inferred_name=span.name.removesuffix(".tool"),
        call_id=opened.call_id,
        arguments=arguments_of_recorded_call(
            first_arguments(attributes, ("tool.parameters", "agentops.tool.input", "agentops.entity.input"))
        ),
        result=opened.result,
        error=error,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    kind = attributes.text(_KIND)
    if kind not in ("agent", "workflow", "session"):
        return AgentReading()
    name = first_text(attributes, ("agent.name", "agentops.entity.name", "operation.name"))
    inferred = name or span.name.removesuffix(f".{kind}")
    return AgentReading(
        name=name if kind == "agent" else "",
        inferred_name=inferred if kind == "agent" or inferred not in _UNNAMED_RUNS else "",
        input=first_decoded(attributes, _INPUTS, input_of_recorded_call),
        output=first_output(attributes, _OUTPUTS),
    )


def _conversation(span: Span) -> Conversation:
    attributes = span.attributes
    if attributes.get(_KIND) != "llm":
        return Conversation()
    return Conversation(
        lambda: read_messages(flattened_list(attributes, "gen_ai.prompt."), "user"),
        lambda: read_messages(flattened_list(attributes, "gen_ai.completion."), "assistant"),
    )


DIALECT = Dialect("agentops", (_KIND, _RECEIVER, _REQUEST_TYPE), _role, _tool, _agent, _conversation, rank=60)
