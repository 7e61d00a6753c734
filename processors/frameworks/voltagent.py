"""VoltAgent: `span.type` for what runs inside an agent, `entity.*` for the agent, bare inputs and outputs."""

from msgspec.structs import replace

from processors.shapes.dialect import AgentReading, Dialect, SpanRole
from processors.shapes.dialect_functions import agent_fields, by_kind, model_messages, name_after, tool_fields
from processors.spans import Span

_EVIDENCE = frozenset(
    {"entity.type", "voltagent.operation_id", "voltagent.agent.id", "tool.name", "input", "output"}
)
_TOOL_SPAN_PREFIXES = ("tool.execution:", "tool:")

_role_of_kind = by_kind(
    ("span.type", "entity.type"),
    {
        "tool": SpanRole.TOOL,
        "llm": SpanRole.MODEL,
        "agent": SpanRole.AGENT,
        "guardrail": SpanRole.JUDGE,
        "scorer": SpanRole.JUDGE,
    },
)
_fields_of_agent = agent_fields(
    # A sub-agent's spans bear the name of its caller as that of their entity.
    name=("subagent.name", "entity.name", "voltagent.agent.name"),
    id=("subagent.id", "entity.id", "voltagent.agent.id"),
    session=("voltagent.conversation_id", "conversation.id"),
    input=("input", "agent.messages"),
    output=("output",),
)


def _role(span: Span) -> SpanRole | None:
    attributes = span.attributes
    if not any(key in attributes for key in _EVIDENCE):  # all of them are noted, for what is remembered
        return None
    is_older = attributes.text("span.type") is None and "tool.name" in attributes
    if is_older and span.name.startswith(_TOOL_SPAN_PREFIXES):
        return SpanRole.TOOL
    return _role_of_kind(span) or SpanRole.OTHER


def _agent(span: Span) -> AgentReading:
    reading = _fields_of_agent(span)
    return replace(reading, inferred_name=span.name) if _role(span) is SpanRole.AGENT else reading


DIALECT = Dialect(
    "voltagent",
    ("span.type", "entity.type", "voltagent.operation_id", "voltagent.agent.id"),
    _role,
    tool=tool_fields(
        name=("tool.name",),
        inferred_name=lambda span: name_after(*_TOOL_SPAN_PREFIXES)(span) or span.name.strip(),
        call_id=("tool.call.id",),
        arguments=("input", "tool.arguments"),
        result=("output", "tool.result"),
        error=("tool.error.message",),
    ),
    agent=_agent,
    conversation=model_messages(
        ("llm.messages", "input"),
        ("output",),
        tools=("llm.tools",),
        schema=("tool.name", "tool.parameters"),
        role=_role,
    ),
    rank=5,
)
