"""Envelopes that frameworks put around a tool's result: taken off only where the exact shape is there.

What a tool itself returned must never be taken for an envelope, so the shapes that a tool could well
return are taken off only for dialects that are known to use them.
"""

from typing import Final, NamedTuple

from processors.model import ABSENT, DecodedValue, JsonObject, JsonValue, ToolError, ValueState, decode_result
from processors.shapes.printed_messages import is_pending_result, printed_tool_message, printed_tool_result

CONTENT: Final = 1
"""`{"content": x}`; the text is Python's `str(x)`."""
OUTPUT: Final = 2
"""`{"output": x}`"""
RESPONSE: Final = 4
"""`{"id", "name", "response"}`"""
BLOCKS: Final = 8
"""A list of one `{"text": x}` or `{"json": x}`"""


class OpenedResult(NamedTuple):
    """A result outside its envelopes, and what the envelopes said."""

    result: DecodedValue
    call_id: str = ""
    error: ToolError | None = None


_ENVELOPE_KEYS = frozenset(
    {"choices", "content", "goto", "lc", "messages", "output", "raw_output", "response", "type"}
)
"""An object with none of these keys is no envelope."""
_COMMAND_KEYS = {"goto", "graph", "resume", "update"}
_UPDATE_KEYS = {"messages"}
_BARE_MESSAGE = {"content", "name", "tool_call_id"}
_RAW_OUTPUT_KEYS = {"blocks", "tool_name", "raw_input", "raw_output", "is_error"}
_TOOL_RETURN = {"return_value", "content", "metadata", "kind"}

_PRINTED_FAILURE = " isError=True"
"""How a printed result of a protocol's tool ends where the tool failed."""


def is_bare(value: JsonObject) -> bool:
    """Whether an object surely is in no envelope."""
    return _ENVELOPE_KEYS.isdisjoint(value)


def open_result(decoded: DecodedValue, known: int = 0) -> OpenedResult:
    """Take the envelopes off a decoded result. What is in no envelope comes back as it is.

    Args:
        decoded: The result as it was captured.
        known: The shapes that need a dialect's word and have it: `CONTENT | OUTPUT | RESPONSE | BLOCKS`.
    """
    if decoded.state is not ValueState.PRESENT:
        return OpenedResult(decoded)
    value = decoded.value
    if isinstance(value, dict):
        if is_bare(value):
            return OpenedResult(decoded)
        return _open_object(decoded, value, known)
    if isinstance(value, list) and value:
        text = _text_blocks(value, {"text"} if known & BLOCKS else {"type", "text"})
        if text is not None:
            return OpenedResult(decode_result(text))
        only = value[0]
        if known & BLOCKS and len(value) == 1 and isinstance(only, dict) and only.keys() == {"json"}:
            return OpenedResult(_of(_json_block(only["json"])))
    if isinstance(value, str) and value.startswith("<") and is_pending_result(value):
        return OpenedResult(ABSENT)
    if isinstance(value, str) and value.startswith(("content=", "ToolResult(content=")):
        content = printed_tool_result(value)
        if content is not None:
            return OpenedResult(decode_result(content))
        printed = printed_tool_message(value)
        if printed is not None:
            result = decode_result(printed.content)
            error = ToolError(type="", message=result.text or "") if printed.failed else None
            return OpenedResult(result, printed.call_id, error)
        if value.endswith(_PRINTED_FAILURE):
            return OpenedResult(decoded, error=ToolError(type="", message=value))
    return OpenedResult(decoded)


