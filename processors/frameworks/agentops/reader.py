"""AgentOps: `agentops.span.kind`, as its instrumentation of agent SDKs and its decorators write it."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_arguments, first_result, first_text
from processors.frameworks.shapes.chat_envelope import decode_output
from processors.frameworks.shapes.flattened_list import flattened_list
from processors.frameworks.shapes.messages import read_messages
from processors.frameworks.shapes.placeholder_names import GENERIC_CHAIN_NAMES
from processors.frameworks.shapes.recorded_call import arguments_of_recorded_call, input_of_recorded_call
from processors.model.agent_run import CallCategory, ToolError
from processors.model.values import ABSENT
from processors.spans.span import Span

_KIND = "agentops.span.kind"
_EMITTER = "instrumentation.name"
_RECEIVER = "to_agent"
_NAMES = ("tool.name", "agentops.entity.name", "operation.name")
_AGENT_NAMES = ("agent.name", "agentops.entity.name", "operation.name")
_ARGUMENTS = ("tool.parameters", "agentops.tool.input", "agentops.entity.input")
_RESULTS = ("tool.result", "agentops.tool.output", "agentops.entity.output")
_INPUTS = (
    "agentops.agent.input", "agentops.workflow.input", "agentops.session.input", "agentops.entity.input",
)  # fmt: skip
_OUTPUTS = (
    "agentops.agent.output", "agentops.workflow.output", "agentops.session.output", "agentops.entity.output",
)  # fmt: skip
_RUNS = ("agent", "workflow", "session")
_UNNAMED_RUNS = frozenset({"default", "session"}) | GENERIC_CHAIN_NAMES
"""How a trace is called that the SDK begins by itself."""
_REQUEST_TYPE = "tool.call.type"
_REQUEST_PREFIX = "tool_call."
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
    keys: Final = (_KIND, _RECEIVER, _REQUEST_TYPE)
    frameworks: Final = (
        Framework(
            name="AgentOps",
            versions="0.4, with the OpenAI Agents SDK and its decorators",
            reads="`agentops.span.kind` agent, tool, llm and workflow; names from `agent.name` and "
            "`tool.name`, values from `tool.parameters` and `tool.result`; a span with `to_agent` is a "
            "handoff; a trace or workflow without agents stands for the run; `tool_call.` spans of clients "
            "repeat what a model asked for and are left out",
            capture="nothing",
            unknown="call ids; the names of a decorated function's positional arguments, which stand under "
            "`$args`; an answer that is a tool's result (`stop_on_first_tool`)",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        if _is_request(span):
            return SpanRole.TOOL
        kind = attributes.text(_KIND)
        if kind is None:
            return SpanRole.TOOL if attributes.get(_EMITTER) == "agentops" else None
        return _ROLES.get(kind, SpanRole.OTHER)

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        if _is_request(span):
            return ToolReading(is_synthetic=True)
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
        kind = attributes.text(_KIND)
        if kind not in _RUNS:
            return AgentReading()
        name = first_text(attributes, _AGENT_NAMES)
        inferred = name or span.name.removesuffix(f".{kind}")
        asked = next((key for key in _INPUTS if key in attributes), None)
        answered = next((key for key in _OUTPUTS if key in attributes), None)
        return AgentReading(
            name=name if kind == "agent" else "",
            inferred_name=inferred if kind == "agent" or inferred not in _UNNAMED_RUNS else "",
            input=ABSENT if asked is None else input_of_recorded_call(attributes.get(asked)),
            output=ABSENT if answered is None else decode_output(attributes.get(answered)),
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if attributes.get(_KIND) != "llm":
            return Conversation()
        return Conversation(
            lambda: read_messages(flattened_list(attributes, "gen_ai.prompt."), "user"),
            lambda: read_messages(flattened_list(attributes, "gen_ai.completion."), "assistant"),
        )


def _is_request(span: Span) -> bool:
    """Whether the span only repeats a call that a model asked for; what made it may leave out its kind."""
    return _REQUEST_TYPE in span.attributes and span.name.startswith(_REQUEST_PREFIX)


DIALECT = _AgentOps()
