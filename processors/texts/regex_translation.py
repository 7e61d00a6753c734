r"""Patterns of Python's `re` written down for the RE2 engine, so that they keep their meaning.

Python's own parser decides what a pattern means. RE2 knows neither look-around nor references back to groups;
its `\d`, `\s` and `\w` are ASCII, and its `$` is the end of the text only.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from re import _constants as ops  # type: ignore[attr-defined]  # the parser of `re` is not public
from re import _parser  # type: ignore[attr-defined]  # the parser of `re` is not public
from typing import Any

MAX_PATTERN_LENGTH = 10_000
"""Characters of a pattern; longer ones are refused."""

_MAX_REPEAT = 1000
_MAX_SHOWN = 60
_LAST_CODE_POINT = 0x10FFFF
_ALPHABETS = re.ASCII | re.UNICODE
_REFUSED = {
    ops.ASSERT: "look-around",
    ops.ASSERT_NOT: "look-around",
    ops.GROUPREF: "a reference back to a group",
    ops.GROUPREF_EXISTS: "a condition on a group",
    ops.ATOMIC_GROUP: "an atomic group",
    ops.POSSESSIVE_REPEAT: "a possessive repetition",
}
_NEGATIONS = {
    ops.CATEGORY_NOT_DIGIT: ops.CATEGORY_DIGIT,
    ops.CATEGORY_NOT_SPACE: ops.CATEGORY_SPACE,
    ops.CATEGORY_NOT_WORD: ops.CATEGORY_WORD,
}
_MEMBERS = {
    ops.CATEGORY_DIGIT: r"\p{Nd}",
    ops.CATEGORY_SPACE: r"\t-\r\x1c-\x20\x{85}\p{Z}",
    ops.CATEGORY_WORD: r"\p{L}\p{N}_",
}
_ASCII_MEMBERS = {
    ops.CATEGORY_DIGIT: "0-9",
    ops.CATEGORY_SPACE: r"\t-\r\x20",
    ops.CATEGORY_WORD: "0-9A-Za-z_",
}
_PLACES = {
    ops.AT_BEGINNING_STRING: r"\A",
    ops.AT_END_STRING: r"\z",
    ops.AT_BOUNDARY: r"\b",
    ops.AT_NON_BOUNDARY: r"\B",
}


@dataclass(frozen=True, slots=True)
class Translation:
    """A pattern as RE2 takes it.

    `groups` are RE2's numbers of the whole match and of the pattern's own groups, in order. `ends` are the
    numbers of further groups, one for each `$`: RE2 cannot look ahead, so a line end that a `$` stands
    before becomes part of the match, and of such a group.
    """

    text: str
    groups: Sequence[int]
    ends: Sequence[int]
    group_names: Mapping[str, int]


class _NotLinear(Exception):
    """The pattern needs what cannot run in linear time; the message names it."""


def translate(pattern: str) -> Translation:
    """`pattern` for RE2.

    Raises:
        ValueError: it does not compile in Python, or RE2 has nothing of the kind; one line for people.
    """
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise ValueError(
            f"pattern {shown(pattern)} is too long: expected at most {MAX_PATTERN_LENGTH} characters"
        )
    writer = _Writer()
    try:
        tree = _parsed(pattern)
        flags: int = tree.state.flags
        text = writer.sequence(tree, flags)
    except re.error as refusal:
        raise ValueError(f"pattern {shown(pattern)} does not compile: {refusal}") from None
    except Warning as doubt:  # sets within sets, such as [[:alpha:]]
        raise ValueError(f"pattern {shown(pattern)} can be misread: {doubt}; put a \\ before it") from None
    except _NotLinear as lack:
        raise ValueError(
            f"pattern {shown(pattern)} needs {lack}, expected one that runs in linear time (RE2)"
        ) from None
    except (RecursionError, OverflowError):
        raise ValueError(f"pattern {shown(pattern)} does not compile: nested too deep") from None
    if flags & re.IGNORECASE:
        text = f"(?i:{text})"
    groups = [0, *(writer.numbers[number] for number in range(1, tree.state.groups))]
    return Translation(text, groups, writer.ends, dict(tree.state.groupdict))


def shown(pattern: str) -> str:
    """`pattern` in quotes for a message, cut if it is long."""
    return f'"{pattern}"' if len(pattern) <= _MAX_SHOWN else f'"{pattern[: _MAX_SHOWN - 1]}…"'


def _parsed(pattern: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return _parser.parse(pattern)


class _Writer:
    """Writes parsed patterns down and keeps count of the groups."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.ends: list[int] = []

    def sequence(self, items: Iterable[Any], flags: int) -> str:
        return "".join([self._item(operator, argument, flags) for operator, argument in items])

    def _item(self, operator: Any, argument: Any, flags: int) -> str:
        if operator is ops.LITERAL:
            return _character(argument)
        if operator is ops.NOT_LITERAL:
            return f"[^{_character(argument)}]"
        if operator is ops.ANY:
            return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
        if operator is ops.IN:
            return _set(argument, bool(flags & re.ASCII))
        if operator is ops.AT:
            return self._place(argument, flags)
        if operator is ops.BRANCH:
            return f"(?:{'|'.join([self.sequence(branch, flags) for branch in argument[1]])})"
        if operator is ops.SUBPATTERN:
            number, added, removed, inner = argument
            if added & _ALPHABETS:
                flags &= ~_ALPHABETS
            return self._group(number, inner, (flags | added) & ~removed)
        if operator is ops.MAX_REPEAT or operator is ops.MIN_REPEAT:
            least, most, inner = argument
            lazy = "?" if operator is ops.MIN_REPEAT else ""
            return f"(?:{self.sequence(inner, flags)}){_times(least, most)}{lazy}"
        raise _NotLinear(_REFUSED.get(operator, str(operator)))

    def _group(self, number: int | None, inner: Any, flags: int) -> str:
        if number is None:
            return f"(?{'' if flags & re.IGNORECASE else '-'}i:{self.sequence(inner, flags)})"
        self.numbers[number] = self._next_number()
        return f"({self.sequence(inner, flags)})"

    def _place(self, where: Any, flags: int) -> str:
        if where is ops.AT_BEGINNING:
            return "(?m:^)" if flags & re.MULTILINE else r"\A"
        if where is not ops.AT_END:
            return _PLACES[where]
        if flags & re.MULTILINE:
            return "(?m:$)"
        self.ends.append(self._next_number())
        return r"(\n?)\z"

    def _next_number(self) -> int:
        return len(self.numbers) + len(self.ends) + 1


