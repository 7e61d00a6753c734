"""AgentOps: `agentops.span.kind`, as its instrumentation of agent SDKs and its decorators write it."""

from typing import Final

from processors.agent_run import CallCategory, ToolError
from processors.captured.flattened_list import flattened_list
from processors.captured.messages import read_messages
from processors.captured.values import ABSENT
from processors.conventions.attribute_reading import first_arguments, first_result, first_text
from processors.conventions.chat_envelope import decode_input, decode_output
from processors.conventions.recorded_call import arguments_of_recorded_call
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.framework import Framework
from processors.spans.span import Span

_KIND = "agentops.span.kind"
_EMITTER = "instrumentation.name"
_RECEIVER = "to_agent"
_NAMES = ("tool.name", "agentops.entity.name", "operation.name")
_AGENT_NAMES = ("agent.name", "agentops.entity.name", "operation.name")
_ARGUMENTS = ("tool.parameters", "agentops.tool.input", "agentops.entity.input")
_RESULTS = ("tool.result", "agentops.tool.output", "agentops.entity.output")
_INPUT = "agentops.agent.input"
_OUTPUT = "agentops.agent.output"
_FAILURE = "error.message"
_FAILURES = ("error", "failed")
_ROLES = {
    "agent": SpanRole.AGENT,
    "llm": SpanRole.MODEL,
    "tool": SpanRole.TOOL,
    "workflow": SpanRole.WORKFLOW,
}


class _AgentOps:
    name: Final = "agentops"
    rank: Final = 60
    keys: Final = (_KIND, _RECEIVER)
    frameworks: Final = (
        Framework(
            name="AgentOps",
            versions="0.4, with the OpenAI Agents SDK and its decorators",
            reads="`agentops.span.kind` agent, tool, llm and workflow; names from `agent.name` and "
            "`tool.name`, values from `tool.parameters` and `tool.result`; a span with `to_agent` is a "
            "handoff",
            capture="nothing",
            unknown="call ids; an answer that is a tool's result (`stop_on_first_tool`)",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        kind = attributes.text(_KIND)
        if kind is None:
            return SpanRole.TOOL if attributes.get(_EMITTER) == "agentops" else None
        return _ROLES.get(kind, SpanRole.OTHER)

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        if _KIND not in attributes:
            receiver = first_text(attributes, (_RECEIVER,))
            return ToolReading(name=f"handoff to {receiver}", category=CallCategory.HANDOFF)
        opened = first_result(attributes, _RESULTS)
        error = opened.error
        if attributes.get("tool.status") in _FAILURES or _FAILURE in attributes:
            error = error or ToolError(type="", message=first_text(attributes, (_FAILURE,)))
        return ToolReading(
            name=first_text(attributes, _NAMES),
            inferred_name=span.name.removesuffix(".tool"),
            call_id=opened.call_id,
            arguments=arguments_of_recorded_call(first_arguments(attributes, _ARGUMENTS)),
            result=opened.result,
            error=error,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        if attributes.get(_KIND) != "agent":
            return AgentReading()
        return AgentReading(
            name=first_text(attributes, _AGENT_NAMES),
            inferred_name=span.name.removesuffix(".agent"),
            input=decode_input(attributes.get(_INPUT)) if _INPUT in attributes else ABSENT,
            output=decode_output(attributes.get(_OUTPUT)) if _OUTPUT in attributes else ABSENT,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if attributes.get(_KIND) != "llm":
            return Conversation()
        return Conversation(
            lambda: read_messages(flattened_list(attributes, "gen_ai.prompt."), "user"),
            lambda: read_messages(flattened_list(attributes, "gen_ai.completion."), "assistant"),
        )


DIALECT = _AgentOps()
