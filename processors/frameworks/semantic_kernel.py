"""Semantic Kernel: its spans of functions, which follow the GenAI conventions but for a few things.

Every function of a kernel has such a span, and prompts are functions too; results are Python's text of a
value, also of the kernel's own content objects.
"""

import re

from processors.model import ABSENT, CallCategory, DecodedValue, decode_result, text_value, value_of
from processors.shapes.attribute_reading import first_arguments, first_text
from processors.shapes.dialect import AgentReading, Dialect, SpanRole, ToolReading
from processors.shapes.members import object_at
from processors.shapes.printed_messages import QUOTED, printed_text
from processors.spans import Span

_DOTNET_SCOPE = "Microsoft.SemanticKernel"
_DRAWN_NAME = re.compile(r"_[0-9a-f]{32}\Z")
_NAME = "gen_ai.tool.name"
_RESULT = "gen_ai.tool.call.result"
_AGENT_OPTION = "instructions_override"
_PRINTED_CONTENTS = ("[TextContent(", "[ChatMessageContent(")
_PRINTED_TEXT = re.compile(rf"content_type='text', text={QUOTED}, encoding=", re.DOTALL)


def _role(span: Span) -> SpanRole | None:
    is_function = span.envelope.scope_name in ("semantic_kernel.functions.kernel_function", _DOTNET_SCOPE)
    return SpanRole.TOOL if is_function else None


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
    """Whether the function is a prompt that the program runs: one of no plugin that no model requested."""
    if span.envelope.scope_name == _DOTNET_SCOPE:  # names functions alone; prompts get a random name
        return _DRAWN_NAME.search(name) is not None
    return "-" not in name and "gen_ai.tool.call.id" not in span.attributes


def _own_arguments(arguments: DecodedValue) -> DecodedValue:
    """The arguments without the option that an agent used as a plugin hands on to all that runs in it."""
    value = object_at(arguments.value)
    if _AGENT_OPTION not in value or "messages" in value:
        return arguments
    return value_of({key: member for key, member in value.items() if key != _AGENT_OPTION})


def _printed_contents(span: Span) -> DecodedValue:
    """The text in a result that is a printed list of content objects; absent for any other result."""
    printed = span.attributes.text(_RESULT) or ""
    if not printed.startswith(_PRINTED_CONTENTS):
        return ABSENT
    texts: list[str] = []
    for match in _PRINTED_TEXT.finditer(printed):
        text = printed_text(match)
        if text is None:
            return ABSENT
        texts.append(text)
    if not texts:
        return ABSENT
    joined = "\n".join(texts)
    return decode_result(joined) if printed.startswith(_PRINTED_CONTENTS[0]) else text_value(joined)


DIALECT = Dialect("semantic_kernel", (_NAME,), _role, _tool, _agent, rank=9)
