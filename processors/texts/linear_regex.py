"""Regular expressions in time linear in the text, whatever text and pattern: Python's language on RE2."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TypeAlias

import re2

from processors.model import MAX_SEARCH_STEPS, has_mask, is_digest, mask_places
from processors.texts.regex_translation import shown, translate

_MAX_MASKS = 100


Match: TypeAlias = tuple[str | None, ...]
"""The text of a match, then those of its groups; None for a group that took no part."""


class LinearPattern:
    r"""A compiled pattern in the language of Python's `re`.

    It means what it means there, with three exceptions: `\b` and `\B` know the letters, digits and `_` of
    ASCII only; what follows a `$` cannot match the line end that the `$` stands before; and `matches` goes on
    behind an empty match, also where a longer one begins at its place.

    Raises:
        ValueError: the pattern does not compile, is too large, or needs more than linear time can do
            (look-around, references to groups, atomic groups, possessive repetitions); one line for people.
    """

    __slots__ = ("_ends", "_groups", "_regexp", "group_names", "pattern")

    def __init__(self, pattern: str) -> None:
        translation = translate(pattern)
        options = re2.Options()
        options.log_errors = False
        try:
            self._regexp = re2.compile(translation.text, options)
        except re2.error as refusal:
            reason = refusal.args[0]
            text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise ValueError(f"pattern {shown(pattern)} does not compile: {text}") from None
        self.pattern = pattern
        self.group_names: Mapping[str, int] = translation.group_names
        self._groups = translation.groups
        self._ends = translation.ends

    @property
    def groups(self) -> int:
        """The number of capturing groups."""
        return len(self._groups) - 1

    def search(self, text: str) -> Match | None:
        """The first match anywhere in `text`, or None."""
        return next(self.matches(text), None)

    def has_match(self, text: str) -> bool | None:
        """Whether the pattern fits anywhere in `text`; None where that depends on what a mask in it hides.

        It does not where a match neither holds nor touches a mask, of those that can be looked through in
        bounded time (`MAX_SEARCH_STEPS`).
        """
        if not has_mask(text):
            return True if self.search(text) is not None else None if is_digest(text) else False
        data = text.encode(errors="replace")
        masks = [
            (len(text[:first].encode(errors="replace")), len(text[:last].encode(errors="replace")))
            for first, last in islice(mask_places(text), _MAX_MASKS)
        ]
        if len(masks) == _MAX_MASKS:
            return None
        for spans in islice(self._places(data), MAX_SEARCH_STEPS // (len(data) + 1)):
            start, end = spans[0]
            if not any(start <= last and end >= first for first, last in masks):
                return True
        return None

    def all_matches(self, text: str) -> list[Match] | None:
        """All matches, or None where finding them could take too long (`MAX_SEARCH_STEPS`)."""
        most = MAX_SEARCH_STEPS // (len(text) + 1)
        collected = list(islice(self.matches(text), most + 1))
        return collected if len(collected) <= most else None

    def matches(self, text: str) -> Iterator[Match]:
        """The matches from left to right, without overlap, each located when it is requested.

        Finding one takes time linear in what is left of the text; finding all can take its square.
        """
        data = text.encode(errors="replace")
        for spans in self._places(data):
            yield tuple(
                None if first < 0 else data[first:last].decode(errors="replace") for first, last in spans
            )

    def replaced(self, text: str, replacement: str, max_steps: int = MAX_SEARCH_STEPS) -> str | None:
        """`text` with `replacement` for every match that is not empty; None where it could take too long.

        That is where the number of matches times the length of the text is more than `max_steps`.
        """
        data = text.encode(errors="replace")
        if not self._regexp.search(data):
            return text
        most = max_steps // (len(data) + 1)
        parts: list[bytes] = []
        end = 0
        for count, spans in enumerate(self._places(data)):
            if count >= most:
                return None
            first, last = spans[0]
            if last > first:
                parts += (data[end:first], replacement.encode())
                end = last
        return b"".join((*parts, data[end:])).decode(errors="replace")

    def _places(self, data: bytes) -> Iterator[list[tuple[int, int]]]:
        """The places of the groups of every match, the whole match first; -1 for what took no part."""
        start = 0
        while start <= len(data):
            match = self._regexp.search(data, start)
            if match is None:
                return
            end: int = match.end()
            if any(match.end(number) > match.start(number) for number in self._ends):
                end -= 1
            spans = [match.span(number) for number in self._groups]
            yield [(first, min(last, end)) for first, last in spans]
            start = end if end > spans[0][0] else _after_character(data, end)


def compile_linear(pattern: str) -> LinearPattern:
    """Compile `pattern`; raises ValueError as `LinearPattern` does."""
    return LinearPattern(pattern)


def _after_character(data: bytes, position: int) -> int:
    """The start of the next character in UTF-8."""
    position += 1
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position
