"""Haystack's chat messages as Python prints them, which is how OpenInference records them."""

import re
from collections.abc import Iterator
from typing import Final

from processors.frameworks.shapes.messages import MAX_MESSAGES, ChatMessage, read_message
from processors.model import JsonObject, JsonValue, parse_python_literal

_ROLE = re.compile(r"ChatMessage\(_role=<ChatRole\.\w+: '(?P<role>\w+)'>, _content=\[")
PRINTED_CHAT: Final = "ChatMessage(_role=<ChatRole."
"""How a printed message begins."""
_STRING = r"'[^'\\]*+(?:\\.?[^'\\]*+)*+(?:'|\Z)|\"[^\"\\]*+(?:\\.?[^\"\\]*+)*+(?:\"|\Z)"
"""A text as Python prints it, or one that was cut off: what matches always keeps the search linear."""
_BRACKET = re.compile(rf"{_STRING}|(?P<open>[\[({{])|(?P<close>[\])}}])", re.DOTALL)
_OBJECT = re.compile(
    rf"(?P<text>{_STRING})|\b[A-Z]\w*+(?P<open>\()|(?P<close>\))|\b(?P<key>\w++)=", re.DOTALL
)
_MAX_DEPTH = 8
"""How deep in what a component was given or made its messages are looked for."""


def printed_chat(value: JsonValue) -> list[ChatMessage]:
    """All printed messages in what a component or a pipeline was given or made, in order."""
    return [message for message in map(_read, _printed(value, 0)) if message is not None]


def _printed(value: JsonValue, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if value.startswith(PRINTED_CHAT):
            yield value
    elif depth < _MAX_DEPTH:
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for item in list(items)[:MAX_MESSAGES]:
            yield from _printed(item, depth + 1)


def _read(printed: str) -> ChatMessage | None:
    """The message that `printed` writes; None where its content cannot be read, as it was cut off."""
    match = _ROLE.match(printed)
    if match is None:
        return None
    depth = 1
    for bracket in _BRACKET.finditer(printed, match.end()):
        depth += (bracket["open"] is not None) - (bracket["close"] is not None)
        if depth == 0:
            break
    else:
        return None
    try:
        parts = parse_python_literal(_OBJECT.sub(_as_literal, printed[match.end() - 1 : bracket.end()]))
    except ValueError:
        return None
    told = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    for part in told:
        if "origin" in part:
            return read_message(_result(part), "tool")
    content: list[JsonValue] = [{"tool_call": part} if "tool_name" in part else part for part in told]
    return read_message({"role": match["role"], "content": content}, "user")


def _as_literal(match: re.Match[str]) -> str:
    """A piece of a printed object as that of a dict of its fields."""
    if match["text"]:
        return match["text"]
    return "{" if match["open"] else "}" if match["close"] else f"'{match['key']}': "


def _result(part: JsonObject) -> JsonObject:
    origin = part.get("origin")
    asked = origin if isinstance(origin, dict) else {}
    return {
        "role": "tool",
        "tool_call_id": asked.get("id"),
        "name": asked.get("tool_name"),
        "content": part.get("result"),
        "is_error": part.get("error"),
    }
