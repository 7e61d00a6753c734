"""Laminar: `lmnr.span.*`, as its SDKs and decorators write them, and Mastra's exporter for it."""

import re
from typing import Final

from processors.frameworks.dialect import AgentReading, Conversation, SpanRole, ToolReading
from processors.frameworks.framework import Framework
from processors.frameworks.shapes.attribute_reading import first_arguments, first_result, first_text
from processors.frameworks.shapes.chat_envelope import decode_input, decode_output
from processors.frameworks.shapes.messages import read_messages
from processors.frameworks.shapes.model_response import read_model_response
from processors.frameworks.shapes.placeholder_names import GENERIC_CHAIN_NAMES
from processors.model.values import ABSENT, DecodedValue, text_value
from processors.spans.span import Span

_TYPE = "lmnr.span.type"
_INPUT = "lmnr.span.input"
_OUTPUT = "lmnr.span.output"
_MASTRA_SCOPE = "@mastra/laminar"
_MASTRA_NAME = re.compile(r"(\w+(?: run)?): '(.*)'(?: \((?:resumed|recovered)\))?", re.DOTALL)
_MASTRA_ROLES = {"agent run": SpanRole.AGENT, "workflow run": SpanRole.WORKFLOW}
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
            "`lmnr.span.input` and `.output`; with Mastra's exporter (`@mastra/laminar` 1) runs and calls "
            "are told by the names of spans",
            capture="nothing; `ignore_input` and `ignore_output` of `@observe` leave values out",
            unknown="agents: the root span stands for the run, its name for the agent's, with Mastra its id",
        ),
    )

    def role(self, span: Span) -> SpanRole | None:
        kind = span.attributes.text(_TYPE)
        if kind == "DEFAULT" and span.envelope.scope_name == _MASTRA_SCOPE:
            return _MASTRA_ROLES.get(_kind_and_name(span)[0], SpanRole.OTHER)
        return SpanRole.OTHER if kind is None else _ROLES.get(kind, SpanRole.OTHER)

    def tool(self, span: Span) -> ToolReading:
        opened = first_result(span.attributes, (_OUTPUT,))
        return ToolReading(
            inferred_name=_kind_and_name(span)[1],
            call_id=opened.call_id,
            arguments=first_arguments(span.attributes, (_INPUT,)),
            result=opened.result,
            error=opened.error,
        )

    def agent(self, span: Span) -> AgentReading:
        attributes = span.attributes
        return AgentReading(
            inferred_name="" if span.name in GENERIC_CHAIN_NAMES else _kind_and_name(span)[1],
            session=first_text(attributes, ("lmnr.association.properties.session_id",)),
            input=decode_input(attributes.get(_INPUT)) if _INPUT in attributes else ABSENT,
            output=_answer(span) if _OUTPUT in attributes else ABSENT,
        )

    def conversation(self, span: Span) -> Conversation:
        attributes = span.attributes
        if self.role(span) is not SpanRole.MODEL:
            return Conversation()
        return Conversation(
            lambda: read_messages(attributes.get(_INPUT), "user"),
            lambda: read_model_response(attributes.get(_OUTPUT)),
        )


def _kind_and_name(span: Span) -> tuple[str, str]:
    """What Mastra calls a span and the agent, workflow or tool that it names; of any other its own name."""
    if span.envelope.scope_name == _MASTRA_SCOPE:
        match = _MASTRA_NAME.fullmatch(span.name)
        if match is not None:
            return match[1], match[2]
    return "", span.name


def _answer(span: Span) -> DecodedValue:
    answer = decode_output(span.attributes.get(_OUTPUT))
    told = answer.value.get("text") if isinstance(answer.value, dict) else None
    return text_value(told) if isinstance(told, str) and _kind_and_name(span)[0] else answer


DIALECT = _Laminar()
