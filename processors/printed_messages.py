"""Chat messages that an instrumentation recorded as Python prints the objects of a framework.

Only the texts in them can be read, and only where the printed form leaves no doubt which text it is.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from processors.json_value import JsonValue
from processors.python_literal import parse_python_literal

_QUOTED = r"""(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_CHAT_MESSAGE = re.compile(rf"id='.* content={_QUOTED} type='TextMessage'\s*", re.DOTALL)
_TEXT_BLOCK = re.compile(rf"TextBlock\(block_type='text', text={_QUOTED}\)")
_STEP_AGENT = re.compile(r"current_agent_name='([^'\"\\]+)'\)(?:\"\})?")
_TOOL_CONTENT = re.compile(rf"content={_QUOTED}")
_BEFORE_CALL_ID = (" additional_kwargs=", " response_metadata=", " name='", " id='", " tool_call_id='")
_CALL_ID = " tool_call_id='"
_STATUS = re.compile(r" status='(\w+)'")
_STEP_AGENT_LENGTH = 300
_RUN_RESULT = "StopEvent(result=AgentOutput("


class PrintedToolMessage(NamedTuple):
    """What the printed message with a tool's result tells."""

    content: str
    call_id: str
    failed: bool


def last_printed_message(messages: Sequence[JsonValue]) -> str | None:
    """The text of the last message, if it is a printed text message."""
    last = messages[-1] if messages else None
    return _text(_CHAT_MESSAGE.fullmatch(last)) if isinstance(last, str) else None


def printed_tool_message(text: str) -> PrintedToolMessage | None:
    """The printed message that carries a tool's result, if `text` is one."""
    match = _TOOL_CONTENT.match(text)
    content = _text(match)
    if match is None or content is None:
        return None
    # The fields in between hold whatever data there was, so the id is looked for from the end.
    fields = text[match.end() :]
    _, found, after = fields.rpartition(_CALL_ID)
    call_id, quote, rest = after.partition("'")
    if not (found and quote and fields.startswith(_BEFORE_CALL_ID)):
        return None
    status = _STATUS.fullmatch(rest[rest.rfind(" status='") :]) if " status='" in rest else None
    if rest and status is None and not rest.startswith(" artifact="):
        return None
    return PrintedToolMessage(content, call_id, status is not None and status[1] == "error")


def is_printed_result(text: str) -> bool:
    """Whether `text` is the printed outcome of an agent's run, and no text that a model wrote."""
    return text.startswith(_RUN_RESULT)


def answer_in_printed_result(text: str) -> str | None:
    """The answer in the printed outcome of an agent's run; None where it was cut off."""
    return _text(_TEXT_BLOCK.search(text))


def agent_in_printed_step(text: str) -> str:
    """The name of the agent with which the printed object of a step ends, or the empty text."""
    tail = text[-_STEP_AGENT_LENGTH:]
    match = _STEP_AGENT.fullmatch(tail, max(tail.rfind("current_agent_name="), 0))
    return "" if match is None else match[1]


def _text(match: re.Match[str] | None) -> str | None:
    if match is None:
        return None
    try:
        value = parse_python_literal(match["text"])
    except ValueError:
        return None
    return value if isinstance(value, str) else None