def _times(least: int, most: Any) -> str:
    if least > _MAX_REPEAT or (most is not ops.MAXREPEAT and most > _MAX_REPEAT):
        raise _NotLinear(f"a repetition of more than {_MAX_REPEAT} times")
    return f"{{{least},}}" if most is ops.MAXREPEAT else f"{{{least},{most}}}"


def _character(code_point: int) -> str:
    character = chr(code_point)
    return character if character.isascii() and character.isalnum() else f"\\x{{{code_point:x}}}"


def _set(members: Sequence[tuple[Any, Any]], ascii_only: bool) -> str:
    negated = members[0][0] is ops.NEGATE
    own = members[1:] if negated else members
    categories = _ASCII_MEMBERS if ascii_only else _MEMBERS
    if len(own) == 1 and own[0][0] is ops.CATEGORY and own[0][1] in _NEGATIONS:
        return f"[{'' if negated else '^'}{categories[_NEGATIONS[own[0][1]]]}]"
    texts = []
    for kind, argument in own:
        if kind is ops.LITERAL:
            texts.append(_character(argument))
        elif kind is ops.RANGE:
            texts.append(f"{_character(argument[0])}-{_character(argument[1])}")
        elif argument in _NEGATIONS:
            texts.append(_complement(str(_NEGATIONS[argument]), ascii_only))
        else:
            texts.append(categories[argument])
    return f"[{'^' if negated else ''}{''.join(texts)}]"


@cache
def _complement(category: str, ascii_only: bool) -> str:
    """All characters that are not of `category`: RE2 cannot negate one member of a set."""
    negation = {"CATEGORY_DIGIT": r"\D+", "CATEGORY_SPACE": r"\S+", "CATEGORY_WORD": r"\W+"}[category]
    characters = "".join(map(chr, range(_LAST_CODE_POINT + 1)))
    ranges = re.finditer(negation, characters, re.ASCII if ascii_only else re.UNICODE)
    return "".join([f"{_character(result.start())}-{_character(result.end() - 1)}" for result in ranges])
