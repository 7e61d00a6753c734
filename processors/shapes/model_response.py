"""The answer of a model as providers and frameworks return it, as messages."""

from processors.model import JsonValue, json_value, parse_text
from processors.shapes.messages import ChatMessage, read_messages, said
from processors.spans import AttributeValue

_ANSWERS = ("choices", "candidates", "generations", "output")
"""Where a response holds what the model answered."""


def read_model_response(value: "AttributeValue | JsonValue") -> list[ChatMessage]:
    """The messages in a response: its choices, candidates, generations or output items, or it is a message.

    Text that is no data is the answer itself. Never raises.
    """
    content: JsonValue
    if isinstance(value, str):
        try:
            content = parse_text(value.strip())
        except ValueError:
            content = value
    else:
        content = json_value(value)
    if isinstance(content, list) and len(content) == 1 and _is_response(content[0]):
        content = content[0]
    if not isinstance(content, dict):
        return read_messages(content, "assistant")
    calls = content.get("toolCalls")
    if isinstance(calls, list):
        text = content.get("text")
        return said(text if isinstance(text, str) else "", calls)
    for key in _ANSWERS:
        items = content.get(key)
        if isinstance(items, dict):
            return read_model_response(items)
        if isinstance(items, list):
            return read_messages([_message_of(item) for item in _flat(items)], "assistant")
    return read_messages(content, "assistant")


def _is_response(item: JsonValue) -> bool:
    return isinstance(item, dict) and any(isinstance(item.get(key), list) for key in _ANSWERS)


def _flat(items: list[JsonValue]) -> list[JsonValue]:
    """A list of lists, as generations of several prompts are, without the inner lists."""
    flat: list[JsonValue] = []
    for item in items:
        flat.extend(item if isinstance(item, list) else [item])
    return flat


def _message_of(item: JsonValue) -> JsonValue:
    """The message in a choice, a candidate or a generation."""
    if not isinstance(item, dict):
        return item
    for key in ("message", "content"):
        inner = item.get(key)
        if isinstance(inner, dict):
            return inner
    text = item.get("text")
    return text if isinstance(text, str) and "role" not in item and "type" not in item else item
