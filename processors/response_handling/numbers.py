"""Numbers of the answer, and how the evidence gives them, if it does.

A number is supported directly (as it stands, rounded, in another unit), naturally (sums, means, ranges and
counts of one key over records, whole and by category; time between moments) or in two or three steps over
operands that are few: numbers of the evidence, totals, and what the answer told before.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice
from math import fsum, prod
from typing import Final, NamedTuple

from processors.response_handling.ledger import FROM_USER, Record
from processors.response_handling.lexicons.units import Unit, factors_of
from processors.response_handling.quantities import Quantity
from processors.response_handling.reading import Token
from processors.response_handling.response import Response

_SMALL, _PEOPLE_KNOW = 12, frozenset({24.0, 60.0, 100.0, 365.0, 1000.0})
"""Whole numbers up to the first, and those, without a unit are counts and marks that are not looked up."""
_CONSTANTS: Final = (2.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 100.0, 365.0)
"""By what people multiply and divide though nobody told them."""
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
_BEFORE, _AFTER = 60, 20
"""Characters before and after a number in which a word says what was reckoned."""
_LONGEST_SUM, _FEW_PARTS = 8, 5
"""Amounts told one after the other that are added up, and of how many one may be taken off."""
_MOST_SEARCHED: Final = 15
"""Numbers of one answer searched for in steps; with more, they are of something that was not read."""
_MOST_ROWS, _MOST_VALUES, _MOST_COMPUTED, _MOST_OPERANDS, _MOST_DEEP = 400, 12, 3_000, 36, 16
_PLAIN: Final = {"": None, "percent": ("", "percent"), "money": ("", "money")}
"""Dimensions in which numbers are taken as they stand, and which others fit them; the last is of amounts."""


STATED: Final = "what is stated"
CLAUSE: Final = re.compile(r"[;()（），；、]|[,:](?!\d)|(?<=\s)[-–—](?=\s)")
"""Where the parts of a sentence end."""


class Computed(NamedTuple):
    """A number to reckon with: as it stands, in base units, its dimension, how it was made, and its kind."""

    value: float
    base: float
    dimension: str
    how: str
    kind: str = ""


@dataclass(slots=True)
class Support:
    """A number of the answer: what it stands for directly, or how it is reckoned, or neither.

    `chance` is about how many of the expressions tried would give a number of so many digits by chance;
    `is_local` says that they were made of what the sentence itself tells.
    """

    token: Token
    direct: list[Quantity] = field(default_factory=list)
    how: str = ""
    steps: int = 0
    is_checked: bool = True
    chance: float = 0.0
    is_local: bool = False

    @property
    def is_supported(self) -> bool:
        """Whether anything gives the number, or nothing need."""
        return bool(self.direct or self.how or not self.is_checked)

    @property
    def is_sure(self) -> bool:
        """Whether what gives the number does so hardly by chance."""
        return bool(self.direct or (self.how and self.chance <= _CHANCE))


class Numbers:
    """The numbers of one answer, each looked up once."""

    def __init__(self, response: Response) -> None:
        self._response, self._ledger, self._quantities = response, response.ledger, response.quantities
        self.are_foreign = False
        """Whether so many numbers have no support that they are of something that was not read."""
        self._known: list[Computed] = []
        self._tables: dict[str, tuple[list[float], list[Computed]]] = {}
        self.supports = [Support(token) for token in response.tokens if token.kind == "number"]
        self._starts = [support.token.start for support in self.supports]
        for support in self.supports:
            support.direct = self._direct(support.token)
            support.is_checked = self._is_checked(support.token)
        alike: dict[object, list[float]] = defaultdict(list)
        for token in (support.token for support in self.supports if not support.token.is_spelled):
            alike[token.unit, token.currencies].append(token.value)
        self._sums = {total: parts for run in alike.values() for total, parts in _sums_of(run)}
        for support in self.supports:
            self._know(support)
        for support in self.supports:
            if not support.direct:
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
        value = support.token.value
        if (support.direct or support.how) and all(computed.value != value for computed in self._known):
            self._known.append(_as_computed(support.token))

    @cached_property
    def _computed(self) -> list[Computed]:
        return [*islice(self._all_computed(), _MOST_COMPUTED)]

    def beside(self, token: Token) -> list[Support]:
        """The other numbers of the sentence of a number, the nearest first, a few."""
        own = self.within(*self._response.span_of(token))
        others = [support for support in own if support.token is not token]
        return sorted(others, key=lambda other: abs(other.token.start - token.start))[:_MOST_BESIDE]

    def kinds_near(self, support: Support) -> frozenset[str]:
        """The kinds of words next to a number of the answer, up to the numbers around it."""
        token, output = support.token, self._response.output
        start, end = self._response.span_of(token)
        others = [other.token for other in self.beside(token) if other.is_checked]
        before = max([start, token.start - _BEFORE, *(o.end for o in others if o.end <= token.start)])
        after = min([end, token.end + _AFTER, *(o.start for o in others if o.start >= token.end)])
        return self._response.words.categories(output[before:after])

    def of_kind(self, kind: str, support: Support) -> Iterator[Computed]:
        """The totals (or averages) that evidence and sentence give, in the unit of a number told."""
        token, unit = support.token, support.token.unit
        dimension, factor = _dimension(token), unit.factors[0] if unit else 1.0
        others = (other.token for other in self.beside(token) if other.direct)
        stated = [one for one in others if (one.unit, one.currencies) == (unit, token.currencies)]
        local = [fsum(one.total for one in stated) / factor] if len(stated) > 1 else []
        if kind == "mean":
            local = [total / len(stated) for total in local]
        yield from (Computed(value, 0.0, "", STATED, kind) for value in local)
        for computed in self._computed:
            if computed.kind in (kind, "part") and computed.dimension in ("", "money", dimension):
                is_own = unit is not None and computed.dimension == dimension
                yield computed._replace(value=abs(computed.base / factor if is_own else computed.value))

    def within(self, start: int, end: int) -> list[Support]:
        """The numbers told in a part of the answer."""
        first = bisect_left(self._starts, start)
        return self.supports[first : bisect_left(self._starts, end, lo=first)]

    def slip(self, token: Token) -> Computed | None:
        """The number of a result, or a total, that is not told and of which a number is a slip."""
        if token.is_approximate or sum(map(str.isdigit, token.text)) < _SHORT:
            return None
        decimals, value = token.readings[token.reading][1], token.value
        near = (computed for computed in self._slippable if value < 10 * abs(computed.value) < 100 * value)
        return next((computed for computed in near if is_slip(value, computed.value, decimals, _SHORT)), None)

    @cached_property
    def _slippable(self) -> list[Computed]:
        """The numbers of results and the totals that are not told, one for each value."""
        totals = [
            computed
            for computed in self._computed[:_MOST_ROWS]
            if computed.how.startswith(("sum of", "mean of"))
        ]
        given = [q for q in self._quantities.numbers if q.call >= 0 and q.is_operand][:_MOST_ROWS]
        matches = [*(Computed(amount(q), q.base, "given", q.key) for q in given), *totals]
        kinds_near = {support.token.value for support in self.supports}
        return [*{abs(m.value): m for m in reversed(matches) if abs(m.value) not in kinds_near}.values()][
            ::-1
        ]

    def in_another_unit(self, token: Token) -> Quantity | None:
        """The number of the evidence that has the digits of one told, in another unit or power of ten."""
        unit, slack = token.unit, token.tolerance(token.value)
        is_bare = unit is None and not token.currencies and token.scale == 1.0
        if not token.value or is_bare or (unit and unit.dimension in ("percent", "temperature", "time")):
            return None
        digits = f"{token.readings[token.reading][0]:.10g}".replace(".", "").strip("0")
        ratios = {10.0**power for power in range(-9, 10) if power and len(digits) >= _SHORT}
        ratios |= {factor / unit.factors[0] for factor in factors_of(unit.dimension)} if unit else set()
        factor = unit.factors[0] if unit else 1.0
        for ratio in ratios:
            near = self._between(unit.dimension if unit else "", token.total * ratio, slack * factor * ratio)
            matches = (q for q in near if q.call >= 0 and (unit is None) == (q.unit is None))
            if (quantity := next(matches, None)) is not None:
                return quantity
        return None

    def is_of_results(self, token: Token) -> bool:
        """Whether results have numbers about the size of one of the answer, of its dimension or many of any.

        What they have nothing of was not read from them: it is knowledge of the world, or of a file.
        """
        dimension = token.unit.dimension if token.unit else ""
        results = [q for q in self._quantities.numbers if q.call >= 0 and q.is_operand]
        if len(results) >= _MANY or (_is_share(token) and len(results) > 1):
            own, sizes = token.value, [abs(q.value) for q in results]
        else:
            own = token.total if dimension else token.value
            sizes = [abs(q.base) for q in results if (q.unit.dimension if q.unit else "") == dimension]
        return any(size <= _SIZE * own and own <= _SIZE * size for size in sizes)

    def _is_checked(self, token: Token) -> bool:
        value, is_bare = token.value, token.unit is None and not token.currencies and token.scale == 1.0
        is_small = value == int(value) and (is_bare and value <= _SMALL)
        is_small |= value in _PEOPLE_KNOW and (is_bare or _dimension(token) == "time")
        is_year = is_bare and 1900 <= value <= 2100 and token.text.isdigit()
        is_name = _dimension(token) in ("", "time") and token.value in self._response.plain_numbers
        return not (token.is_spelled or not value or is_small or is_year or is_name)

    @cached_property
    def _views(self) -> dict[str, list[tuple[float, int, Quantity]]]:
        """The numbers of the evidence in order: as they stand, and in base units by dimension."""
        matches: dict[str, list[tuple[float, int, Quantity]]] = defaultdict(list)
        for place, quantity in enumerate(self._quantities.numbers):
            matches[""].append((abs(quantity.value), place, quantity))
            if quantity.unit is not None:
                matches[quantity.unit.dimension].append((abs(quantity.base), place, quantity))
        return {view: sorted(entries) for view, entries in matches.items()}

    def _between(self, view: str, value: float, slack: float) -> list[Quantity]:
        entries = self._views.get(view, [])
        start, end = bisect_left(entries, (value - slack,)), bisect_right(entries, (value + slack, 1 << 60))
        return [quantity for _, _, quantity in entries[start : min(end, start + 60)]]

    def _direct(self, token: Token) -> list[Quantity]:
        unit, matches = token.unit, list[Quantity]()
        for value in token.values:
            slack = slack_of(token, value)
            plain = [] if token.extra else self._between("", value, slack)
            if unit is None:
                minor = self._between("", value * 100, slack * 100)
                matches += plain + [q for q in minor if q.is_minor]
            elif unit.dimension == "percent":
                matches += [q for q in plain if q.unit is None or q.unit.dimension == "percent"]
                matches += [q for q in self._between("", value / 100, slack / 100) if q.unit is None]
                matches += self._between("percent", value * unit.factors[0], slack * unit.factors[0])
            elif unit.dimension == "temperature":
                matches += [q for q in plain if q.unit is None or unit.symbol in ("", q.unit.symbol)]
                near = (q for _, _, q in self._views.get("temperature", [])[:_MOST_ROWS] if q.unit)
                matches += [
                    q for q in near if q.unit and abs(_converted(q.value, q.unit, unit) - value) <= slack
                ]
            else:
                matches += [q for q in plain if q.unit is None]
                for factor in unit.factors:
                    whole = token.total / unit.factors[0] * factor if token.extra else value * factor
                    loose = slack * factor * 0.98 + (whole * 0.001 if unit.dimension == "time" else 0.0)
                    matches += self._between(unit.dimension, whole, loose)
        return list({id(quantity): quantity for quantity in matches}.values())

    def _targets(self, token: Token) -> Iterator[tuple[float, float, str]]:
        """Value, tolerance and dimension of a number that is searched for, in base units and as it stands."""
        slack, unit = slack_of(token, token.value), token.unit
        if unit is not None and unit.dimension not in ("percent", "temperature"):
            whole = token.total / unit.factors[0]
            yield from ((whole * factor, slack * factor, unit.dimension) for factor in unit.factors)
        if not token.extra:
            part = 0.01 if token.is_minor else 1.0
            yield (
                token.value * part,
                slack * part,
                "" if unit is None else "percent" if _is_share(token) else "money",
            )
        elif unit is not None:
            yield whole_of(token), slack, "money"

    def _natural(self, support: Support) -> None:
        for value, slack, dimension in self._targets(support.token):
            values, computed = self._table(dimension)
            place = bisect_left(values, value - slack)
            if place < len(values) and values[place] <= value + slack:
                support.how, support.steps = computed[place].how, 1
                support.chance = 1.0 if dimension == "time" else 0.0  # lapses are many
                return

    def _table(self, dimension: str) -> tuple[list[float], list[Computed]]:
        if dimension not in self._tables:
            fitting = _PLAIN.get(dimension, (dimension,))
            own = [
                (_of(computed, dimension), computed)
                for computed in self._computed
                if not fitting or computed.dimension in fitting
            ]
            own.sort(key=lambda entry: entry[0])
            self._tables[dimension] = [value for value, _ in own], [computed for _, computed in own]
        return self._tables[dimension]

    def _reach(self, support: Support) -> None:
        """Look for steps that give a number: over what its sentence tells, then over all that is known."""
        run = self._sums.get(round(support.token.value, 6), [])
        if run and support.token.value not in run:
            support.how, support.steps = " + ".join(f"{part:.10g}" for part in run), 2
            return
        stated = [one.token for one in self.beside(support.token) if one.is_supported]
        amounts = [one.value for one in stated if not _is_share(one)]
        rests = (2 * one - fsum(amounts) for one in (amounts if len(amounts) > 2 else ()))
        if any(abs(rest - support.token.value) <= slack_of(support.token, rest) for rest in rests):
            support.how, support.steps, support.is_local = "one less the others", 2, True
            return
        shares = self._shares
        for value, slack, dimension in self._targets(support.token):
            near = _values([_as_computed(one) for one in stated], dimension)
            by = [
                abs(_as_computed(one).value) / (100 if _is_share(one) else 1) for one in stated if one.value
            ]
            by += [other for share in by if share < 1 for other in (1 + share, 1 - share)]
            constants, is_share = (2.0,) if dimension else _CONSTANTS, dimension == "percent"
            if is_share:  # people add up and compare shares
                added = sorted(abs(m.value) for m in (*self._known, *self.given) if m.dimension == dimension)
                if how := _first(_tries(value, slack, added, {}), added):
                    support.how, support.steps = how, 2
                    return
            for tier in range(3):
                steps, terms, targets = 2, near, near
                if tier == 1:
                    terms = targets = self._operands(dimension, _MOST_OPERANDS)
                    by = [*shares, *self._operands("", _MOST_OPERANDS), *constants]
                elif tier == 2:
                    steps, terms = 3, sorted({*near, *self._operands(dimension, _MOST_DEEP)})
                    by, targets = [*shares, *self._operands("", _MOST_DEEP)], _pairs(terms, shares)
                how = _first(_tries(value, slack, terms, dict.fromkeys(by), is_share=is_share), targets)
                chance = 2 * slack / value * len(targets) * 3 * (len(terms) + len(by))
                if how and (not support.how or chance < support.chance):
                    support.how, support.steps, support.chance = how, steps, chance
                    support.is_local = terms is near
                if how and chance <= _CHANCE:
                    return

    @cached_property
    def given(self) -> list[Computed]:
        """The numbers that people reckon with, each once, those of results first."""
        usable = [q for q in self._quantities.numbers if q.is_operand and q.value]
        usable.sort(key=lambda quantity: quantity.call == FROM_USER)
        matches = {
            abs(amount(q)): Computed(amount(q), q.base, _dimension(q), q.key) for q in reversed(usable)
        }
        return [*reversed(matches.values())]

    @cached_property
    def _totals(self) -> list[Computed]:
        """The totals of whole keys, the lengths of lists and of time."""
        totals = (
            computed
            for computed in self._computed
            if computed.how.startswith(("sum of", "all of", "items", "time"))
        )
        return [computed for computed in totals if " of " not in computed.how[7:]]

    def _operands(self, dimension: str, most: int) -> list[float]:
        """The values that steps are made of, in order: told ones, totals, numbers of the evidence."""
        chosen = (*self._known[-most // 2 :], *self._totals[: most // 2], *self.given[:most])
        return _values(chosen, dimension)

    @property
    def _shares(self) -> list[float]:
        """The shares that were told, as parts of one, and one less and more by them."""
        stated = (*self._known[-_MOST_DEEP:], *self.given[:_MOST_OPERANDS])
        shares = (
            abs(computed.value) / (100 if computed.dimension == "percent" else 1) for computed in stated
        )
        matches = {by: None for share in shares if 0 < share < 1 for by in (share, 1 + share, 1 - share)}
        return [*matches][: 3 * _MOST_DEEP]

    def _all_computed(self) -> Iterator[Computed]:
        """What is natural to reckon."""
        for lapse in self._quantities.lapses()[:_MOST_ROWS]:
            yield Computed(lapse, lapse, "time", "time between two moments")
        yield from (_count(length, f"items of {key}") for key, length in self._ledger.lists)
        for records in (group[:_MOST_ROWS] for group in self._ledger.groups):
            rows = [members(self._quantities.by_record[record.index]) for record in records]
            parts = [("", {*range(len(rows))}), *_categories(records)]
            sizes = Counter(key for row in rows for key in row)
            for name, part in parts:
                yield _count(len(part), f"rows of {name}")
                for key in sizes:
                    series = [rows[n][key] for n in sorted(part) if key in rows[n]]
                    if len(series) > 1:
                        yield from _of_series(f"{key} of {name}" if name else key, series)
                for one, other in combinations([key for key, size in sizes.items() if size > 1][:5], 2):
                    pairs = [
                        (amount(rows[n][one]), amount(rows[n][other]))
                        for n in part
                        if {one, other} <= rows[n].keys()
                    ]
                    total = fsum(a * b for a, b in pairs)
                    yield Computed(total, total, "", f"sum of {one} × {other} of {name}", "total")
                    for weights in map(fsum, zip(*pairs, strict=True)):
                        if weights:
                            mean = total / weights
                            yield Computed(mean, mean, "", f"mean of {one} by {other} of {name}", "part")
            total = fsum(prod(map(amount, row.values())) for row in rows if 0 < len(row) < 4)
            yield Computed(total, total, "", "sum of rows", "total")
        for record in self._ledger.records[:_MOST_ROWS]:
            numbers = self._quantities.by_record[record.index]
            own = [amount(quantity) for quantity in members(numbers).values()]
            is_even = len(own) == len(record.leaves)
            counted = [(float(q.key), q.value) for q in numbers[:_MOST_VALUES] if _is_numeric(q.key)]
            if len(counted) > 1 and (size := fsum(count for _, count in counted)):
                mean = fsum(value * count for value, count in counted) / size
                yield Computed(mean, mean, "", f"mean of {record.key} by count", "mean")
            if 2 < len(own) <= _MOST_VALUES:
                yield Computed(fsum(own), fsum(own), "", f"all of {record.key}")
                yield Computed(
                    fsum(own) / len(own), 0.0, "", f"mean of {record.key}", "mean" if is_even else "part"
                )
        texts: dict[tuple[str | int, str], list[Quantity]] = defaultdict(list)
        for q in self._quantities.numbers:
            if q.call >= 0 and q.is_operand and (not (q.is_whole and q.key) or q.path.endswith("]")):
                head, mark, _ = q.path.partition("[")
                texts[f"{q.call} {head}" if mark else q.record, _dimension(q)].append(q)
        for series in texts.values():
            yield from _of_series("text", series[:_MOST_ROWS])


def _is_numeric(key: str) -> bool:
    return len(key) < _LONG and key.replace(".", "", 1).isdecimal()


def _of(computed: Computed, dimension: str) -> float:
    return abs(computed.value if dimension in _PLAIN else computed.base)


def _sums_of(run: Sequence[float]) -> Iterator[tuple[float, list[float]]]:
    """What amounts that are told one after the other add up to, and with one of a few taken off."""
    for start in range(len(run) - 1):
        parts = run[start : start + _LONGEST_SUM]
        total = parts[0]
        for size, part in enumerate(parts[1:], 2):
            total += part
            if size <= _FEW_PARTS:
                for place, off in enumerate(parts[:size]):
                    yield round(total - 2 * off, 6), [*parts[:place], -off, *parts[place + 1 : size]]
            yield round(total, 6), [*parts[:size]]


def _count(value: int, how: str) -> Computed:
    return Computed(float(value), float(value), "", how)


def _of_series(key: str, series: Sequence[Quantity]) -> Iterator[Computed]:
    """Sum, mean, median and range of one key, gains and losses, and counts of what is above nothing."""
    values = [amount(quantity) for quantity in series]
    factor = series[0].base / series[0].value if series[0].value else 1.0
    ups, total = [value for value in values if value > 0], fsum(values)
    computed = (
        ("sum", total, "total"),
        ("mean", total / len(values), "mean"),
        ("median", sorted(values)[len(values) // 2], "part"),
        ("range", max(values) - min(values), ""),
        ("gains", fsum(ups), "part"),
        ("losses", total - fsum(ups), "part"),
    )
    for how, value, kind in computed:
        yield Computed(value, value * factor, _dimension(series[0]), f"{how} of {key}", kind)
    for value in values if 2 < len(values) <= _MOST_VALUES else ():
        rest = (total - value) / (len(values) - 1)
        yield Computed(rest, rest * factor, _dimension(series[0]), f"mean but one of {key}", "part")


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


def _values(chosen: Sequence[Computed], dimension: str) -> list[float]:
    """The values of numbers to reckon with in a dimension, in order."""
    if dimension in _PLAIN:
        matches = {abs(computed.value) for computed in chosen if not computed.how.startswith("time")}
    else:
        matches = {abs(computed.base) for computed in chosen if computed.dimension == dimension}
    return sorted(matches - {0.0})


def _pairs(operands: Sequence[float], shares: Sequence[float]) -> list[float]:
    matches = {operand * share for operand in operands for share in shares}
    for one, other in combinations(operands, 2):
        matches |= {one + other, other - one, one * other, one / other, other / one}
    return sorted(matches - {0.0})


def _tries(
    value: float, slack: float, terms: Sequence[float], factors: dict[float, None], *, is_share: bool = False
) -> Iterator[tuple[float, float, float]]:
    """What a further number has to be, within what tolerance, to give `value` with one of the others."""
    if is_share:
        shares = [share for share in (value / 100, 1 + value / 100, 1 - value / 100) if share > 0]
        for one in terms:
            yield from ((one * share, one * slack / 100, one) for share in shares if share != 1)
        return
    for one in terms:
        if slack > one * 1e-12:  # smaller ones are lost in the sum
            yield from (
                (target, slack, one) for target in (value - one, value + one, one - value) if target > 0
            )
    for by in factors:
        yield from ((value / by, slack / by, by), (value * by, slack * by, by))


def _first(
    tries: Iterator[tuple[float, float, float]] | list[tuple[float, float, float]], values: list[float]
) -> str:
    for target, slack, other in tries:
        place = bisect_left(values, target - slack)
        if place < len(values) and values[place] <= target + slack:
            share = values[place] / 100
            if other not in (share, 1 + share, 1 - share):  # no number is a share of itself
                return f"{values[place]:.10g} and {other:.10g}"
    return ""


def members(numbers: Sequence[Quantity]) -> dict[str, Quantity]:
    """The numbers of a record that people reckon with, by key, each in its most natural reading."""
    return {q.key: q for q in reversed(numbers) if q.is_operand and q.is_whole}


def amount(quantity: Quantity) -> float:
    """The number of a quantity as people tell it: cents as a part of the currency."""
    return quantity.value / 100 if quantity.is_minor else quantity.value


def _dimension(number: Quantity | Token) -> str:
    is_money = isinstance(number, Quantity) and (number.is_money or number.is_minor)
    return number.unit.dimension if number.unit else "money" if is_money else ""


def _is_share(token: Token) -> bool:
    return token.unit is not None and token.unit.dimension == "percent"


def _as_computed(token: Token) -> Computed:
    value = token.value / 100 if token.is_minor else token.value
    return Computed(value, token.total, _dimension(token), "told")


def whole_of(token: Token) -> float:
    """A number in its unit, with all its parts."""
    return token.total / token.unit.factors[0] if token.unit else token.value


def _converted(value: float, unit: Unit, other: Unit) -> float:
    """A temperature in another unit."""
    kelvin = {"F": (value + 459.67) / 1.8, "K": value}.get(unit.symbol, value + 273.15)
    return {"F": kelvin * 1.8 - 459.67, "K": kelvin}.get(other.symbol, kelvin - 273.15)


def slack_of(token: Token, value: float) -> float:
    """How far a number of the evidence may lie from one that is told: as rounded, or as approximate."""
    own, digits = token.tolerance(value), "".join(filter(str.isdigit, token.text))
    last = 10.0 ** (len(digits) - len(digits.rstrip("0")))  # what is rounded ends with zeros
    return max(own, min(_ABOUT * value, 2 * own * last)) if token.is_approximate else own


def is_slip(value: float, other: float, decimals: int, least: int = 1) -> bool:
    """Whether one digit differs, if there are more than `least`, or two near each other changed places."""
    gap = round(abs(value - abs(other)) * 10**decimals)
    while gap and gap % 10 == 0:
        gap //= 10
    if not 0 < gap < 10 and gap % 9:
        return False
    one, two = f"{value:.{decimals}f}", f"{abs(other):.{decimals}f}"
    places = [place for place, pair in enumerate(zip(one, two, strict=False)) if pair[0] != pair[1]]
    if len(one) != len(two) or len(places) < 2:
        return len(one) == len(two) > least and len(places) == 1
    if gap < 10 and len(one) > _LONG:
        return True  # one column is wrong, and what it carries
    first, last = places[0], places[-1]
    return len(places) == 2 and one[first] == two[last] and one[last] == two[first] and last - first <= 2
