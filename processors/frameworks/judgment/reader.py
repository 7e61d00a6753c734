"""Judgment: `judgment.*`, as the decorators of its SDK write them."""

from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_arguments, first_result, first_text
from processors.frameworks.shapes.chat_envelope import decode_input, decode_output
from processors.frameworks.shapes.messages import read_messages
from processors.frameworks.shapes.model_response import read_model_response
from processors.frameworks.shapes.placeholder_names import GENERIC_CHAIN_NAMES
from processors.model.agent_run import ValueState
from processors.model.values import ABSENT, DecodedValue, json_text
from processors.spans.attributes import Attributes
from processors.spans.span import Span

_KIND = "judgment.span_kind"
_INPUT = "judgment.input"
_OUTPUT = "judgment.output"
_RECEIVER = "self"
_PRINTED_OBJECT = " object at 0x"
_STREAMS = ("<generator>", "<async_generator>")
_ROLES = {"tool": SpanRole.TOOL, "agent": SpanRole.AGENT, "llm": SpanRole.MODEL}


class _Judgment:
    name: Final = "judgment"
    rank: Final = 60
    keys: Final = (_KIND,)
    frameworks: Final = (
        Framework(
            name="Judgment SDK",
            versions="`judgeval` 1 (built from 1.6)",
            reads="`judgment.span_kind` agent, tool and llm of `@Tracer.observe`; the span's name is the "
            "tool's or the agent's; values from `judgment.input` and `judgment.output`; of a span that is "
            "also sent before it ends the last state counts",
            capture="nothing; `record_input=False` and `record_output=False` leave values out",
            unknown="call ids; the answer and the calls of a generator, each of whose steps is a trace of "
            "its own; that a trace goes on: its root span is also sent when it begins, so `root_grace` "
            "should be longer than the longest wait of the agent",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        kind = span.attributes.text(_KIND)
        return None if kind is None else _ROLES.get(kind.lower(), SpanRole.OTHER)

    def tool(self, span: Span) -> ToolReading:
        opened = first_result(span.attributes, (_OUTPUT,))
        return ToolReading(
            inferred_name=span.name,
            call_id=opened.call_id,
            arguments=_arguments(span.attributes),
            result=opened.result,
            error=opened.error,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        is_told = attributes.get(_OUTPUT) not in (None, *_STREAMS)
        return AgentReading(
            name=span.name if self.role(span) is SpanRole.AGENT else "",
            inferred_name="" if span.name in GENERIC_CHAIN_NAMES else span.name,
            session=first_text(attributes, ("judgment.session_id",)),
            input=_asked(attributes) if _INPUT in attributes else ABSENT,
            output=decode_output(attributes.get(_OUTPUT)) if is_told else ABSENT,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if self.role(span) is not SpanRole.MODEL:
            return Conversation()
        return Conversation(
            lambda: read_messages(attributes.get(_INPUT), "user"),
            lambda: read_model_response(attributes.get(_OUTPUT)),
        )


def _asked(attributes: Attributes) -> DecodedValue:
    given = _arguments(attributes)
    return decode_input(given.value if given.state is ValueState.PRESENT else attributes.get(_INPUT))


def _arguments(attributes: Attributes) -> DecodedValue:
    """The arguments by name, without the object that a method belongs to."""
    decoded = first_arguments(attributes, (_INPUT,))
    value = decoded.value
    if decoded.state is not ValueState.PRESENT or not isinstance(value, dict):
        return decoded
    receiver = value.get(_RECEIVER)
    if not isinstance(receiver, str) or _PRINTED_OBJECT not in receiver:
        return decoded
    arguments = {key: member for key, member in value.items() if key != _RECEIVER}
    return DecodedValue(arguments, json_text(arguments), ValueState.PRESENT)


DIALECT = _Judgment()
