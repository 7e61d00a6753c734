"""Upsonic: `upsonic.*` attributes of its runs and tools, with values where Langfuse looks for them."""

from typing import Final

from processors.model import ABSENT, DecodedValue, ToolError, ValueState, decode_result, text_value, value_of
from processors.shapes.attribute_reading import first_arguments, first_text
from processors.shapes.chat_envelope import first_output
from processors.shapes.dialect import AgentReading, Dialect, Sign, SpanRole, ToolReading, by_signs
from processors.shapes.result_envelope import OpenedResult, open_result
from processors.spans import Attributes, Span

_AGENT = "upsonic.agent.name"
_TOOL = "upsonic.tool.name"
_RESULT = "langfuse.observation.output"
_WRAPPER = "func"
"""The key under which what a function returned is told."""
_PRINTED_WRAPPER = "{'func': "


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = _result(attributes)
    failed = attributes.get("upsonic.tool.success") is False
    return ToolReading(
        name=first_text(attributes, (_TOOL,)),
        call_id=first_text(attributes, ("upsonic.tool.call_id",)),
        arguments=first_arguments(attributes, ("langfuse.observation.input",)),
        result=opened.result,
        error=opened.error or (ToolError(type="", message="") if failed else None),
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    return AgentReading(
        name=first_text(attributes, (_AGENT,)),
        session=first_text(attributes, ("session.id",)),
        input=text_value(attributes.text("upsonic.input")),
        output=first_output(attributes, ("upsonic.output",)),
    )


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
        return open_result(value_of(value[_WRAPPER]))
    return OpenedResult(DecodedValue(None, printed, ValueState.TRUNCATED))


DIALECT: Final = Dialect(
    "upsonic",
    (_AGENT, _TOOL),
    role=by_signs(Sign(SpanRole.TOOL, present=(_TOOL,)), Sign(SpanRole.AGENT)),
    tool=_tool,
    agent=_agent,
    rank=20,
)
