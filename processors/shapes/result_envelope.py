"""Envelopes that frameworks put around a tool's result: taken off only where the exact shape is there.

What a tool itself returned must never be taken for an envelope, so the shapes that a tool could well
return are taken off only for dialects that are known to use them.
"""

import re
from typing import Final, NamedTuple

from processors.model import ABSENT, DecodedValue, JsonObject, JsonValue, ToolError, ValueState, decode_result
from processors.shapes.members import failure, list_at, object_at, text_at, value_at
from processors.shapes.printed_messages import (
    is_pending_result,
    printed_protocol_result,
    printed_tool_message,
    printed_tool_result,
)

CONTENT: Final = 1
"""`{"content": x}`; the text is Python's `str(x)`."""
OUTPUT: Final = 2
"""`{"output": x}`"""
RESPONSE: Final = 4
"""`{"id", "name", "response"}`"""
BLOCKS: Final = 8
"""A list of one `{"text": x}` or `{"json": x}`"""


class OpenedResult(NamedTuple):
    """A result outside its envelopes, and what the envelopes held."""

    result: DecodedValue
    call_id: str = ""
    error: ToolError | None = None


_ENVELOPE_KEYS = frozenset(
    {"choices", "content", "goto", "jsonrpc", "lc", "messages", "output", "raw_output", "response", "type"}
)
"""An object with none of these keys is no envelope."""
_COMMAND_KEYS = {"goto", "graph", "resume", "update"}
_UPDATE_KEYS = {"messages"}
_BARE_MESSAGE = {"content", "name", "tool_call_id"}
_RAW_OUTPUT_KEYS = {"blocks", "tool_name", "raw_input", "raw_output", "is_error"}
_TOOL_RETURN = {"return_value", "content", "metadata", "kind"}

_RESPONSE_KEYS = {"jsonrpc", "id", "result"}
_BLOCK_KEYS = {"type", "text", "annotations", "id", "meta", "_meta"}

_PROTOCOL_KEYS = {
    "content", "isError", "is_error", "structuredContent", "structured_content", "_meta", "meta",
    "resultType", "result_type",
}  # fmt: skip
"""A result by the Model Context Protocol, in the spelling of the protocol or of its SDK for Python."""
_RAISED = re.compile(
    r"An error occurred while running the tool\. Please try again\. Error: "  # OpenAI Agents
    r"|I encountered an error while trying to use the tool\. This was the error: "  # CrewAI
    r"|An error occurred while invoking the function [\w-]+: "  # Semantic Kernel
    r"|Tool with name '[^'\n]{1,200}' failed to execute due to the error: "  # Koog
    r"|Failed to invoke Tool `[^`\n]{1,200}` "  # Haystack
    r"|Encountered error: "  # LlamaIndex
    r"|tool invoke error: "  # Dify
    r"|There was an error: \"[^\n]*\"$"  # n8n
)
"""How the text begins that frameworks give a model in place of a result where the tool raised an error."""
_PRINTED_RESULTS = ("content=", "ToolResult(content=", "meta=", "_meta=", "CallToolResult(")


def is_bare(value: JsonObject) -> bool:
    """Whether an object surely is in no envelope."""
    return _ENVELOPE_KEYS.isdisjoint(value)


def open_result(decoded: DecodedValue, known: int = 0) -> OpenedResult:
    """Take the envelopes off a decoded result. What is in no envelope is returned as it is.

    Args:
        decoded: The result as it was captured.
        known: The shapes that only a dialect can know and does: `CONTENT | OUTPUT | RESPONSE | BLOCKS`.
    """
    value = decoded.value
    if isinstance(value, dict):
        return OpenedResult(decoded) if is_bare(value) else _open_object(decoded, value, known)
    if isinstance(value, list) and value:
        text = _text_blocks(value, {"text"} if known & BLOCKS else {"type", "text"})
        if text is not None:
            return OpenedResult(decode_result(text))
        if known & BLOCKS and len(value) == 1 and object_at(value, 0).keys() == {"json"}:
            block = value_at(value, 0, "json")
            wrapped = object_at(block)  # an object around what is a list
            is_wrapped = wrapped.keys() == {"$value"} and isinstance(wrapped["$value"], list)
            return OpenedResult(decode_result(wrapped["$value"] if is_wrapped else block))
    if not isinstance(value, str):
        return OpenedResult(decoded)
    if value.startswith("<") and is_pending_result(value):
        return OpenedResult(ABSENT)
    if value.startswith(_PRINTED_RESULTS):
        protocol_result = printed_protocol_result(value)
        if protocol_result is not None:
            text, has_failed = protocol_result
            return OpenedResult(decode_result(text), error=failure(text) if has_failed else None)
        content = printed_tool_result(value)
        if content is not None:
            return OpenedResult(decode_result(content))
        printed = printed_tool_message(value)
        if printed is not None:
            content, call_id, has_failed = printed
            result = decode_result(content)
            return OpenedResult(result, call_id, failure(result.text) if has_failed else None)
    if _RAISED.match(value):
        return OpenedResult(decoded, error=failure(value))
    return OpenedResult(decoded)


