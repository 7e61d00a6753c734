"""Upsonic: `upsonic.*` attributes of its runs and tools, with values where Langfuse looks for them."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_arguments, first_text
from processors.frameworks.shapes.chat_envelope import decode_output
from processors.frameworks.shapes.result_envelope import OpenedResult, open_result
from processors.model.agent_run import ToolError, ValueState
from processors.model.json_value import JsonValue
from processors.model.values import ABSENT, DecodedValue, decode_result, json_text, text_value
from processors.spans.attributes import Attributes
from processors.spans.span import Span

_AGENT = "upsonic.agent.name"
_TOOL = "upsonic.tool.name"
_CALL_ID = ("upsonic.tool.call_id",)
_SUCCESS = "upsonic.tool.success"
_INPUT = "upsonic.input"
_OUTPUT = "upsonic.output"
_ARGUMENTS = ("langfuse.observation.input",)
_RESULT = "langfuse.observation.output"
_SESSION = ("session.id",)
_WRAPPER = "func"
"""The key under which what a function returned is told."""
_PRINTED_WRAPPER = "{'func': "


class _Upsonic:
    name: Final = "upsonic"
    rank: Final = 20
    keys: Final = (_AGENT, _TOOL)
    frameworks: Final = (
        Framework(
            name="Upsonic",
            versions="0.77",
            reads="`tool.execute` spans are calls, `agent.run` spans are runs, named by "
            "`upsonic.agent.name`; results out of their `func` wrapper",
            capture="`instrument=True` of the agent, the default for content; `include_content=False` of "
            "`InstrumentationSettings` leaves it out",
            unknown="values beyond 5,000 characters; attempts that the framework repeats within one call",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        return SpanRole.TOOL if _TOOL in span.attributes else SpanRole.AGENT

    def tool(self, span: Span) -> ToolReading:
        attributes = span.attributes
        opened = _result(attributes)
        error = opened.error
        if attributes.get(_SUCCESS) is False:
            error = error or ToolError(type="", message="")
        return ToolReading(
            name=first_text(attributes, (_TOOL,)),
            call_id=first_text(attributes, _CALL_ID),
            arguments=first_arguments(attributes, _ARGUMENTS),
            result=opened.result,
            error=error,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        return AgentReading(
            name=first_text(attributes, (_AGENT,)),
            session=first_text(attributes, _SESSION),
            input=text_value(attributes.text(_INPUT)),
            output=decode_output(attributes.get(_OUTPUT)) if _OUTPUT in attributes else ABSENT,
        )

    def conversation(self, span: Span) -> Conversation:
        return Conversation()


def _result(attributes: Attributes) -> OpenedResult:
    """What the function returned, out of the wrapper that is printed around it."""
    if _RESULT not in attributes:
        return OpenedResult(ABSENT)
    decoded = decode_result(attributes.get(_RESULT))
    printed = decoded.text or ""
    if not printed.startswith(_PRINTED_WRAPPER):
        return open_result(decoded)
    value = decode_result(printed).value
    if isinstance(value, dict) and value.keys() == {_WRAPPER}:
        return open_result(_of(value[_WRAPPER]))
    return OpenedResult(DecodedValue(None, printed, ValueState.TRUNCATED))


def _of(value: JsonValue) -> DecodedValue:
    return DecodedValue(value, value if isinstance(value, str) else json_text(value), ValueState.PRESENT)


DIALECT = _Upsonic()
