"""Prompt flow: `framework` is `promptflow`, `span_type` says what a function was traced as."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.available_tools import read_tool_definitions
from processors.frameworks.shapes.chat_envelope import decode_input, decode_output
from processors.frameworks.shapes.messages import read_messages
from processors.frameworks.shapes.model_response import read_model_response
from processors.model.json_value import JsonObject
from processors.model.values import ABSENT, decode_result
from processors.spans.attributes import Attributes
from processors.spans.span import Span

_FRAMEWORK = "framework"
_TYPE = "span_type"
_INPUT = "inputs"
_OUTPUT = "output"
_MESSAGE = "llm.generated_message"


class _PromptFlow:
    name: Final = "prompt_flow"
    rank: Final = 60
    keys: Final = (_FRAMEWORK,)
    frameworks: Final = (
        Framework(
            name="Prompt flow",
            versions="`promptflow-tracing` 1.18",
            reads="the messages of `LLM` spans tell the calls and their results; the traced function or flow "
            "around them is the run, named by the service",
            capture="`PF_DISABLE_TRACING=false`; `start_trace()`, which also traces the client of OpenAI",
            unknown="which traced functions are tools; whether a call failed, which only the text of its "
            "result tells; the calls that a model asks for in a stream",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        attributes = span.attributes
        if attributes.get(_FRAMEWORK) != "promptflow":
            return None
        return SpanRole.MODEL if attributes.get(_TYPE) == "LLM" else SpanRole.OTHER

    def tool(self, span: Span) -> ToolReading:
        return ToolReading()

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        if attributes.get(_TYPE) == "LLM":
            return AgentReading()
        return AgentReading(
            input=decode_input(attributes.get(_INPUT)) if _INPUT in attributes else ABSENT,
            output=decode_output(attributes.get(_OUTPUT)) if _OUTPUT in attributes else ABSENT,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if attributes.get(_TYPE) != "LLM":
            return Conversation()
        return Conversation(
            lambda: read_messages(_asked(attributes).get("messages"), "user"),
            lambda: read_model_response(attributes.get(_MESSAGE if _MESSAGE in attributes else _OUTPUT)),
        ).offering(lambda: read_tool_definitions(_asked(attributes).get("tools")))


def _asked(attributes: Attributes) -> JsonObject:
    value = decode_result(attributes.get(_INPUT)).value if _INPUT in attributes else None
    return value if isinstance(value, dict) else {}


DIALECT = _PromptFlow()
