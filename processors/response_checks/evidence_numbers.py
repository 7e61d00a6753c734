"""The numbers of the evidence: as they stand, counted, and summed up."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from processors.response_checks.agent_response import FROM_USER, AgentResponse, Leaf
from processors.texts.folded_text import blanked, has_digit, key_words, singular
from processors.texts.moments import moment_of_number
from processors.texts.number_tokens import CURRENCIES, MAX_NUMBERS, number_tokens
from processors.texts.spelled_numbers import spelled_numbers
from processors.texts.units import UNITS, Unit, names_a_unit, temperature_scale, unit_of_words

_DIGITS = re.compile(r"\d+")
_PLAIN = re.compile(r"[-+]?\d+(?:\.\d+)?")
_ISO_DURATION = re.compile(r"\bPT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?\b")
_SECONDS = UNITS["seconds"]


class EvidenceNumber(NamedTuple):
    """A number of the evidence, without its sign.

    `words` are those of the key it stands under. `is_written` is false for digits inside other text, counts
    and sums, which take no part in further arithmetic. `calls` are the calls whose results hold it.
    """

    value: float
    words: tuple[str, ...]
    calls: frozenset[int]
    owner: int = 0
    unit: Unit | None = None
    temperature: str | None = None
    is_written: bool = True


class EvidenceNumbers:
    """All numbers of the evidence, ordered for look-ups."""

    def __init__(self, response: AgentResponse) -> None:
        found: list[EvidenceNumber] = []
        units = _units_of_owners(response.leaves)
        for leaf in response.leaves:
            if not isinstance(leaf.value, bool):
                found.extend(_numbers_of(response, leaf, units.get((leaf.call, leaf.owner), ())))
        self.written = [number for number in found if number.is_written]
        found.extend(_counts(response))
        found.extend(_summaries(self.written))
        found.sort(key=lambda number: number.value)
        self.all = found
        self._values = [number.value for number in found]
        self.currencies = _currencies_of(response)

    @cached_property
    def values_by_meaning(self) -> dict[str, set[float]]:
        """The values that results hold for each word of a key (in the singular) and each dimension."""
        found: dict[str, set[float]] = defaultdict(set)
        for number in self.written:
            if FROM_USER not in number.calls:
                for word in number.words:
                    found[singular(word)].add(number.value)
                if number.unit is not None:
                    found[number.unit.dimension].add(number.value)
        return dict(found)

    def between(self, lowest: float, highest: float) -> list[EvidenceNumber]:
        """The numbers from `lowest` to `highest`."""
        values = self._values
        return self.all[bisect_left(values, lowest) : bisect_right(values, highest)]


def _units_of_owners(leaves: Iterable[Leaf]) -> dict[tuple[int, int], tuple[str, ...]]:
    """For each object with a `unit` member the words of it."""
    units: dict[tuple[int, int], tuple[str, ...]] = {}
    for leaf in leaves:
        if isinstance(leaf.value, str) and len(leaf.value) <= 20 and names_a_unit(leaf.key):
            place = (leaf.call, leaf.owner)
            units[place] = (*units.get(place, ()), *key_words(leaf.value))
    return units


def _numbers_of(response: AgentResponse, leaf: Leaf, unit_words: tuple[str, ...]) -> Iterable[EvidenceNumber]:
    words = key_words(leaf.key)
    calls = frozenset((leaf.call,))
    unit = unit_of_words(words) or unit_of_words(unit_words)
    scale = temperature_scale(words) or temperature_scale(unit_words)
    value = leaf.value
    if isinstance(value, str):
        if len(value) < 300 and _PLAIN.fullmatch(value.strip()):
            yield EvidenceNumber(abs(float(value)), words, calls, leaf.owner, unit, scale)
            return
        yield from _numbers_in_text(response, value, words, calls, leaf.owner)
        return
    number = abs(float(value))
    if number != number or number == float("inf"):
        return
    yield EvidenceNumber(number, words, calls, leaf.owner, unit, scale)
    moment = moment_of_number(number)
    if moment is not None:
        yield EvidenceNumber(float(moment.year), words, calls, leaf.owner, is_written=False)


def _numbers_in_text(
    response: AgentResponse, text: str, words: tuple[str, ...], calls: frozenset[int], owner: int
) -> Iterable[EvidenceNumber]:
    if has_digit(text):
        plain = blanked(text, [(moment.start, moment.end) for moment in response.moments_in(text)])
        for token in number_tokens(plain):
            for reading in token.readings:
                yield EvidenceNumber(
                    reading.magnitude,
                    words,
                    calls,
                    owner,
                    unit=token.unit,
                    temperature=token.temperature or None,
                )
        for count, match in enumerate(_DIGITS.finditer(text)):
            if count >= MAX_NUMBERS:
                break
            if len(match[0]) <= 20:
                yield EvidenceNumber(float(match[0]), words, calls, owner, is_written=False)
        for match in _ISO_DURATION.finditer(text):
            hours, minutes, seconds = (int(part or 0) for part in match.groups())
            total = float(hours * 3600 + minutes * 60 + seconds)
            yield EvidenceNumber(total, words, calls, owner, unit=_SECONDS)
    for value in spelled_numbers(text)[:100]:
        yield EvidenceNumber(float(value), words, calls, owner, is_written=False)


def _counts(response: AgentResponse) -> Iterable[EvidenceNumber]:
    """Lengths of lists, how often a value stands under one path, and how many calls a tool got."""
    for counted in response.lists:
        words = tuple(key_words(counted.path[-1])) if counted.path else ()
        yield EvidenceNumber(float(counted.length), words, frozenset((counted.call,)), is_written=False)
    values: Counter[tuple[tuple[str, ...], str]] = Counter()
    calls: dict[tuple[tuple[str, ...], str], set[int]] = defaultdict(set)
    for leaf in response.result_leaves():
        if isinstance(leaf.value, bool) or (isinstance(leaf.value, str) and len(leaf.value) <= 64):
            place = (leaf.path, str(leaf.value))
            values[place] += 1
            calls[place].add(leaf.call)
    for place, count in values.items():
        words = tuple(key_words(place[0][-1])) if place[0] else ()
        yield EvidenceNumber(float(count), words, frozenset(calls[place]), is_written=False)
    for count in Counter(call.name for call in response.calls).values():
        yield EvidenceNumber(float(count), (), frozenset(), is_written=False)


def _summaries(written: Iterable[EvidenceNumber]) -> Iterable[EvidenceNumber]:
    """Sum, mean and spread of the numbers of results that share the words of their key."""
    groups: dict[tuple[str, ...], list[EvidenceNumber]] = defaultdict(list)
    for number in written:
        if number.words and FROM_USER not in number.calls:
            groups[number.words].append(number)
    for words, numbers in groups.items():
        if len(numbers) < 2:
            continue
        values = [number.value for number in numbers]
        calls = frozenset().union(*(number.calls for number in numbers))
        unit = numbers[0].unit
        for value in (sum(values), sum(values) / len(values), max(values) - min(values)):
            yield EvidenceNumber(value, words, calls, unit=unit, is_written=False)


def _currencies_of(response: AgentResponse) -> frozenset[str]:
    """The currencies that the results and the arguments name by ISO code, sign or word."""
    named: set[str] = set()
    for leaf in response.leaves:
        for word in key_words(leaf.key):
            if len(word) == 3 and word in CURRENCIES:
                named.add(word.upper())
        value = leaf.value
        if isinstance(value, str):
            if len(value) == 3 and value.lower() in CURRENCIES:
                named.add(value.upper())
            elif any(sign in value for sign in "$€£¥₹") or has_digit(value):
                for token in number_tokens(value[:2000]):
                    named.update(token.currencies)
    return frozenset(named)
