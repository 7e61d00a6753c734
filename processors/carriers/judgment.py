"""Judgment: `judgment.*`, as the decorators of its SDK write them."""

from msgspec.structs import replace

from processors.model import ABSENT, DecodedValue, value_of
from processors.shapes.attribute_reading import first_arguments, first_decoded, first_text
from processors.shapes.chat_envelope import decode_input, first_output
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading
from processors.shapes.dialect_functions import by_kind, model_messages, roles, tool_fields, whole_name
from processors.shapes.known_names import name_of_chain
from processors.shapes.members import text_at
from processors.spans import Attributes, Span

_KIND = "judgment.span_kind"
_INPUT = "judgment.input"
_OUTPUT = "judgment.output"
_RECEIVER = "self"

_role = by_kind((_KIND,), roles(tool="tool", agent="agent", model="llm"), ignore_case=True)
_fields_of_tool = tool_fields(inferred_name=whole_name, result=(_OUTPUT,))


def _tool(span: Span) -> ToolReading:
    return replace(_fields_of_tool(span), arguments=_arguments(span.attributes))


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    given = _arguments(attributes).value
    is_stream = attributes.get(_OUTPUT) in (None, *("<generator>", "<async_generator>"))
    return AgentReading(
        name=span.name if _role(span) is SpanRole.AGENT else "",
        inferred_name=name_of_chain(span.name),
        session=first_text(attributes, ("judgment.session_id",)),
        input=first_decoded(
            attributes, (_INPUT,), lambda raw: decode_input(given if isinstance(given, dict) else raw)
        ),
        output=ABSENT if is_stream else first_output(attributes, (_OUTPUT,)),
    )


def _arguments(attributes: Attributes) -> DecodedValue:
    """The arguments by name, without the object that a method belongs to."""
    decoded = first_arguments(attributes, (_INPUT,))
    value = decoded.value
    if not isinstance(value, dict) or " object at 0x" not in text_at(value, _RECEIVER):
        return decoded
    return value_of({key: member for key, member in value.items() if key != _RECEIVER})


DIALECT = Dialect(
    "judgment", (_KIND,), _role, _tool, _agent, model_messages((_INPUT,), (_OUTPUT,), role=_role), rank=60
)
