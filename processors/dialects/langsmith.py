"""LangSmith's OpenTelemetry export: `langsmith.span.kind`, with whole inputs and outputs as JSON.

It names operations of the GenAI conventions too, but chains and the shapes of values are its own.
"""

from typing import Final

from processors.agent_run import ValueState
from processors.attribute_reading import first_arguments, first_result, first_text
from processors.attributes import Attributes
from processors.chat_envelope import decode_input, decode_output
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.framework import Framework
from processors.messages import read_messages
from processors.model_response import read_model_response
from processors.placeholder_names import GENERIC_CHAIN_NAMES
from processors.result_envelope import OUTPUT, OpenedResult
from processors.span import Span
from processors.values import ABSENT, DecodedValue, decode_arguments

_KIND = "langsmith.span.kind"
_INPUTS = "gen_ai.prompt"
_OUTPUTS = "gen_ai.completion"
_AGENT_NAME = "langsmith.metadata.lc_agent_name"
_INTEGRATION = "langsmith.metadata.ls_integration"
_SESSIONS = (
    "langsmith.metadata.session_id",
    "langsmith.metadata.thread_id",
    "langsmith.metadata.conversation_id",
)
_NOTHING = "{}"
"""What stands for inputs and outputs that the sender hides."""
_ROLES = {"tool": SpanRole.TOOL, "llm": SpanRole.MODEL, "agent": SpanRole.AGENT, "chain": SpanRole.WORKFLOW}


class _LangSmith:
    name: Final = "langsmith"
    rank: Final = 5
    keys: Final = (_KIND,)
    frameworks: Final = (
        Framework(
            name="LangSmith SDK",
            versions="0.4 to 0.15, OpenTelemetry export",
            reads="`langsmith.span.kind` tool and chain; the outermost chain is the run, its name the "
            "agent's; values from `gen_ai.prompt` and `gen_ai.completion`",
            capture="`LANGSMITH_OTEL_ENABLED=true`; `LANGSMITH_HIDE_INPUTS` and `LANGSMITH_HIDE_OUTPUTS` "
            "leave values out",
            unknown="empty arguments or an empty result where the sender may have hidden "
            "them; a chain within a chain as an agent of its own, unless `lc_agent_name` says so",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        kind = attributes.text(_KIND)
        if kind is None:
            return None
        if kind == "chain" and attributes.get(_AGENT_NAME) == span.name:
            return SpanRole.AGENT
        return _ROLES.get(kind, SpanRole.OTHER)

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        opened = OpenedResult(ABSENT)
        if attributes.get(_OUTPUTS) != _NOTHING:
            opened = first_result(attributes, (_OUTPUTS,), OUTPUT)
        return ToolReading(
            name=first_text(attributes, ("gen_ai.tool.name",)),
            inferred_name=span.name,
            call_id=first_text(attributes, ("gen_ai.tool.call.id",)) or opened.call_id,
            arguments=_arguments(attributes),
            result=opened.result,
            error=opened.error,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        return AgentReading(
            name=first_text(attributes, (_AGENT_NAME,)),
            inferred_name="" if span.name in GENERIC_CHAIN_NAMES else span.name,
            session=first_text(attributes, _SESSIONS),
            input=decode_input(attributes.get(_INPUTS)) if _is_told(attributes, _INPUTS) else ABSENT,
            output=decode_output(attributes.get(_OUTPUTS)) if _is_told(attributes, _OUTPUTS) else ABSENT,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if attributes.get(_KIND) != "llm":
            return Conversation()
        return Conversation(
            lambda: read_messages(attributes.get(_INPUTS), "user"),
            lambda: read_model_response(attributes.get(_OUTPUTS)),
        )


def _is_told(attributes: Attributes, key: str) -> bool:
    return key in attributes and attributes.get(key) != _NOTHING


def _arguments(attributes: Attributes) -> DecodedValue:
    """The inputs; where a tool was given one text that writes an object, that object."""
    if not _is_told(attributes, _INPUTS) and (
        not _is_told(attributes, _OUTPUTS) or _AGENT_NAME in attributes or _INTEGRATION in attributes
    ):
        return ABSENT  # a graph's tool without arguments has an input; only a decorated function has none
    decoded = first_arguments(attributes, (_INPUTS,))
    value = decoded.value
    if decoded.state is ValueState.PRESENT and isinstance(value, dict) and value.keys() == {"input"}:
        text = value["input"]
        if isinstance(text, str) and text.strip()[:1] == "{":
            inner = decode_arguments(text)
            if inner.state is ValueState.PRESENT:
                return inner
    return decoded


DIALECT = _LangSmith()
