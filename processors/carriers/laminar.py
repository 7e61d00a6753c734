"""Laminar: `lmnr.span.*`, as its SDKs and decorators write them, and Mastra's exporter for it."""

import re

from processors.model import DecodedValue, text_value
from processors.shapes.attribute_reading import first_text
from processors.shapes.chat_envelope import first_input, first_output
from processors.shapes.dialect import AgentReading, Dialect, SpanRole
from processors.shapes.dialect_functions import by_kind, model_messages, roles, tool_fields
from processors.shapes.known_names import name_of_chain
from processors.shapes.members import value_at
from processors.spans import Span

_TYPE = "lmnr.span.type"
_INPUT = ("lmnr.span.input",)
_OUTPUT = ("lmnr.span.output",)
_MASTRA_SCOPE = "@mastra/laminar"
_MASTRA_NAME = re.compile(r"(\w+(?: run)?): '(.*)'(?: \((?:resumed|recovered)\))?", re.DOTALL)
_MASTRA_ROLES = roles(agent="agent run", workflow="workflow run")

_role_of_type = by_kind((_TYPE,), roles(tool="TOOL", model=("LLM", "CACHED"), judge="EVALUATOR"))


def _role(span: Span) -> SpanRole | None:
    if span.envelope.scope_name == _MASTRA_SCOPE and span.attributes.get(_TYPE) == "DEFAULT":
        return _MASTRA_ROLES.get(_kind_and_name(span)[0], SpanRole.OTHER)
    return _role_of_type(span) or SpanRole.OTHER


def _agent(span: Span) -> AgentReading:
    return AgentReading(
        inferred_name=name_of_chain(span.name) and _kind_and_name(span)[1],
        session=first_text(span.attributes, ("lmnr.association.properties.session_id",)),
        input=first_input(span.attributes, _INPUT),
        output=_answer(span),
    )


def _kind_and_name(span: Span) -> tuple[str, str]:
    """What Mastra calls a span, and the agent, workflow or tool that it names; else the span's own name."""
    if span.envelope.scope_name == _MASTRA_SCOPE:
        match = _MASTRA_NAME.fullmatch(span.name)
        if match is not None:
            return match[1], match[2]
    return "", span.name


def _answer(span: Span) -> DecodedValue:
    answer = first_output(span.attributes, _OUTPUT)
    text = value_at(answer.value, "text")
    return text_value(text) if isinstance(text, str) and _kind_and_name(span)[0] else answer


DIALECT = Dialect(
    "laminar",
    (_TYPE, *_INPUT),
    _role,
    tool=tool_fields(inferred_name=lambda span: _kind_and_name(span)[1], arguments=_INPUT, result=_OUTPUT),
    agent=_agent,
    conversation=model_messages(_INPUT, _OUTPUT, role=_role),
    rank=60,
)
