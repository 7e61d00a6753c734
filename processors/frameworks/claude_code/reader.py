"""Claude Code, and the Claude Agent SDK that runs it: spans named `claude_code.*`, bare attribute names."""

from typing import Final

from processors.frameworks.claude_code.sub_agents import AGENT_TOOLS, SUB_AGENT
from processors.frameworks.dialect import AgentReading, SpanRole, ToolReading
from processors.frameworks.shapes.attribute_reading import better, first_arguments, first_text
from processors.frameworks.shapes.mapped_dialect import MappedDialect
from processors.frameworks.shapes.result_envelope import open_result
from processors.model import (
    ABSENT,
    REDACTION_MARKERS,
    DecodedValue,
    JsonObject,
    ToolError,
    ValueState,
    decode_result,
    text_value,
    value_of,
)
from processors.spans import Attributes, Span

_PREFIX = "claude_code."
_EXECUTION = "claude_code.tool.execution"
_ROLES = {
    "claude_code.interaction": SpanRole.AGENT,
    "claude_code.llm_request": SpanRole.MODEL,
    "claude_code.tool": SpanRole.TOOL,
    _EXECUTION: SpanRole.TOOL,
}
_DETAILS = {
    "full_command": "command", "file_path": "file_path", "skill_name": "skill", SUB_AGENT: SUB_AGENT
}  # fmt: skip
"""What the span of a call tells of its arguments, and what the tool calls them."""
_OUTPUT_KEYS = ("output", "content", "diff")


def _role(span: Span) -> SpanRole | None:
    name = span.name
    return _ROLES.get(name, SpanRole.OTHER) if name.startswith(_PREFIX) else None


def _tool(span: Span) -> ToolReading:
    attributes = span.attributes
    if span.name == _EXECUTION:
        failed = attributes.get("success") in (False, "false")
        message = first_text(attributes, ("error",))
        return ToolReading(error=ToolError(type="", message=message) if failed else None, is_part=True)
    result = open_result(_output(span))
    return ToolReading(
        name=first_text(attributes, ("tool_name",)),
        call_id=first_text(attributes, ("tool_use_id", "gen_ai.tool.call.id")),
        arguments=better(first_arguments(attributes, ("tool_input",)), _details(attributes)),
        result=result.result,
        error=result.error,
        runs_agent=SUB_AGENT in attributes or attributes.get("tool_name") in AGENT_TOOLS,
    )


def _agent(span: Span) -> AgentReading:
    attributes = span.attributes
    asked = decode_result(attributes.get("user_prompt")) if "user_prompt" in attributes else ABSENT
    if asked.state is ValueState.PRESENT:
        asked = text_value(asked.text)
    return AgentReading(
        name=_name_of_sub_agent(attributes), session=first_text(attributes, ("session.id",)), input=asked
    )


def _name_of_sub_agent(attributes: Attributes) -> str:
    """The kind of agent that a call started, which is its name; empty for the interaction itself."""
    name = first_text(attributes, (SUB_AGENT,))
    return "" if name in REDACTION_MARKERS else name


def _details(attributes: Attributes) -> DecodedValue:
    """What the span tells of the arguments besides the arguments themselves."""
    told: JsonObject = {}
    is_redacted = False
    for key, name in _DETAILS.items():
        detail = attributes.text(key)
        if detail is not None and detail.strip() in REDACTION_MARKERS:
            is_redacted = True
        elif detail is not None:
            told[name] = detail
    if told:
        return value_of(told)
    return DecodedValue(None, "", ValueState.REDACTED) if is_redacted else ABSENT


def _output(span: Span) -> DecodedValue:
    found = ABSENT
    for event in span.events if span.has_events else ():
        if event.name == "tool.output":
            for key in _OUTPUT_KEYS:
                if event.attributes.get(key) not in (None, ""):
                    found = better(found, decode_result(event.attributes.get(key)))
    return found


DIALECT: Final = MappedDialect(
    name="claude_code",
    rank=5,
    keys=("span.type", "tool_name", "user_prompt"),
    role=_role,
    tool=_tool,
    agent=_agent,
)
