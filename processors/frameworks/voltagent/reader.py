"""VoltAgent: `span.type` for what runs inside an agent, `entity.*` for the agent, bare inputs and outputs."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_arguments, first_result, first_text
from processors.frameworks.shapes.chat_envelope import decode_input, decode_output
from processors.frameworks.shapes.messages import read_messages
from processors.frameworks.shapes.model_response import read_model_response
from processors.model.agent_run import ToolError
from processors.model.values import ABSENT
from processors.spans.span import Span

_TYPE = "span.type"
_ENTITY = "entity.type"
_OPERATION = "voltagent.operation_id"
_EVIDENCE = (_ENTITY, _OPERATION, "voltagent.agent.id", "tool.name", "input", "output")
_ROLES = {"tool": SpanRole.TOOL, "llm": SpanRole.MODEL, "agent": SpanRole.AGENT}
_TOOL_SPAN_PREFIXES = ("tool.execution:", "tool:")


class _VoltAgent:
    name: Final = "voltagent"
    rank: Final = 5
    keys: Final = (_TYPE, _ENTITY, _OPERATION, "voltagent.agent.id")
    frameworks: Final = (
        Framework(
            name="VoltAgent",
            versions="0.1 to 2",
            reads="`span.type` tool and llm; `entity.type` agent without a `span.type` is a run, named by "
            "`subagent.name`, else by `entity.name`; values from `input` and `output`",
            capture="nothing",
            unknown="which model turn asked for a call, since one span covers all turns: calls count as "
            "parallel where they overlap in time; the order of calls that began in one millisecond",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        if not any(key in attributes for key in _EVIDENCE):
            return None
        kind = attributes.text(_TYPE)
        if kind is None and "tool.name" in attributes and span.name.startswith(_TOOL_SPAN_PREFIXES):
            return SpanRole.TOOL
        return _ROLES.get(kind or attributes.text(_ENTITY) or "", SpanRole.OTHER)

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        name = first_text(attributes, ("tool.name",))
        inferred = span.name
        for prefix in _TOOL_SPAN_PREFIXES:
            inferred = inferred.removeprefix(prefix).strip()
        opened = first_result(attributes, ("output", "tool.result"))
        error = opened.error
        if "tool.error.message" in attributes:
            error = ToolError(type="", message=first_text(attributes, ("tool.error.message",)))
        return ToolReading(
            name=name,
            inferred_name="" if name else inferred,
            call_id=first_text(attributes, ("tool.call.id",)) or opened.call_id,
            arguments=first_arguments(attributes, ("input", "tool.arguments")),
            result=opened.result,
            error=error,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        key = "input" if "input" in attributes else "agent.messages"
        return AgentReading(
            # A sub-agent's spans bear the name of its caller as that of their entity.
            name=first_text(attributes, ("subagent.name", "entity.name", "voltagent.agent.name")),
            inferred_name=span.name if self.role(span) is SpanRole.AGENT else "",
            id=first_text(attributes, ("subagent.id", "entity.id", "voltagent.agent.id")),
            session=first_text(attributes, ("voltagent.conversation_id", "conversation.id")),
            input=decode_input(attributes.get(key)) if key in attributes else ABSENT,
            output=decode_output(attributes.get("output")) if "output" in attributes else ABSENT,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if self.role(span) is not SpanRole.MODEL:
            return Conversation()
        key = "llm.messages" if "llm.messages" in attributes else "input"
        return Conversation(
            lambda: read_messages(attributes.get(key), "user"),
            lambda: read_model_response(attributes.get("output")),
        )


DIALECT = _VoltAgent()
