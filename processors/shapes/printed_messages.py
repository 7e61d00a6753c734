"""Chat messages that an instrumentation recorded as Python prints the objects of a framework.

Only the texts in them can be read, and only where the printed form leaves no doubt which text it is.
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from processors.model import JsonValue, parse_python_literal
from processors.shapes.members import object_at
from processors.shapes.messages import PRINTED_ITEMS, CallRequest, ChatMessage, read_model_response

QUOTED: Final = r"""(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
"""A text as Python prints it."""
_CHAT_MESSAGE = re.compile(rf"id='.* content={QUOTED} type='TextMessage'\s*", re.DOTALL)
_TOOL_CONTENT = re.compile(rf"content={QUOTED}")
_BEFORE_CALL_ID = (" additional_kwargs=", " response_metadata=", " name='", " id='", " tool_call_id='")
_STATUS = re.compile(r" status='(\w+)'")
_OUTPUT_ITEM = re.compile(r"Response[A-Z]\w*\(")
_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_OUTPUT_CALL = re.compile(
    rf"ResponseFunctionToolCall\(arguments=({_STRING}), call_id=({_STRING}), name=({_STRING}), type="
)
_TOOL_RESULT = re.compile(
    rf"ToolResult\(content={QUOTED}, metadata=.*, files=.*\)"
    rf"|content={QUOTED.replace('text', 'bare')} metadata=.* files=.*",
    re.DOTALL,
)
_PROTOCOL_RESULT = re.compile(r"(?:CallToolResult\()?(?:_?meta=None,? )?content=\[")
_TEXT_BLOCK = re.compile(
    rf"TextContent\(type='text', text=({_STRING})(?:, _?(?:annotations|meta)=None){{,2}}\)(?:, )?"
)
_OUTCOME = re.compile(r".*[ ,]is_?[eE]rror=(True|False)(?:,? result_?[tT]ype='\w*')?\)?", re.DOTALL)
_LONGEST_OUTCOME = 80
"""Characters at the end of a printed result in which its outcome stands."""
_PENDING_RESULT = re.compile(r"<(?:(?:async_)?generator|coroutine) object [^\n]* at 0x[0-9a-fA-F]+>")
_PRINTED_STEPS = (
    "ActionOutput(", "ActionStep(", "ChatMessageStreamDelta(", "FinalAnswerStep(", "PlanningStep(",
    "ToolCall(", "ToolOutput(",
)  # fmt: skip
_LAST_STEP = "FinalAnswerStep(output="
_FULL_RESULT = re.compile(rf"RunResult\(output={QUOTED}, state='\w+', ", re.DOTALL)


def last_printed_message(messages: Sequence[JsonValue]) -> str | None:
    """The text of the last message, if it is a printed text message."""
    last = messages[-1] if messages else None
    return printed_text(_CHAT_MESSAGE.fullmatch(last)) if isinstance(last, str) else None


def printed_tool_message(text: str) -> tuple[str, str, bool] | None:
    """The result, the call's id and whether it failed, if `text` is a printed message of a tool."""
    match = _TOOL_CONTENT.match(text)
    content = printed_text(match)
    if match is None or content is None:
        return None
    # The fields in between hold whatever data there was, so the id is looked for from the end.
    fields = text[match.end() :]
    _, result, after = fields.rpartition(" tool_call_id='")
    call_id, quote, rest = after.partition("'")
    if not (result and quote and fields.startswith(_BEFORE_CALL_ID)):
        return None
    status = _STATUS.fullmatch(rest[rest.rfind(" status='") :]) if " status='" in rest else None
    if rest and status is None and not rest.startswith(" artifact="):
        return None
    return content, call_id, status is not None and status[1] == "error"


def printed_tool_result(text: str) -> str | None:
    """The content of a printed tool result with its media next to it; None for any other text."""
    match = _TOOL_RESULT.fullmatch(text)
    return None if match is None else _literal_text(match["text"] or match["bare"]) or ""


def printed_protocol_result(text: str) -> tuple[str, bool] | None:
    """The texts in a printed result by the Model Context Protocol, and whether it failed; else None.

    A result that holds anything but texts is its printed form.
    """
    begun = _PROTOCOL_RESULT.match(text)
    outcome = _OUTCOME.fullmatch(text[-_LONGEST_OUTCOME:])
    if begun is None or outcome is None:
        return None
    end, texts = begun.end(), []
    while block := _TEXT_BLOCK.match(text, end):
        end = block.end()
        texts.append(_literal_text(block[1]) or "")
    is_whole = texts and text.startswith("]", end)
    return "\n".join(texts) if is_whole else text, outcome[1] == "True"


def is_pending_result(text: str) -> bool:
    """Whether `text` is a printed object whose result is still to be produced."""
    return _PENDING_RESULT.fullmatch(text) is not None


def opened_answer(message: ChatMessage) -> ChatMessage:
    """A model's message in which each printed object of the provider's response is what it stands for.

    The printed objects are calls that the model requests, messages and whole responses; any other item of a
    response has no meaning here. What is no printed object is the model's own text.
    """
    if not message.text.startswith(PRINTED_ITEMS):
        return message
    opened = replace(message, text="", requests=list(message.requests))
    texts: list[str] = []
    for line in message.text.split("\n"):  # printed objects have no line breaks
        call = _OUTPUT_CALL.match(line)
        if call is not None:
            arguments, call_id, name = (_literal_text(quoted) or "" for quoted in call.groups())
            opened.requests.append(CallRequest(name, call_id, arguments, has_arguments=True))
            continue
        if _OUTPUT_ITEM.match(line) and " type='" in line and line.endswith(")"):
            continue
        printed = _printed_response(line)
        if printed is None:
            texts.append(line)
            continue
        for part in printed:
            opened.requests.extend(part.requests)
            if part.text:
                texts.append(part.text)
    opened.text = "\n".join(texts)
    return opened


def _printed_response(text: str) -> list[ChatMessage] | None:
    """The messages in a printed response or message of a provider; None for any other text."""
    value = object_at(printed_value(text)) if text.startswith("{'") else {}
    is_response = value.get("object") in ("response", "chat.completion")
    is_message = value.get("role") == "assistant" and ("content" in value or "tool_calls" in value)
    return read_model_response(value) if is_response or is_message else None


def answer_in_printed_steps(text: str) -> JsonValue:
    """The answer in the printed steps or the full result of a run; None where `text` is neither."""
    match = _FULL_RESULT.match(text)
    if match is not None:
        return printed_text(match)
    begins = text.rfind(_LAST_STEP)
    if begins < 0 or not text.startswith(_PRINTED_STEPS) or not text.endswith(")"):
        return None
    return printed_value(text[begins + len(_LAST_STEP) : -1])


def printed_text(match: re.Match[str] | None) -> str | None:
    """The text that the group `text` of a match of `QUOTED` writes; None for no match and for no text."""
    return None if match is None else _literal_text(match["text"])


def _literal_text(quoted: str) -> str | None:
    text = printed_value(quoted)
    return text if isinstance(text, str) else None


def printed_value(printed: str) -> JsonValue:
    """The value that Python prints so; None where it is none of plain data."""
    try:
        return parse_python_literal(printed)
    except ValueError:
        return None