def _open_object(decoded: DecodedValue, value: JsonObject, known: int) -> OpenedResult:
    keys = value.keys()
    message = _tool_message(value)
    if message is None and keys == _COMMAND_KEYS:
        message = _message_in_update(value["update"])
    elif message is None and keys == _UPDATE_KEYS:
        message = _message_in_update(value)
    if message is not None:
        content = message.get("content")
        opened = open_result(_of(content)).result
        error = ToolError(type="", message=opened.text or "") if message.get("status") == "error" else None
        call_id = message.get("tool_call_id")
        return OpenedResult(opened, call_id if isinstance(call_id, str) else "", error)
    if "choices" in keys and "object" in keys:  # written as what a model would have answered
        answered = _answered_choice(value)
        if answered is not None:
            return answered
    if keys == _RAW_OUTPUT_KEYS:
        opened = _of(value["raw_output"])
        if value["is_error"] is not True:
            return OpenedResult(opened)
        told = None if value["raw_output"] is not None else _text_of_blocks(value["blocks"])
        return OpenedResult(opened, "", ToolError(type="", message=told or opened.text or ""))
    if value.get("type") == "text":  # the only content block of what a tool server answered
        text = _text_blocks([value], {"type", "text"})
        return OpenedResult(decoded if text is None else decode_result(text))
    if value.get("kind") == "tool-return" and keys >= _TOOL_RETURN:
        return OpenedResult(_of(value["return_value"]))
    if "content" in keys and keys <= {"content", "isError", "structuredContent", "_meta", "meta"}:
        content = value["content"]
        text = _text_blocks(content, {"type", "text"}) if isinstance(content, list) and content else None
        if text is not None or "isError" in keys:
            structured = value.get("structuredContent")
            opened = _of(content if text is None else text)
            if structured is not None and not _wraps(structured, opened.value):
                opened = _of(structured)
            failed = value.get("isError") is True
            return OpenedResult(opened, "", ToolError(type="", message=text or "") if failed else None)
        if known & CONTENT and len(keys) == 1:
            return OpenedResult(_of_content(content))
    if known & OUTPUT and keys == {"output"}:
        return open_result(_of(value["output"]))
    if known & RESPONSE and keys == {"id", "name", "response"}:
        call_id = value["id"]
        inner = open_result(_of(value["response"]))
        return inner._replace(call_id=call_id if isinstance(call_id, str) else inner.call_id)
    return OpenedResult(decoded)


def _answered_choice(response: JsonObject) -> OpenedResult | None:
    """What the only message of such a response holds; an empty text is left out of it."""
    choices = response.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict) or message.get("role") != "tool":
        return None
    content = message.get("content") or message.get("content_parts") or ""
    call_id = message.get("tool_id")
    return OpenedResult(_of(content), call_id if isinstance(call_id, str) else "")


def _wraps(structured: JsonValue, told: JsonValue) -> bool:
    """Whether `structured` only makes an object of what the text tells, as servers do with what is none."""
    return isinstance(structured, dict) and structured.keys() == {"result"} and structured["result"] == told


def _tool_message(value: JsonObject) -> JsonObject | None:
    """The fields of a serialised tool message, in either of its two serialisations."""
    data = value.get("data")
    if value.get("type") == "tool" and isinstance(data, dict) and "content" in data:
        return data
    output = value.get("output")
    if len(value) == 1 and isinstance(output, dict):
        value = output
    fields = value.get("kwargs")
    if "lc" in value and isinstance(fields, dict) and "content" in fields:
        return fields
    if value.get("type") == "tool" and "content" in value and "tool_call_id" in value:
        return value
    if value.keys() == _BARE_MESSAGE:
        return value
    return None


def _message_in_update(update: JsonValue) -> JsonObject | None:
    """The tool message that a tool adds to its graph's state, which the model gets as the result."""
    messages = update.get("messages") if isinstance(update, dict) else None
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict):
        return None
    return last if last.get("type") == "tool" and "content" in last else _tool_message(last)


def _json_block(value: JsonValue) -> JsonValue:
    """What a block holds, without the object that is made of a list."""
    if isinstance(value, dict) and value.keys() == {"$value"} and isinstance(value["$value"], list):
        return value["$value"]
    return value


def _text_of_blocks(blocks: JsonValue) -> str | None:
    """The only text in blocks that also tell their own kind."""
    only = blocks[0] if isinstance(blocks, list) and len(blocks) == 1 else None
    text = only.get("text") if isinstance(only, dict) else None
    return text if isinstance(text, str) else None


def _text_blocks(blocks: list[JsonValue], keys: set[str]) -> str | None:
    texts: list[str] = []
    for block in blocks:
        if not isinstance(block, dict) or not keys <= block.keys() <= {
            "type",
            "text",
            "annotations",
            "id",
            "meta",
            "_meta",
        }:
            return None
        text = block["text"]
        if not isinstance(text, str):
            return None
        texts.append(text)
    return "\n".join(texts)


def _of(value: JsonValue) -> DecodedValue:
    return decode_result(value)


def _of_content(content: JsonValue) -> DecodedValue:
    if content is None:
        return DecodedValue("", "", ValueState.PRESENT)
    if isinstance(content, str):
        return decode_result(content)
    return DecodedValue(content, str(content), ValueState.PRESENT)