def _open_object(decoded: DecodedValue, value: JsonObject, known: int) -> OpenedResult:
    keys = value.keys()
    message = _tool_message(value)
    if message is None and keys in (_COMMAND_KEYS, _UPDATE_KEYS):
        # The message that a tool adds to its graph's state, which the model gets as the result.
        messages = list_at(value["update"] if keys == _COMMAND_KEYS else value, "messages")
        last = object_at(messages[-1]) if messages else {}
        message = last if last.get("type") == "tool" and "content" in last else _tool_message(last)
    if message is not None:
        result = open_result(decode_result(message.get("content"))).result
        error = failure(result.text) if message.get("status") == "error" else None
        return OpenedResult(result, text_at(message, "tool_call_id"), error)
    if "choices" in keys and "object" in keys:  # written as what a model would have answered
        answered = value_at(value, "choices", 0, "message") if len(list_at(value, "choices")) == 1 else None
        if isinstance(answered, dict) and answered.get("role") == "tool":
            # Empty ones are left out.
            shown = answered.get("content") or answered.get("content_parts") or ""
            return OpenedResult(decode_result(shown), text_at(answered, "tool_id"))
    if keys == _RAW_OUTPUT_KEYS:
        opened = open_result(decode_result(value["raw_output"]))
        result = opened.result
        if value["is_error"] is not True:
            return opened
        is_only = value["raw_output"] is None and len(list_at(value, "blocks")) == 1
        return OpenedResult(
            result, error=failure((text_at(value, "blocks", 0, "text") if is_only else "") or result.text)
        )
    if keys == _RESPONSE_KEYS:  # a whole response of a server
        return open_result(decode_result(value["result"]))
    if value.get("type") == "text":  # the only content block of what a tool server answered
        text = _text_blocks([value], {"type", "text"})
        return OpenedResult(decoded if text is None else decode_result(text))
    if value.get("kind") == "tool-return" and keys >= _TOOL_RETURN:
        return OpenedResult(decode_result(value["return_value"]))
    if "content" in keys and keys <= _PROTOCOL_KEYS:
        content: JsonValue = value["content"]
        text = _text_blocks(content, {"type", "text"}) if isinstance(content, list) and content else None
        has_failed = value.get("isError", value.get("is_error"))
        if text is not None or has_failed is not None:
            structured: JsonValue = value.get("structuredContent", value.get("structured_content"))
            result = decode_result(content if text is None else text)
            # Servers make an object with one member of what is none.
            if structured is not None and structured != {"result": result.value}:
                result = decode_result(structured)
            return OpenedResult(result, error=failure(text) if has_failed is True else None)
        if known & CONTENT and len(keys) == 1:
            if isinstance(content, str):
                return OpenedResult(decode_result(content))
            content = "" if content is None else content
            return OpenedResult(DecodedValue(content, str(content), ValueState.PRESENT))
    if known & OUTPUT and keys == {"output"}:
        return open_result(decode_result(value["output"]))
    if known & RESPONSE and keys == {"id", "name", "response"}:
        call_id = value["id"]
        inner = open_result(decode_result(value["response"]))
        return inner._replace(call_id=call_id if isinstance(call_id, str) else inner.call_id)
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
    is_message = value.get("type") == "tool" and "content" in value and "tool_call_id" in value
    return value if is_message or value.keys() == _BARE_MESSAGE else None


def _text_blocks(blocks: list[JsonValue], keys: set[str]) -> str | None:
    """The text of blocks that all have these keys, and no others but metadata; None for other blocks."""
    texts = [
        text
        for block in blocks
        if isinstance(block, dict)
        and keys <= block.keys() <= _BLOCK_KEYS
        and isinstance(text := block["text"], str)
    ]
    return "\n".join(texts) if len(texts) == len(blocks) else None
