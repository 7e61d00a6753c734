"""The numbers, dates and identifiers of the evidence, with what their records say of their units."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import Final, NamedTuple

from processors.response_handling.ledger import FROM_USER, PLAIN_NUMBER, Leaf, Ledger, OverLimitError, Record
from processors.response_handling.lexicons import keys, units
from processors.response_handling.lexicons.units import CURRENCIES, UNITS, Unit, key_words, unit_of_key
from processors.response_handling.reading import CalendarDay, Reader, Token, moment_of_number, to_date

MAX_TEXT_TOKENS: Final = 1_000
"""Numbers, dates and identifiers inside texts of the evidence; with more, nothing is checked."""

_HAS_DIGIT = re.compile(r"\d")
_YEAR_MONTH = re.compile(r"((?:19|20)\d\d)-(0[1-9]|1[0-2])")
_OFFSET = re.compile(r"(?:UTC|GMT)?[+-]\d{2}:\d{2}")
_AMBIGUOUS = re.compile(r"\s?(?:\d{1,3}\.\d{3}|00\d{0,15})\s?")
_DURATION = re.compile(r"P(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,6})S)?)?")
_LONGEST_UNIT = 40
_SHORTEST_INSTANT, _LONGEST_INSTANT = 16, 35
_LARGE = 9_999
"""Numbers up to it (ten times it, in records within) are not scaled by what is said of a whole record."""
_MOST_DAYS, _MOST_CLOCKS, _MOST_INSTANTS = 26, 30, 14
"""Dates, times of day and dates with a time of which pairs are formed."""
_DAY, _MONTH, _YEAR = 86_400.0, 2_629_800.0, 31_557_600.0
"""Seconds of a day, a month and a year."""


@dataclass(slots=True)
class Quantity:
    """A number of the evidence. `is_whole`: it is the value of its member, not a number inside a text."""

    value: float
    key: str
    path: str
    call: int
    record: int
    unit: Unit | None = None
    is_money: bool = False
    is_minor: bool = False
    is_operand: bool = True
    is_whole: bool = True

    @property
    def base(self) -> float:
        """The value in the base unit of its dimension."""
        return self.value * self.unit.factors[0] if self.unit else self.value


class _Terms(NamedTuple):
    """In what a record and those in it count: a unit, a factor of large numbers, cents."""

    unit: Unit | None = None
    scale: float = 1.0
    is_minor: bool = False


class _Key(NamedTuple):
    """What the key of a number says of it."""

    unit: Unit | None
    scale: float
    is_money: bool
    is_minor: bool
    is_name: bool


@lru_cache(maxsize=4096)
def _read_key(key: str) -> _Key:
    words = key_words(key)
    named = (
        units.MINOR_OF.get(word, word if len(word) == 3 or not word.isascii() else "") for word in words[1:]
    )
    return _Key(
        unit_of_key(key),
        prod(
            units.SCALES.get(word, units.MYRIADS.get(word, 1.0) if units.YEN & {*words} else 1.0)
            for word in words
        ),
        is_money=any(word in CURRENCIES for word in named),
        is_minor=not units.MINOR.isdisjoint(words),
        is_name=not keys.NO_OPERANDS.isdisjoint(words[-1:]) or key.lower() in ("month", "day", "room"),
    )


class Quantities:
    """What can be read of a ledger: `numbers`, also `by_record`, `ids`, and how much time lies between what.

    Raises:
        OverLimitError: there is more than can be checked in bounded time.
    """

    def __init__(self, ledger: Ledger, reader: Reader) -> None:
        self.numbers: list[Quantity] = []
        self.by_record: list[list[Quantity]] = []
        self._days: list[CalendarDay] = []
        self._clocks: list[float] = []
        self._instants: list[datetime] = []
        self.ids: list[str] = []
        self._reader, self._read_tokens = reader, 0
        self._terms: list[_Terms] = []
        for record in ledger.records:  # each after the one that it stands in
            self.by_record.append([])
            self._terms.append(self._terms[record.parent] if record.parent >= 0 else _Terms())
            for leaf in record.leaves:
                if isinstance(leaf.value, str):
                    self._read_text(leaf.value, leaf)
                elif leaf.value is not None and not isinstance(leaf.value, bool) and abs(leaf.value) < 1e18:
                    self._read_number(float(leaf.value), leaf)
            self._apply_units(record)

    def _apply_units(self, record: Record) -> None:
        """Give numbers what members such as `unit` and `currency` beside them mean."""
        for leaf in record.leaves:
            member, low = leaf.value, leaf.key.lower()
            if not isinstance(member, str) or not low or len(member) > _LONGEST_UNIT:
                continue
            unit, scale, is_minor, is_money = None, 1.0, False, False
            if low in keys.CURRENCY_KEYS:
                is_money = member.lower() in CURRENCIES
            elif low in keys.UNIT_KEYS or key_words(leaf.key)[-1:] in (("unit",), ("units",)):
                is_minor = low in keys.UNIT_KEYS and not units.MINOR.isdisjoint(key_words(member))
                named = self._reader.words.units.get(member.lower())
                unit = units.unit_of_symbol(member) or (UNITS[named] if named else unit_of_key("x_" + member))
                scale = next((units.SCALES[word] for word in key_words(member) if word in units.SCALES), 1.0)
            if unit is None and scale == 1.0 and not is_money and not is_minor:
                continue
            terms = self._terms[record.index]
            self._terms[record.index] = _Terms(unit or terms.unit, scale, terms.is_minor or is_minor)
            for quantity in self.by_record[record.index]:
                quantity.unit = quantity.unit or unit
                quantity.value *= scale if quantity.value > _LARGE else 1.0
                quantity.is_money = quantity.is_money or is_money
                quantity.is_minor = quantity.is_minor or is_minor

    def _read_number(self, value: float, leaf: Leaf) -> None:
        key = _read_key(leaf.key)
        moment = moment_of_number(value) if value == int(value) and not key.is_money else None
        if moment is not None:
            self._days.append((moment.year, moment.month, moment.day))
            self._instants.append(moment)
        is_operand = moment is None and (key.unit is not None or not key.is_name)
        self._add(Quantity(value * key.scale, *leaf[1:], key.unit, key.is_money, key.is_minor, is_operand))

    def _add(self, quantity: Quantity) -> None:
        terms = self._terms[quantity.record]
        quantity.unit = quantity.unit or terms.unit
        quantity.value *= terms.scale if quantity.value > 10 * _LARGE else 1.0
        quantity.is_minor = quantity.is_minor or (terms.is_minor and quantity.value == int(quantity.value))
        self.numbers.append(quantity)
        self.by_record[quantity.record].append(quantity)

    def _read_text(self, text: str, leaf: Leaf) -> None:
        is_spelled = leaf.call == FROM_USER
        if not is_spelled and not _HAS_DIGIT.search(text):
            return
        if len(text) < 20 and PLAIN_NUMBER.fullmatch(text) and not _AMBIGUOUS.fullmatch(text):
            self.ids.append(text.strip())
            self._read_number(float(text), leaf)
        elif text[:1] == "P" and (match := _DURATION.fullmatch(text)) is not None:
            parts = zip(match.groups("0"), (86400, 3600, 60, 1), strict=True)
            seconds = float(sum(int(n) * size for n, size in parts))
            self._add(Quantity(seconds, *leaf[1:], UNITS["s"]))
        elif (match := _YEAR_MONTH.fullmatch(text)) is not None:
            self._days.append((int(match[1]), int(match[2]), None))
        elif _OFFSET.fullmatch(text) is None:  # a difference from UTC is no time
            if _SHORTEST_INSTANT <= len(text) <= _LONGEST_INSTANT and (moment := _instant(text)) is not None:
                self._instants.append(moment)
            tokens = self._reader.read(text, is_spelled=is_spelled)
            self._read_tokens += len(tokens)
            if self._read_tokens > MAX_TEXT_TOKENS:
                raise OverLimitError(f"evidence of more than {MAX_TEXT_TOKENS} numbers and dates in texts")
            for token in tokens:
                self._note(token, leaf, is_whole=len(token.text) * 2 > len(text))

    def _note(self, token: Token, leaf: Leaf, *, is_whole: bool) -> None:
        if token.kind == "number":
            is_operand = keys.NO_OPERANDS.isdisjoint(key_words(leaf.key)[-1:])
            unit, is_money = token.unit or unit_of_key(leaf.key), bool(token.currencies)
            for value in token.values:
                value = token.total / token.unit.factors[0] if token.extra and token.unit else value
                value = -value if token.is_negative else value
                quantity = Quantity(value, *leaf[1:], unit, is_money, token.is_minor, is_operand, is_whole)
                self._add(quantity)
        elif token.kind == "date":
            self._days += token.dates
        elif token.kind == "time":
            if is_whole and not keys.LASTING.isdisjoint(key_words(leaf.key)):
                self._add(Quantity(token.minutes * 60.0, *leaf[1:], UNITS["s"]))
            self._clocks.append(token.minutes * 60.0 + token.seconds)
        elif token.kind == "id":
            self.ids.append(token.text)

    def lapses(self) -> list[float]:
        """The seconds between dates, in days, months and years, times of day, and dates with a time."""
        lengths: set[float] = set()
        year = next((day[0] for day in self._days if day[0]), None)
        full = (to_date((day[0] or year, day[1], day[2])) for day in self._days)
        days = [*dict.fromkeys(day for day in full if day)][:_MOST_DAYS]
        for one, other in combinations(sorted(days), 2):
            gap, months = (other - one).days, (other.year - one.year) * 12 + other.month - one.month
            years = other.year - one.year - ((other.month, other.day) < (one.month, one.day))
            lengths |= {gap * _DAY, (gap + 1) * _DAY, months * _MONTH, years * _YEAR}
        for first, second in combinations(self._clocks[:_MOST_CLOCKS], 2):
            lengths |= {abs(first - second), _DAY - abs(first - second)}
        for start, end in combinations(self._instants[:_MOST_INSTANTS], 2):
            if (start.tzinfo is None) == (end.tzinfo is None):
                lengths.add(abs((end - start).total_seconds()))
        return sorted(lengths - {0.0})


def _instant(text: str) -> datetime | None:
    """The date with a time, and with its difference from UTC if written, that a text is as a whole."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
