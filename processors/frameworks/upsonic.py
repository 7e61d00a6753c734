"""Upsonic: `upsonic.*` attributes of its runs and tools, with values where Langfuse looks for them."""

from processors.model import DecodedValue, ValueState, decode_result, text_value, value_of
from processors.shapes.attribute_reading import first_arguments, first_decoded, first_text
from processors.shapes.chat_envelope import first_output
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import Sign, by_signs
from processors.shapes.members import failure, object_at
from processors.shapes.result_envelope import OpenedResult, open_result
from processors.spans import Attributes, Span

_AGENT = "upsonic.agent.name"
_TOOL = "upsonic.tool.name"


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    opened = _result(attributes)
    failed = attributes.get("upsonic.tool.success") is False
    return ToolReading(
        name=first_text(attributes, (_TOOL,)),
        call_id=first_text(attributes, ("upsonic.tool.call_id",)),
        arguments=first_arguments(attributes, ("langfuse.observation.input",)),
        result=opened.result,
        error=opened.error or (failure() if failed else None),
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
    decoded = first_decoded(attributes, ("langfuse.observation.output",), decode_result)
    printed = decoded.text or ""
    if not printed.startswith("{'func': "):
        return open_result(decoded)
    value = object_at(decode_result(printed).value)
    if value.keys() == {"func"}:
        return open_result(value_of(value["func"]))
    return OpenedResult(DecodedValue(None, printed, ValueState.TRUNCATED))


DIALECT = Dialect(
    "upsonic",
    (_AGENT, _TOOL),
    role=by_signs(Sign(SpanRole.TOOL, present=(_TOOL,)), Sign(SpanRole.AGENT)),
    tool=_tool,
    agent=_agent,
    rank=20,
)
