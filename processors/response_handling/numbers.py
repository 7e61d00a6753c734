"""Rule RH1: numbers of the answer that the evidence does not give, and slips of those that it gives.

A number is supported directly (as it stands, or rounded), naturally (sums, means and counts of one key
over records, whole and by category) or in two or three steps over operands that are few: numbers of the
evidence, totals, and what the answer stated before. Units are not converted: a number with a unit is held
against the results for slips alone.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import fsum
from typing import Final, NamedTuple

from processors.model import late
from processors.response_handling.ledger import FROM_USER, Record
from processors.response_handling.lexicons.units import PERCENT
from processors.response_handling.reading import Token
from processors.response_handling.response import Finding, Quantity, Response, is_slip, shown

_SMALL, _PEOPLE_KNOW = 12, frozenset({24.0, 60.0, 100.0, 365.0, 1000.0})
"""Whole numbers up to the first, and those, without a unit are counts and marks that are not looked up."""
_CONSTANTS: Final = (2.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 100.0, 365.0)
"""By what people multiply and divide though nobody told them."""
_SPEEDS: Final = frozenset({"km/h", "m/s", "mph", "kn"})
_HELD_AGAINST: Final = frozenset({"", "deg", "C", "F", "K", *_SPEEDS})
"""Units of which an unsupported number counts: temperatures and speeds, which people hardly multiply."""
_RATIOS: Final = (1.151, 1.609344, 1.852, 1.944, 2.237, 3.6)
"""How many of one unit of speed another is."""
_ABOUT: Final = 0.06
"""By how much what is said to be approximate may differ."""
_CHANCE: Final = 0.25
"""How many of the expressions tried may be expected to give a number by chance where one counts for sure."""
_MOST_BESIDE: Final = 8
"""Other numbers of a sentence that are looked at."""
_SIZE, _MANY = 100.0, 3
"""How many times larger or smaller numbers are that are of another size; and how many of them are many."""
_SHORT, _LONG = 3, 5
"""Digits below which a slip says nothing, and from which it says much."""
_LEAST_SLIP: Final = 100
"""Totals below it are no slips of another."""
_STATED: Final = "what is stated"
_LONGEST_SUM: Final = 8
"""Amounts stated one after the other that are added up."""
_MOST_SEARCHED: Final = 15
"""Numbers of one answer searched for in steps; with more, they are of something that was not read."""
_MOST_INVENTED: Final = 1
"""Where more numbers of one answer have no support, it goes by something that was not read."""
_MOST_DOUBTED: Final = 24
"""Numbers of one answer that are held against what they may be instead."""
_MOST_GIVEN: Final = 36
"""With more numbers of the evidence, not all steps over them were tried."""
_MOST_ROWS, _MOST_VALUES, _MOST_COMPUTED, _MOST_OPERANDS, _MOST_DEEP = 400, 12, 3_000, 36, 16


def unsupported_numbers(response: Response) -> Iterator[Finding]:
    """RH1.2: numbers that nothing gives; RH1.7: wrong totals, and slips of numbers of the results."""
    if response.invents_no_digits or not any(_may_be_wrong(token, response) for token in response.tokens):
        return  # as of most answers, so that the numbers of the evidence need not be read
    numbers = Numbers(response)
    if numbers.are_foreign:
        return
    plain = (support for support in numbers.supports if not support.token.unit)
    is_unread = sum(not support.is_supported for support in plain) > _MOST_INVENTED
    for support in islice((one for one in numbers.supports if not one.is_direct), _MOST_DOUBTED):
        token, claim = support.token, shown(response.around(support.token))
        if (total := numbers.mistaken_total(support)) is not None:
            yield Finding("RH1.7", claim, f"{token.text}: {total.how} is {total.value:.10g}")
            continue
        if not support.is_checked or support.steps in (1, 2):
            continue
        slip = numbers.slip(token)
        if slip is not None and (not support.how or slip.kind != "given" or _digits(token) >= _LONG):
            what = f"{token.text} is not in the results; nearest: {slip.how} {slip.value:.10g}"
            yield Finding("RH1.7", claim, what)
        elif (
            not (support.how or is_unread or token.unit not in _HELD_AGAINST)
            and len(numbers.given) <= _MOST_GIVEN
            and numbers.is_of_results(token)
            and not numbers.is_converted(token)
        ):
            near = min(numbers.given, key=lambda one: abs(abs(one.value) - token.value), default=None)
            beside = f"; nearest: {near.how} {near.value:.10g}" if near is not None else ""
            yield Finding("RH1.2", claim, f"{token.text} is not in the results{beside}")


def _may_be_wrong(token: Token, response: Response) -> bool:
    """Whether a number is not in the evidence as it is written, and of those that a rule looks at."""
    if token.kind != "number" or token.is_spelled or not response.plain_numbers.isdisjoint(token.values):
        return False
    is_looked_at = token.unit in _HELD_AGAINST or _digits(token) >= _SHORT
    return token.value >= _LEAST_SLIP or (is_looked_at and _is_checked(token, response))


def _is_checked(token: Token, response: Response) -> bool:
    value, is_bare = token.value, not token.unit and not token.currencies and token.scale == 1.0
    is_small = value == int(value) and is_bare and (value <= _SMALL or value in _PEOPLE_KNOW)
    is_year = is_bare and 1900 <= value <= 2100 and token.text.isdigit()
    is_name = not token.unit and value in response.plain_numbers
    return not (token.is_spelled or not value or is_small or is_year or is_name or token.unit == PERCENT)


class Computed(NamedTuple):
    """A number to reckon with: its value, how it was made, and its kind: `total`, `share` or `given`."""

    value: float
    how: str
    kind: str = ""


@dataclass(slots=True)
class Support:
    """A number of the answer: whether the evidence has it, or how it is reckoned, or neither.

    `chance` is about how many of the expressions tried would give a number of so many digits by chance.
    """

    token: Token
    is_direct: bool = False
    how: str = ""
    steps: int = 0
    is_checked: bool = True
    chance: float = 0.0

    @property
    def is_supported(self) -> bool:
        """Whether anything gives the number, or nothing need."""
        return bool(self.is_direct or self.how or not self.is_checked)


class Numbers:
    """The numbers of one answer, each looked up once."""

    def __init__(self, response: Response) -> None:
        self._response, self._ledger, self._quantities = response, response.ledger, response.quantities
        self.are_foreign = False
        """Whether so many numbers have no support that they are of something that was not read."""
        self._known: list[Computed] = []
        self._evidence = sorted(abs(quantity.value) for quantity in self._quantities.numbers)
        self._minor = sorted(abs(q.value) / 100 for q in self._quantities.numbers if q.is_minor)
        self.supports = [Support(token) for token in response.tokens if token.kind == "number"]
        self._starts = [support.token.start for support in self.supports]
        for support in self.supports:
            support.is_direct = self._is_direct(support.token)
            support.is_checked = _is_checked(support.token, response)
        alike: dict[object, list[float]] = defaultdict(list)
        for token in (support.token for support in self.supports if not support.token.is_spelled):
            alike[token.unit, token.currencies].append(token.value)
        self._sums = {total: parts for run in alike.values() for total, parts in _sums_of(run)}
        for support in self.supports:
            self._know(support)
        for support in self.supports:
            if not support.is_direct:
                self._natural(support)
                self._know(support)
        for _ in range(2):
            before = len(self._known)
            missing = [support for support in self.supports if not support.is_supported]
            self.are_foreign = len(missing) > _MOST_SEARCHED
            for support in () if self.are_foreign else missing:
                self._reach(support)
                self._know(support)
            if len(self._known) == before:
                break

    def _know(self, support: Support) -> None:
        """Let what was found take part in steps to other numbers."""
        token = support.token
        is_known = support.is_direct or support.how or token.unit == PERCENT
        if is_known and all(computed.value != token.value for computed in self._known):
            kind = "share" if token.unit == PERCENT else ""
            self._known.append(Computed(amount(token), "stated", kind))

    @late
    def _computed(self) -> list[Computed]:
        return [*islice(self._all_computed(), _MOST_COMPUTED)]

    @late
    def _natural_values(self) -> tuple[list[float], list[Computed]]:
        """All that is natural to reckon, in order, and the values of it."""
        computed = sorted(self._computed, key=lambda one: abs(one.value))
        return [abs(one.value) for one in computed], computed

    def _beside(self, token: Token) -> list[Support]:
        """The other numbers of the sentence of a number, the nearest first, a few."""
        start, end = self._response.span_of(token)
        first = bisect_left(self._starts, start)
        own = self.supports[first : bisect_left(self._starts, end, lo=first)]
        others = [support for support in own if support.token is not token]
        return sorted(others, key=lambda other: abs(other.token.start - token.start))[:_MOST_BESIDE]

    def mistaken_total(self, support: Support) -> Computed | None:
        """The total, of the sentence or the evidence, of which a number of a sentence on totals is a slip."""
        token, value = support.token, support.token.value
        sentence = self._response.around(token)
        if (
            token.is_spelled
            or value < _LEAST_SLIP
            or "total" not in self._response.words.categories(sentence)
        ):
            return None
        others = (other.token for other in self._beside(token) if other.is_direct)
        parts = [one for one in others if (one.unit, one.currencies) == (token.unit, token.currencies)]
        stated = [Computed(fsum(one.value for one in parts), _STATED, "total")] if len(parts) > 1 else []
        totals = [*stated, *(computed for computed in self._computed if computed.kind == "total")]
        near = min(totals, key=lambda total: abs(abs(total.value) - value), default=None)
        if near is None or abs(abs(near.value) - value) <= slack_of(token, value):
            return None
        is_wrong = _is_slip(value, near.value, token.readings[token.reading][1])
        may_be_wrong = near.how == _STATED or not support.how or support.chance > _CHANCE
        return near if is_wrong and may_be_wrong else None

    def slip(self, token: Token) -> Computed | None:
        """The number of a result, or a total, that is not stated and of which a number is a slip."""
        if token.is_approximate or _digits(token) < _SHORT:
            return None
        decimals, value = token.readings[token.reading][1], token.value
        near = (one for one in self._slippable if value < 10 * abs(one.value) < 100 * value)
        near = (one for one in near if one.kind == "given" or not token.unit)  # sums may mix units
        return next(
            (computed for computed in near if _is_slip(value, computed.value, decimals, _SHORT)), None
        )

    @late
    def _slippable(self) -> list[Computed]:
        """The numbers of results and the totals that are not stated, one for each value."""
        results = [q for q in self._quantities.numbers if q.call >= 0 and q.is_operand][:_MOST_ROWS]
        totals = (one for one in self._computed[:_MOST_ROWS] if one.how.startswith(("sum of", "mean of")))
        stated = {support.token.value for support in self.supports}
        matches = dict[float, Computed]()
        for one in (*(Computed(amount(q), q.key, "given") for q in results), *totals):
            if abs(one.value) not in stated:
                matches.setdefault(abs(one.value), one)
        return [*matches.values()]

    def is_of_results(self, token: Token) -> bool:
        """Whether results have numbers about the size of one of the answer.

        What they have nothing of was not read from them: it is knowledge of the world, or of a file.
        """
        sizes = [abs(q.value) for q in self._quantities.numbers if q.call >= 0 and q.is_operand]
        return any(size <= _SIZE * token.value and token.value <= _SIZE * size for size in sizes)

    def is_converted(self, token: Token) -> bool:
        """Whether the evidence has a temperature or a speed of the answer in another unit."""
        given, slack = [abs(one.value) for one in self.given], slack_of(token, token.value)
        if token.unit in _SPEEDS:
            others = [other for one in given for by in _RATIOS for other in (one * by, one / by)]
        else:
            shifts = ((1.8, 32.0), (1 / 1.8, -32 / 1.8), (1.0, 273.15), (1.0, -273.15))
            others = [one * by + shift for one in given for by, shift in shifts]
        return bool(token.unit) and any(abs(abs(other) - token.value) <= slack for other in others)

    def _is_direct(self, token: Token) -> bool:
        for value in token.values:
            slack, values = slack_of(token, value), [value]
            if token.unit == PERCENT:
                values.append(value / 100)
            if any(_has(self._evidence, one, slack * one / value if value else 0.0) for one in values):
                return True
            if not token.unit and _has(self._minor, value, slack):
                return True
        return False

    def _natural(self, support: Support) -> None:
        values, computed = self._natural_values
        value, slack = amount(support.token), slack_of(support.token, support.token.value)
        place = bisect_left(values, value - slack)
        if place < len(values) and values[place] <= value + slack:
            support.how, support.steps = computed[place].how, 1

    def _reach(self, support: Support) -> None:
        """Look for steps that give a number: over what its sentence tells, then over all that is known."""
        if support.token.unit in _SPEEDS:
            return
        run = self._sums.get(round(support.token.value, 6), [])
        if run and support.token.value not in run:
            support.how, support.steps = " + ".join(f"{part:.10g}" for part in run), 2
            return
        stated = [one.token for one in self._beside(support.token) if one.is_supported]
        shares, value = self._shares, amount(support.token)
        slack = slack_of(support.token, support.token.value)
        near = sorted({amount(one) for one in stated} - {0.0})
        by = [one.value / (100 if one.unit == PERCENT else 1) for one in stated if one.value]
        by += [other for share in by if share < 1 for other in (1 + share, 1 - share)]
        for tier in range(3):
            steps, terms, targets = 2, near, near
            if tier == 1:
                terms = targets = self._operands(_MOST_OPERANDS)
                by = [*shares, *terms, *_CONSTANTS]
            elif tier == 2:
                steps, terms = 3, sorted({*near, *self._operands(_MOST_DEEP)})
                by, targets = [*shares, *self._operands(_MOST_DEEP)], _pairs(terms, shares)
            how = _first(_tries(value, slack, terms, dict.fromkeys(by)), targets)
            if how:
                support.how, support.steps = how, steps
                support.chance = 2 * slack / value * len(targets) * 3 * (len(terms) + len(by))
                return

    @late
    def given(self) -> list[Computed]:
        """The numbers that people reckon with, each once, those of results first."""
        usable = [q for q in self._quantities.numbers if q.is_operand and q.value]
        matches = dict[float, Computed]()
        for q in sorted(usable, key=lambda quantity: quantity.call == FROM_USER):
            matches.setdefault(abs(amount(q)), Computed(amount(q), q.key, "share" if q.is_share else "given"))
        return [*matches.values()]

    @late
    def _totals(self) -> list[Computed]:
        """The totals of whole keys, and the lengths of lists."""
        totals = (one for one in self._computed if one.how.startswith(("sum of", "all of", "items")))
        return [computed for computed in totals if " of " not in computed.how[7:]]

    def _operands(self, most: int) -> list[float]:
        """The values that steps are made of, in order: stated ones, totals, numbers of the evidence."""
        chosen = (*self._known[-most // 2 :], *self._totals[: most // 2], *self.given[:most])
        return sorted({abs(computed.value) for computed in chosen} - {0.0})

    @property
    def _shares(self) -> list[float]:
        """The shares that were stated, as parts of one, and one less and more by them."""
        stated = (*self._known[-_MOST_DEEP:], *self.given[:_MOST_OPERANDS])
        shares = (abs(one.value) / (100 if one.kind == "share" else 1) for one in stated)
        matches = {by: None for share in shares if 0 < share < 1 for by in (share, 1 + share, 1 - share)}
        return [*matches][: 3 * _MOST_DEEP]

    def _all_computed(self) -> Iterator[Computed]:
        """What is natural to reckon."""
        yield from (Computed(length, f"items of {key}") for key, length in self._ledger.lists)
        for records in (group[:_MOST_ROWS] for group in self._ledger.groups):
            rows = [members(self._quantities.by_record[record.index]) for record in records]
            parts = [("", {*range(len(rows))}), *_categories(records)]
            sizes = Counter(key for row in rows for key in row)
            for name, part in parts:
                yield Computed(len(part), f"rows of {name}")
                for key in sizes:
                    series = [rows[n][key] for n in sorted(part) if key in rows[n]]
                    if len(series) > 1:
                        yield from _of_series(f"{key} of {name}" if name else key, series)
                for one, other in combinations([key for key, size in sizes.items() if size > 1][:5], 2):
                    pairs = [(rows[n][one], rows[n][other]) for n in part if {one, other} <= rows[n].keys()]
                    total = fsum(amount(a) * amount(b) for a, b in pairs)
                    yield Computed(total, f"sum of {one} × {other} of {name}", "total")
        for record in self._ledger.records[:_MOST_ROWS]:
            numbers = members(self._quantities.by_record[record.index])
            own = [*map(amount, numbers.values())]
            if 2 < len(own) <= _MOST_VALUES:
                yield Computed(fsum(own), f"all of {record.key}")
                yield Computed(fsum(own) / len(own), f"mean of {record.key}")
        texts: dict[str | int, list[Quantity]] = defaultdict(list)
        for q in self._quantities.numbers:
            if q.call >= 0 and q.is_operand and (not (q.is_whole and q.key) or q.path.endswith("]")):
                head, mark, _ = q.path.partition("[")
                texts[f"{q.call} {head}" if mark else q.record].append(q)
        for series in texts.values():
            yield from _of_series("text", series[:_MOST_ROWS])


def _sums_of(run: Sequence[float]) -> Iterator[tuple[float, list[float]]]:
    """What amounts that are stated one after the other add up to."""
    for start in range(len(run) - 1):
        parts = run[start : start + _LONGEST_SUM]
        total = parts[0]
        for size, part in enumerate(parts[1:], 2):
            total += part
            yield round(total, 6), [*parts[:size]]


def _of_series(key: str, series: Sequence[Quantity]) -> Iterator[Computed]:
    """Sum and mean of one key."""
    total = fsum(map(amount, series))
    yield Computed(total, f"sum of {key}", "total")
    yield Computed(total / len(series), f"mean of {key}")


def _categories(records: Sequence[Record]) -> list[tuple[str, set[int]]]:
    """Which records share a value of one key, where the values of the key are few."""
    matches: dict[tuple[str, str], set[int]] = defaultdict(set)
    for place, record in enumerate(records):
        for leaf in record.leaves:
            if isinstance(leaf.value, (str, bool)) or leaf.value is None:
                matches[leaf.key, str(leaf.value)[:40]].add(place)
    sizes = Counter(key for key, _ in matches)
    return [
        (f"{key} {value}", rows)
        for (key, value), rows in matches.items()
        if len(rows) > 1 and sizes[key] <= _MOST_VALUES
    ]


def _has(values: list[float], value: float, slack: float) -> bool:
    """Whether one of `values`, which are in order, is `value`, give or take `slack`."""
    place = bisect_left(values, value - slack)
    return place < len(values) and values[place] <= value + slack


def _pairs(operands: Sequence[float], shares: Sequence[float]) -> list[float]:
    matches = {operand * share for operand in operands for share in shares}
    for one, other in combinations(operands, 2):
        matches |= {one + other, other - one, one * other, one / other, other / one}
    return sorted(matches - {0.0})


def _tries(
    value: float, slack: float, terms: Sequence[float], factors: dict[float, None]
) -> Iterator[tuple[float, float, float]]:
    """What a further number has to be, within what tolerance, to give `value` with one of the others."""
    for one in terms:
        if slack > one * 1e-12:  # smaller ones are lost in the sum
            targets = value - one, value + one, one - value
            yield from ((target, slack, one) for target in targets if target > 0)
    for by in factors:
        yield from ((value / by, slack / by, by), (value * by, slack * by, by))


def _first(tries: Iterator[tuple[float, float, float]], values: list[float]) -> str:
    for target, slack, other in tries:
        place = bisect_left(values, target - slack)
        if place < len(values) and values[place] <= target + slack:
            return f"{values[place]:.10g} and {other:.10g}"
    return ""


def members(numbers: Sequence[Quantity]) -> dict[str, Quantity]:
    """The numbers of a record that people reckon with, by key, each in its most natural reading."""
    return {q.key: q for q in reversed(numbers) if q.is_operand and q.is_whole}


def amount(number: Quantity | Token) -> float:
    """A number as people state it: cents as a part of the currency."""
    return number.value / 100 if number.is_minor else number.value


def _digits(token: Token) -> int:
    return sum(map(str.isdigit, token.text))


def slack_of(token: Token, value: float) -> float:
    """How far a number of the evidence may lie from one that is told: as rounded, or as approximate."""
    own, digits = token.tolerance(value), "".join(filter(str.isdigit, token.text))
    last = 10.0 ** (len(digits) - len(digits.rstrip("0")))  # what is rounded ends with zeros
    return max(own, min(_ABOUT * value, 2 * own * last)) if token.is_approximate else own


def _is_slip(value: float, other: float, decimals: int, least: int = 1) -> bool:
    """Whether one digit differs, if there are more than `least`, or two near each other changed places."""
    gap = round(abs(value - abs(other)) * 10**decimals)
    while gap and gap % 10 == 0:
        gap //= 10
    if not 0 < gap < 10 and gap % 9:
        return False
    one, two = f"{value:.{decimals}f}", f"{abs(other):.{decimals}f}"
    if 0 < gap < 10 and len(one) == len(two) > _LONG:
        return True  # one column is wrong, and what it carries
    return is_slip(one, two) and (len(one) > least or sorted(one) == sorted(two))
