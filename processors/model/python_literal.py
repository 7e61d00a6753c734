"""Python literals as JSON values: the texts that `str()` and `repr()` of plain data leave in telemetry.

A parser of its own because the interpreter's is no match for foreign text: it warns, and it runs out of
stack. This one is linear in the text and bounded in depth.
"""

import re
from itertools import pairwise

from processors.model.json_values import JsonValue

MAX_LENGTH = 64 * 1024
MAX_DEPTH = 100

_TOKEN = re.compile(
    r"""
    [ \t\r\n\f]*
    (?:
      (?P<punctuation>[][(){},:])
    | (?P<text>
        [rRbBuU]{0,2}
        (?: '''(?:[^\\']|\\.|'(?!''))*'''
          | \"\"\"(?:[^\\"]|\\.|"(?!""))*\"\"\"
          | '[^'\\\n]*(?:\\.[^'\\\n]*)*'
          | "[^"\\\n]*(?:\\.[^"\\\n]*)*"
        )
      )
    | (?P<number>[+-]?[ \t]*(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+
        |(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?(?:[jJ]|[ \t]*[+-][ \t]*[0-9.]+[jJ])?))
    | (?P<name>True|False|None|-?inf|nan|\.\.\.)(?![A-Za-z0-9_])
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(\r\n|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "\n": "", "\r\n": "",
}  # fmt: skip
_NAMES: dict[str, JsonValue] = {
    "True": True, "False": False, "None": None, "...": "...", "nan": "NaN", "inf": "Infinity",
    "-inf": "-Infinity",
}  # fmt: skip


def parse_python_literal(text: str) -> JsonValue:
    """The value that `text` writes as a Python literal.

    Dicts (keys must be texts), lists, texts, numbers, `True`, `False` and `None` are what they are; tuples
    and sets become lists in written order; bytes and complex numbers become their source text, numbers that
    JSON has no form for `NaN`, `Infinity` and `-Infinity`.

    Raises:
        ValueError: `text` is no such literal, is longer than 64 KiB, or is nested deeper than 100.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError("literal too long")
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._kind = ""
        self._token = ""
        self._advance()

    def parse(self) -> JsonValue:
        value = self._value(0)
        if self._token == ",":  # a tuple may stand without brackets
            items = [value]
            while self._token == ",":
                self._advance()
                if self._kind:
                    items.append(self._value(0))
            value = items
        if self._kind:
            raise ValueError("text after the literal")
        return value

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            if self._text[self._position :].strip():
                raise ValueError("no literal")
            self._kind = self._token = ""
            return
        self._kind = match.lastgroup or ""
        self._token = match[self._kind]
        self._position = match.end()

    def _take(self, token: str) -> bool:
        if self._token == token and self._kind == "punctuation":
            self._advance()
            return True
        return False

    def _value(self, depth: int) -> JsonValue:
        if depth > MAX_DEPTH:
            raise ValueError("literal nested too deep")
        kind, token = self._kind, self._token
        self._advance()
        if kind == "text":
            value = _text(token)
            while self._kind == "text":  # neighbouring texts are one text
                value += _text(self._token)
                self._advance()
            return value
        if kind == "number":
            return _number(token)
        if kind == "name":
            return _NAMES[token]
        if token == "[":
            return self._items("]", depth)[0]
        if token == "(":
            items, commas = self._items(")", depth)
            return items[0] if len(items) == 1 and not commas else items
        if token == "{":
            return self._braces(depth)
        raise ValueError("no literal")

    def _items(self, closer: str, depth: int) -> tuple[list[JsonValue], int]:
        items: list[JsonValue] = []
        commas = 0
        while not self._take(closer):
            items.append(self._value(depth + 1))
            if self._take(","):
                commas += 1
            elif self._token != closer:
                raise ValueError("comma expected")
        return items, commas

    def _braces(self, depth: int) -> JsonValue:
        if self._take("}"):
            return {}
        first = self._value(depth + 1)
        if not self._take(":"):
            rest: list[JsonValue] = []
            if self._take(","):
                rest = self._items("}", depth)[0]
            elif not self._take("}"):
                raise ValueError("comma expected")
            if any(isinstance(item, (list, dict)) for item in (first, *rest)):
                raise ValueError("unhashable member of a set")
            return [first, *rest]
        entries: dict[str, JsonValue] = {}
        key = first
        while True:
            if not isinstance(key, str):
                raise ValueError("key is no text")
            entries[key] = self._value(depth + 1)
            if not self._take(","):
                if not self._take("}"):
                    raise ValueError("comma expected")
                return entries
            if self._take("}"):
                return entries
            key = self._value(depth + 1)
            if not self._take(":"):
                raise ValueError("colon expected")


def _text(token: str) -> str:
    start = min(position for position in (token.find("'"), token.find('"')) if position >= 0)
    prefix = token[:start].lower()
    if "b" in prefix:
        return token
    quotes = 3 if len(token) >= start + 6 and token[start : start + 3] == token[start] * 3 else 1
    body = token[start + quotes : len(token) - quotes]
    return body if "r" in prefix or "\\" not in body else _ESCAPE.sub(_unescape, body)


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    simple = _SIMPLE_ESCAPES.get(code)
    if simple is not None:
        return simple
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            return "\ufffd"
        return chr(number)
    if code[0] in "01234567":
        return chr(int(code, 8))
    return "\\" + code


def _number(token: str) -> JsonValue:
    plain = token.replace(" ", "").replace("\t", "")
    digits = plain.lstrip("+-")
    if digits[-1] in "jJ":
        return plain
    if digits[:2].lower() in ("0x", "0o", "0b"):
        return int(plain, 0)
    if any(left == "_" == right for left, right in pairwise(digits)):
        raise ValueError("two underscores in a number")
    if digits.replace("_", "").isdigit():
        return int(plain, 0)
    number = float(plain)
    if number in (float("inf"), float("-inf")):
        raise ValueError("number out of range")
    return number
