"""The numbers and identifiers of the evidence, with what their keys say of them."""

import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

from processors.response_handling.ledger import FROM_USER, PLAIN_NUMBER, Leaf, Ledger, OverLimitError
from processors.response_handling.lexicons import keys, units
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.reading import Reader, Token, moment_of_number

MAX_TEXT_TOKENS: Final = 1_000
"""Numbers, dates and identifiers inside texts of the evidence; with more, nothing is checked."""

_HAS_DIGIT = re.compile(r"\d")
_AMBIGUOUS = re.compile(r"\s?(?:\d{1,3}\.\d{3}|00\d{0,15})\s?")
_OFFSET = re.compile(r"(?:UTC|GMT)?[+-]\d{2}:\d{2}")


@dataclass(slots=True)
class Quantity:
    """A number of the evidence. `is_whole`: it is the value of its member, not a number inside a text."""

    value: float
    key: str
    path: str
    call: int
    record: int
    is_share: bool = False
    is_minor: bool = False
    is_operand: bool = True
    is_whole: bool = True


class _Key(NamedTuple):
    """What the key of a number says of it."""

    scale: float
    is_share: bool
    is_minor: bool
    is_name: bool


@lru_cache(maxsize=4096)
def _read_key(key: str) -> _Key:
    words = key_words(key)
    return _Key(
        prod(
            units.SCALES.get(word, units.MYRIADS.get(word, 1.0) if units.YEN & {*words} else 1.0)
            for word in words
        ),
        is_share=not units.PERCENT_WORDS.isdisjoint(words),
        is_minor=not units.MINOR.isdisjoint(words),
        is_name=not keys.NO_OPERANDS.isdisjoint(words[-1:]) or key.lower() in ("month", "day", "room"),
    )


class Quantities:
    """What can be read of a ledger: `numbers`, also `by_record`, and `ids`.

    Raises:
        OverLimitError: there is more than can be checked in bounded time.
    """

    def __init__(self, ledger: Ledger, reader: Reader) -> None:
        self.numbers: list[Quantity] = []
        self.by_record: list[list[Quantity]] = []
        self.ids: list[str] = []
        self._reader, self._read_tokens = reader, 0
        for record in ledger.records:
            self.by_record.append([])
            for leaf in record.leaves:
                if isinstance(leaf.value, str):
                    self._read_text(leaf.value, leaf)
                elif leaf.value is not None and not isinstance(leaf.value, bool) and abs(leaf.value) < 1e18:
                    self._read_number(float(leaf.value), leaf)

    def _read_number(self, value: float, leaf: Leaf) -> None:
        key = _read_key(leaf.key)
        is_moment = value == int(value) and moment_of_number(value) is not None
        is_operand = not is_moment and not key.is_name
        self._add(Quantity(value * key.scale, *leaf[1:], key.is_share, key.is_minor, is_operand))

    def _add(self, quantity: Quantity) -> None:
        self.numbers.append(quantity)
        self.by_record[quantity.record].append(quantity)

    def _read_text(self, text: str, leaf: Leaf) -> None:
        is_spelled = leaf.call == FROM_USER
        if not is_spelled and not _HAS_DIGIT.search(text):
            return
        if len(text) < 20 and PLAIN_NUMBER.fullmatch(text) and not _AMBIGUOUS.fullmatch(text):
            self.ids.append(text.strip())
            self._read_number(float(text), leaf)
        elif _OFFSET.fullmatch(text) is None:  # a difference from UTC is no time
            tokens = self._reader.read(text, is_spelled=is_spelled)
            self._read_tokens += len(tokens)
            if self._read_tokens > MAX_TEXT_TOKENS:
                raise OverLimitError(f"evidence of more than {MAX_TEXT_TOKENS} numbers and dates in texts")
            for token in tokens:
                self._note(token, leaf, is_whole=len(token.text) * 2 > len(text))

    def _note(self, token: Token, leaf: Leaf, *, is_whole: bool) -> None:
        if token.kind == "id":
            self.ids.append(token.text)
        elif token.kind == "number":
            is_operand = keys.NO_OPERANDS.isdisjoint(key_words(leaf.key)[-1:])
            is_share = token.unit == units.PERCENT
            for value in token.values:
                value = -value if token.is_negative else value
                self._add(Quantity(value, *leaf[1:], is_share, token.is_minor, is_operand, is_whole))
