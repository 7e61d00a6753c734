"""Envelopes that frameworks put around a tool's result: taken off only where the exact shape is there.

What a tool itself returned must never be taken for an envelope, so the shapes that a tool could well
return are taken off only for dialects that are known to use them.
"""

from typing import Final, NamedTuple

from processors.agent_run import ToolError, ValueState
from processors.json_value import JsonObject, JsonValue
from processors.printed_messages import printed_tool_message
from processors.values import DecodedValue, decode_result

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


_ENVELOPE_KEYS = frozenset({"content", "lc", "output", "raw_output", "response", "type"})
"""An object with none of these keys is no envelope."""
_RAW_OUTPUT_KEYS = {"blocks", "tool_name", "raw_input", "raw_output", "is_error"}


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
        if _ENVELOPE_KEYS.isdisjoint(value):
            return OpenedResult(decoded)
        return _open_object(decoded, value, known)
    if isinstance(value, list) and value:
        text = _text_blocks(value, {"text"} if known & BLOCKS else {"type", "text"})
        if text is not None:
            return OpenedResult(decode_result(text))
        only = value[0]
        if known & BLOCKS and len(value) == 1 and isinstance(only, dict) and only.keys() == {"json"}:
            return OpenedResult(_of(only["json"]))
    if isinstance(value, str) and value.startswith("content="):
        printed = printed_tool_message(value)
        if printed is not None:
            result = decode_result(printed.content)
            error = ToolError(type="", message=result.text or "") if printed.failed else None
            return OpenedResult(result, printed.call_id, error)
    return OpenedResult(decoded)


def _open_object(decoded: DecodedValue, value: JsonObject, known: int) -> OpenedResult:
    keys = value.keys()
    message = _tool_message(value)
    if message is not None:
        content = message.get("content")
        opened = open_result(_of(content)).result
        error = ToolError(type="", message=opened.text or "") if message.get("status") == "error" else None
        call_id = message.get("tool_call_id")
        return OpenedResult(opened, call_id if isinstance(call_id, str) else "", error)
    if keys == _RAW_OUTPUT_KEYS:
        opened = _of(value["raw_output"])
        failed = value["is_error"] is True
        return OpenedResult(opened, "", ToolError(type="", message=opened.text or "") if failed else None)
    if "content" in keys and keys <= {"content", "isError", "structuredContent", "_meta", "meta"}:
        content = value["content"]
        text = _text_blocks(content, {"type", "text"}) if isinstance(content, list) and content else None
        if text is not None or "isError" in keys:
            structured = value.get("structuredContent")
            opened = _of(structured) if structured is not None else _of(content if text is None else text)
            failed = value.get("isError") is True
            return OpenedResult(opened, "", ToolError(type="", message=text or "") if failed else None)
        if known & CONTENT and len(keys) == 1:
            return OpenedResult(_of_content(content))
    if known & OUTPUT and keys == {"output"}:
        return OpenedResult(_of(value["output"]))
    if known & RESPONSE and keys == {"id", "name", "response"}:
        call_id = value["id"]
        return OpenedResult(_of(value["response"]), call_id if isinstance(call_id, str) else "")
    return OpenedResult(decoded)


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
    return None


def _text_blocks(blocks: list[JsonValue], keys: set[str]) -> str | None:
    texts: list[str] = []
    for block in blocks:
        if not isinstance(block, dict) or not keys <= block.keys() <= {
            "type",
            "text",
            "annotations",
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
