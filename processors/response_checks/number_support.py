"""Whether a number that an answer states can be had from the numbers of the evidence.

A stated number is supported as written within its rounding, as percentage, in cents, in another unit, as a
count or sum, or by one step of arithmetic where the results hold few numbers.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from operator import itemgetter

from processors.response_checks.agent_response import FROM_USER
from processors.response_checks.evidence_numbers import EvidenceNumber, EvidenceNumbers
from processors.texts.number_tokens import NumberToken, Reading
from processors.texts.units import UNITS, Unit
from processors.texts.word_list import words

MAX_ARITHMETIC_NUMBERS = 12
"""Distinct numbers in the results up to which arithmetic between them is tried."""

_APPROXIMATE = 0.05
_UNIT_TOLERANCE = 0.01
_WHOLE_TOLERANCE = 0.1
"""How far a whole number may be from a converted value, as a share of it: 1.5 hours are not 2."""
_SCALED = 1.0
_FACTORS = range(2, 32)
_YEARS = (1800, 2200)
_RATE_WORDS = words(
    """
    rate price cost unit per qty quantity count nights days hours exchange factor percent percentage
    pct tax vat discount tip fee fare hourly daily nightly monthly amount total subtotal
    """
)
_PERCENT_WORDS = words(
    """
    rate percent percentage pct tax vat discount tip share ratio
    """
)


class NumberSupport:
    """Look-up of stated numbers in the evidence.

    `small_factors` are the small whole numbers of the conversation that products may use; `gaps` are the
    lengths in minutes between the dates and times of the evidence, which `gap_calls` hold. With
    `allows_ratios` one number may be divided by any other.
    """

    def __init__(
        self,
        numbers: EvidenceNumbers,
        small_factors: Iterable[float] = (),
        gaps: Sequence[float] = (),
        gap_calls: Iterable[int] = (),
        *,
        allows_ratios: bool = False,
    ) -> None:
        self._numbers = numbers
        self._small_factors = sorted({factor for factor in small_factors if factor in _FACTORS})
        self._gaps = gaps
        self._gap_calls = frozenset(gap_calls)
        self._allows_ratios = allows_ratios
        self._operands = _operands(numbers.written)
        self._converted = _by_dimension(numbers.written)

    def calls(self, token: NumberToken) -> set[int] | None:
        """The calls that support `token` (with `FROM_USER` for the user), or None where nothing does.

        Numbers that stand in the evidence count before those that have to be computed.
        """
        direct = self.written(token) or self._transformed(token)
        if direct:
            return set().union(*(number.calls for number in direct))
        if self._is_gap(token) or self._is_age(token):
            return set(self._gap_calls)
        return self._derived(token)

    def written(self, token: NumberToken) -> list[EvidenceNumber]:
        """The numbers of the evidence that `token` writes down, rounded at most."""
        found: list[EvidenceNumber] = []
        for reading in token.readings:
            found.extend(self._rounded(token, reading, 1.0))
            if reading.scale != _SCALED:
                # The key may say already that the number counts thousands or millions.
                found.extend(
                    number
                    for number in self._rounded(token, Reading(reading.value, reading.decimals), 1.0)
                    if any(word in _SCALE_WORDS.get(reading.scale, ()) for word in number.words)
                )
        return found

    def duration(self, minutes: float) -> set[int] | None:
        """The calls with a length of time within a minute of `minutes`, or None."""
        bases, numbers = self._converted.get("time", ([], []))
        for number in numbers[bisect_left(bases, minutes * 60 - 60) : bisect_right(bases, minutes * 60 + 60)]:
            return set(number.calls)
        return set(self._gap_calls) if any(abs(gap - minutes) <= 1 for gap in self._gaps) else None

    def _rounded(self, token: NumberToken, reading: Reading, factor: float) -> list[EvidenceNumber]:
        """The numbers x for which x * factor rounds to the reading."""
        scale = reading.scale / factor
        half = 0.5 * 10.0**-reading.decimals
        slack = 1e-9 * max(1.0, reading.value)
        found = self._numbers.between(
            (reading.value - half - slack) * scale, (reading.value + half + slack) * scale
        )
        if reading.decimals == 0 and reading.scale == _SCALED and not token.is_approximate:
            found = [
                number
                for number in found
                if abs(number.value / scale - reading.value) <= slack or number.value / scale >= 10
            ]
        if not found and token.is_approximate:
            value = reading.value * scale
            found = self._numbers.between(value / (1 + _APPROXIMATE), value / (1 - _APPROXIMATE))
        return found

    def _transformed(self, token: NumberToken) -> list[EvidenceNumber]:
        found: list[EvidenceNumber] = []
        for reading in token.readings:
            if token.is_percent:
                found.extend(self._rounded(token, reading, 100.0))
            if token.currencies:
                found.extend(
                    number
                    for number in self._rounded(token, reading, 0.01)
                    if number.value == int(number.value)
                )
            if token.unit is not None:
                found.extend(self._in_other_unit(reading, token.unit, approximate=token.is_approximate))
            if token.temperature is not None:
                found.extend(self._in_other_scale(reading, token.temperature))
        return found

    def _in_other_unit(self, reading: Reading, unit: Unit, *, approximate: bool) -> list[EvidenceNumber]:
        half = 0.5 * 10.0**-reading.decimals * reading.scale
        if reading.decimals == 0 and reading.scale == _SCALED and not approximate:
            half = min(half, _WHOLE_TOLERANCE * reading.value)
        tolerance = _APPROXIMATE if approximate else _UNIT_TOLERANCE
        found = []
        bases, numbers = self._converted.get(unit.dimension, ([], []))
        for factor in unit.factors:
            lowest = (reading.magnitude - half) / (1 + tolerance) * factor
            highest = (reading.magnitude + half) / (1 - tolerance) * factor
            found.extend(numbers[bisect_left(bases, lowest) : bisect_right(bases, highest)])
        return found

    def _in_other_scale(self, reading: Reading, scale: str) -> list[EvidenceNumber]:
        half = 0.5 * 10.0**-reading.decimals + 1e-9
        found: list[EvidenceNumber] = []
        for stated in (reading.value, -reading.value):
            if scale != "C":
                found.extend(self._temperatures((stated - 32) / 1.8, half / 1.8, "C"))
            if scale != "F":
                found.extend(self._temperatures(stated * 1.8 + 32, half * 1.8, "F"))
        return found

    def _temperatures(self, value: float, half: float, scale: str) -> Iterator[EvidenceNumber]:
        """The numbers that can be the temperature `value` in `scale`, give or take `half`."""
        for number in self._numbers.between(abs(value) - half, abs(value) + half):
            is_temperature = number.temperature == scale or (
                number.temperature is None and number.unit is None
            )
            if number.is_written and is_temperature:
                yield number

    def _is_gap(self, token: NumberToken) -> bool:
        """Whether `token` is the length between two dates or times."""
        unit = token.unit
        if unit is None or unit.dimension != "time":
            return False
        for reading in token.readings:
            half = 0.5 * 10.0**-reading.decimals
            for factor in unit.factors:
                if any(abs(gap * 60 / factor - reading.magnitude) <= half for gap in self._gaps):
                    return True
        return False

    def _is_age(self, token: NumberToken) -> bool:
        """Whether `token` is the number of years between two years of the evidence."""
        if not token.is_bare or (token.unit is not None and token.unit.dimension != "time"):
            return False
        years = {
            number.value for number in self._numbers.between(*_YEARS) if number.value == int(number.value)
        }
        if len(years) > MAX_ARITHMETIC_NUMBERS:
            return False
        ages = {abs(first - second) for first, second in combinations(years, 2)}
        return any(reading.decimals == 0 and reading.magnitude in ages for reading in token.readings)

    def _derived(self, token: NumberToken) -> set[int] | None:
        operands = self._operands
        if not operands:
            return None
        targets = [_Target(token, reading) for reading in token.readings]
        shares = [number for number in operands if not _PERCENT_WORDS.isdisjoint(number.words)]
        if token.is_percent and any(target.is_hit(map(_complement, shares)) for target in targets):
            return set().union(*(number.calls for number in shares))
        for first, second in combinations(operands, 2):
            values = _pair_values(first, second, token)
            if self._allows_ratios and first.value and second.value:
                values += [first.value / second.value, second.value / first.value]
            if any(target.is_hit(values) for target in targets):
                return set(first.calls | second.calls)
        for number in operands:
            for factor in self._small_factors:
                if any(target.is_hit((number.value * factor, number.value / factor)) for target in targets):
                    return set(number.calls)
        return None


_SCALE_WORDS = {
    1e3: ("k", "thousand", "thousands"),
    1e6: ("m", "mn", "mio", "million", "millions"),
    1e9: ("b", "bn", "billion", "billions"),
}


class _Target:
    """A reading as the wanted outcome of arithmetic."""

    __slots__ = ("_half", "_scale", "_value", "_whole")

    def __init__(self, token: NumberToken, reading: Reading) -> None:
        self._value = reading.value
        self._scale = reading.scale
        self._half = 0.5 * 10.0**-reading.decimals + 1e-9 * max(1.0, reading.value)
        if token.is_approximate:
            self._half = max(self._half, _APPROXIMATE * reading.value)
        self._whole = reading.decimals == 0 and not token.is_approximate and reading.scale == _SCALED

    def is_hit(self, values: Iterable[float]) -> bool:
        for value in values:
            scaled = abs(value) / self._scale
            if abs(scaled - self._value) <= self._half and (
                not self._whole or scaled >= 10 or abs(scaled - self._value) < 1e-6
            ):
                return True
        return False


def _pair_values(first: EvidenceNumber, second: EvidenceNumber, token: NumberToken) -> list[float]:
    """What one step of arithmetic makes of two numbers."""
    one, two = first.value, second.value
    values = [one + two, one - two]
    if token.is_percent:
        if _PERCENT_WORDS.isdisjoint(first.words) or _PERCENT_WORDS.isdisjoint(second.words):
            values = []
        if one:
            values += [two / one * 100, (two - one) / one * 100]
        if two:
            values += [one / two * 100, (one - two) / two * 100]
        return values
    for rate, other in ((first, two), (second, one)):
        words = _RATE_WORDS.intersection(rate.words)
        if words:
            values.append(rate.value * other)
            if rate.value:
                values.append(other / rate.value)
        if words & _PERCENT_WORDS:
            share = rate.value if rate.value < 1 else rate.value / 100
            values += [other * share, other * (1 - share), other * (1 + share)]
    return values


def _complement(number: EvidenceNumber) -> float:
    """What is missing to the whole, in percent."""
    return 100 - (number.value if number.value > 1 else number.value * 100)


def _operands(written: Sequence[EvidenceNumber]) -> list[EvidenceNumber]:
    """The numbers that arithmetic may use: none where the results hold too many."""
    results: dict[float, EvidenceNumber] = {}
    others: dict[float, EvidenceNumber] = {}
    for number in written:
        group = others if FROM_USER in number.calls else results
        known = group.get(number.value)
        group[number.value] = number if known is None else _united(known, number)
    if not results or len(results) > MAX_ARITHMETIC_NUMBERS:
        return []
    return [*results.values(), *list(others.values())[:MAX_ARITHMETIC_NUMBERS]]


def _united(first: EvidenceNumber, second: EvidenceNumber) -> EvidenceNumber:
    words = tuple(dict.fromkeys(first.words + second.words))
    calls = first.calls | second.calls
    return EvidenceNumber(first.value, words, calls, first.owner, first.unit, first.temperature)


def _by_dimension(written: Iterable[EvidenceNumber]) -> dict[str, tuple[list[float], list[EvidenceNumber]]]:
    """By dimension the numbers with a unit: values in base units, in order, and beside them the numbers."""
    found: dict[str, list[tuple[float, EvidenceNumber]]] = {}
    for number in written:
        unit = number.unit
        if unit is not None:
            entries = found.setdefault(unit.dimension, [])
            entries.extend((number.value * factor, number) for factor in unit.factors)
    ordered = {}
    for dimension, entries in found.items():
        entries.sort(key=itemgetter(0))
        ordered[dimension] = ([base for base, _ in entries], [number for _, number in entries])
    return ordered


def minutes_of(numbers: Iterable[EvidenceNumber]) -> list[float]:
    """The lengths of time among `numbers`, in minutes; at most 20."""
    found = {
        round(number.value * factor / 60, 6)
        for number in numbers
        if number.unit is not None and number.unit.dimension == "time"
        for factor in number.unit.factors
    }
    return sorted(found)[:20]


HOURS = UNITS["hours"]
MINUTES = UNITS["minutes"]
