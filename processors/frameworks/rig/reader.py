"""Rig, for Rust: GenAI conventions, with how a call came out, and an agent's question and answer as texts."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_text
from processors.model.agent_run import ToolError
from processors.model.values import ABSENT, text_value
from processors.spans.attributes import Attributes
from processors.spans.span import Span

_OUTCOME = "gen_ai.tool.call.outcome"
_ERROR_TYPE = "gen_ai.tool.error.type"
_RESULT = "gen_ai.tool.call.result"
_SUCCESS = "success"
_PROMPT = "gen_ai.prompt"
_ANSWER = "gen_ai.completion"
_TARGET = "target"
_OLDER = "rig::agent::"
_OLDER_FAILURE = "Toolset error: "
_OTHERS = frozenset({"langsmith.span.kind", "mastra.span.type"})


class _Rig:
    name: Final = "rig"
    rank: Final = 20
    keys: Final = (_OUTCOME, _PROMPT, _ANSWER, _TARGET)
    frameworks: Final = (
        Framework(
            name="Rig",
            versions="0.30 to 0.46 (built from 0.30 and 0.44, the last read from its source)",
            reads="`execute_tool` and `invoke_agent`; whether a call failed from `gen_ai.tool.call.outcome`; "
            "what an agent was asked and answered from `gen_ai.prompt` and `gen_ai.completion`; where a span "
            "of the application or of a tool is current, for which Rig makes none for the run, the agent's "
            "name from the model's spans",
            capture="`record_content_telemetry(true)` of the agent's builder; older versions: nothing",
            unknown="in older versions the calls of an agent, which are traces of their own unless a span of "
            "the application is around them, and with such a span what was asked and answered",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        operation = attributes.get("gen_ai.operation.name")
        is_older = _is_older(attributes)
        if _OUTCOME in attributes or (is_older and operation == "execute_tool"):
            return SpanRole.TOOL
        is_told = is_older or _PROMPT in attributes or _ANSWER in attributes
        return (
            SpanRole.AGENT
            if is_told and operation == "invoke_agent" and not attributes.among(_OTHERS)
            else None
        )

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        outcome = first_text(attributes, (_OUTCOME,))
        message = first_text(attributes, (_RESULT,))
        if not outcome and _is_older(attributes) and message.startswith(_OLDER_FAILURE):
            return ToolReading(error=ToolError(type="", message=message))
        if outcome in ("", _SUCCESS):
            return ToolReading()
        told = first_text(attributes, (_ERROR_TYPE,))
        return ToolReading(error=ToolError(type=told or outcome, message=message))

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        return AgentReading(
            input=text_value(attributes.text(_PROMPT)) if _PROMPT in attributes else ABSENT,
            output=text_value(attributes.text(_ANSWER)) if _ANSWER in attributes else ABSENT,
            hides_calls=_is_older(attributes),
        )

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


def _is_older(attributes: Attributes) -> bool:
    """Whether a version made the span that starts a trace for every call, unless a span is around them."""
    return (attributes.text(_TARGET) or "").startswith(_OLDER)


DIALECT = _Rig()
