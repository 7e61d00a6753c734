"""Laminar: `lmnr.span.*`, as its SDKs and decorators write them."""

from typing import Final

from processors.captured.messages import read_messages
from processors.captured.values import ABSENT
from processors.conventions.attribute_reading import first_arguments, first_result, first_text
from processors.conventions.chat_envelope import decode_input, decode_output
from processors.conventions.model_response import read_model_response
from processors.conventions.placeholder_names import GENERIC_CHAIN_NAMES
from processors.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.framework import Framework
from processors.spans.span import Span

_TYPE = "lmnr.span.type"
_INPUT = "lmnr.span.input"
_OUTPUT = "lmnr.span.output"
_ROLES = {"TOOL": SpanRole.TOOL, "LLM": SpanRole.MODEL, "CACHED": SpanRole.MODEL}


class _Laminar:
    name: Final = "laminar"
    rank: Final = 60
    keys: Final = (_TYPE, _INPUT)
    frameworks: Final = (
        Framework(
            name="Laminar SDK",
            versions="0.5 and newer",
            reads="`lmnr.span.type` TOOL and LLM; the span's name is the tool's; values from "
            "`lmnr.span.input` and `.output`",
            capture="nothing; `ignore_input` and `ignore_output` of `@observe` leave values out",
            unknown="agents: the root span stands for the run, its name for the agent's",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        kind = span.attributes.text(_TYPE)
        return SpanRole.OTHER if kind is None else _ROLES.get(kind, SpanRole.OTHER)

    def tool(self, span: Span) -> ToolReading:
        opened = first_result(span.attributes, (_OUTPUT,))
        return ToolReading(
            inferred_name=span.name,
            call_id=opened.call_id,
            arguments=first_arguments(span.attributes, (_INPUT,)),
            result=opened.result,
            error=opened.error,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        return AgentReading(
            inferred_name="" if span.name in GENERIC_CHAIN_NAMES else span.name,
            session=first_text(attributes, ("lmnr.association.properties.session_id",)),
            input=decode_input(attributes.get(_INPUT)) if _INPUT in attributes else ABSENT,
            output=decode_output(attributes.get(_OUTPUT)) if _OUTPUT in attributes else ABSENT,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if self.role(span) is not SpanRole.MODEL:
            return Conversation()
        return Conversation(
            lambda: read_messages(attributes.get(_INPUT), "user"),
            lambda: read_model_response(attributes.get(_OUTPUT)),
        )


DIALECT = _Laminar()
