"""Semantic Kernel: its spans of functions, which follow the GenAI conventions but for a few things.

Every function of a kernel has such a span, and prompts are functions too; results are Python's text of a
value, also of the kernel's own content objects.
"""

import re
from typing import Final

from processors.model import (
    ABSENT,
    CallCategory,
    DecodedValue,
    ValueState,
    decode_result,
    parse_python_literal,
    text_value,
    value_of,
)
from processors.shapes.attribute_reading import first_arguments, first_text
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading
from processors.spans import Span

_DOTNET_SCOPE = "Microsoft.SemanticKernel"
_DRAWN_NAME = re.compile(r"_[0-9a-f]{32}\Z")
_NAME = "gen_ai.tool.name"
_RESULT = "gen_ai.tool.call.result"
_PLUGIN_SEPARATOR = "-"
_AGENT_OPTION = "instructions_override"
_AGENT_INPUT = "messages"
_PRINTED_CONTENTS = ("[TextContent(", "[ChatMessageContent(")
_PRINTED_TEXT = re.compile(
    r"""content_type='text', text=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"), encoding=""", re.DOTALL
)


def _role(span: Span) -> SpanRole | None:
    return (
        SpanRole.TOOL
        if span.envelope.scope_name in ("semantic_kernel.functions.kernel_function", _DOTNET_SCOPE)
        else None
    )


def _tool(span: Span) -> ToolReading:
    name = first_text(span.attributes, (_NAME,))
    category = CallCategory.FUNCTION
    if name.startswith("Handoff-transfer_to_"):
        category = CallCategory.HANDOFF
    elif name == "Handoff-complete_task":
        category = CallCategory.FINAL_ANSWER
    return ToolReading(
        name=name,
        arguments=_own_arguments(first_arguments(span.attributes, ("gen_ai.tool.call.arguments",))),
        result=_printed_contents(span),
        category=category,
        is_synthetic=_is_prompt(span, name),
    )


def _agent(span: Span) -> AgentReading:
    """Of a prompt that stands for a run: what the model answered."""
    if span.envelope.scope_name == _DOTNET_SCOPE:
        return AgentReading(output=text_value(span.attributes.text(_RESULT)))
    return AgentReading(output=_printed_contents(span))


def _is_prompt(span: Span, name: str) -> bool:
    """Whether the function is a prompt that the program runs: one of no plugin that no model asked for."""
    if (
        span.envelope.scope_name == _DOTNET_SCOPE
    ):  # names the function alone: prompts get a name drawn for them
        return _DRAWN_NAME.search(name) is not None
    return _PLUGIN_SEPARATOR not in name and "gen_ai.tool.call.id" not in span.attributes


def _own_arguments(told: DecodedValue) -> DecodedValue:
    """The arguments without the option that an agent used as a plugin hands on to all that runs in it."""
    value = told.value
    if told.state is not ValueState.PRESENT or not isinstance(value, dict):
        return told
    if _AGENT_OPTION not in value or _AGENT_INPUT in value:
        return told
    own = {key: member for key, member in value.items() if key != _AGENT_OPTION}
    return value_of(own)


def _printed_contents(span: Span) -> DecodedValue:
    """The text in a result that is a printed list of content objects; absent for any other result."""
    printed = span.attributes.text(_RESULT) or ""
    if not printed.startswith(_PRINTED_CONTENTS):
        return ABSENT
    texts: list[str] = []
    for match in _PRINTED_TEXT.finditer(printed):
        try:
            text = parse_python_literal(match[1])
        except ValueError:
            return ABSENT
        if isinstance(text, str):
            texts.append(text)
    if not texts:
        return ABSENT
    joined = "\n".join(texts)
    return decode_result(joined) if printed.startswith(_PRINTED_CONTENTS[0]) else text_value(joined)


DIALECT: Final = Dialect("semantic_kernel", (_NAME,), _role, _tool, _agent, rank=9)
