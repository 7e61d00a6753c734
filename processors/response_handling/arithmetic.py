"""Arithmetic that people do with results: what is natural to reckon, and what two or three steps give.

Natural are sums, means, ranges and counts of one key over records, whole and by category, and the time
between moments. What else gives a number is searched for one number at a time, over operands that are few:
numbers of the evidence, those sums, and what the answer has told before, since totals are made in steps.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations
from math import fsum, isfinite, prod
from typing import Final, NamedTuple

from processors.response_handling.ledger import FROM_USER, Ledger, Quantity, Record
from processors.response_handling.timeline import Timeline

_MOST_ROWS: Final = 400
_MOST_CATEGORIES: Final = 12
_MOST_MADE: Final = 3_000
_MOST_OPERANDS: Final = 36
_MOST_DEEP: Final = 16
"""Operands of two steps, and of three."""
_CONSTANTS: Final = (2.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 100.0, 365.0, 1000.0)
"""By what people multiply and divide though nobody told them."""
_LONGEST_SHOWN = 40
_PLAIN: Final = ("", "money", "percent")
"""Dimensions in which numbers are taken as they stand; `money` is what a number with a unit may be as well."""


class Made(NamedTuple):
    """A number that can be reckoned with, as it stands and in base units, its dimension, and how it was made."""

    value: float
    base: float
    dimension: str
    how: str


class Reached(NamedTuple):
    """How a number was reached, and in how many steps."""

    how: str
    steps: int


class Arithmetic:
    """What can be reckoned from a ledger and a timeline."""

    def __init__(self, ledger: Ledger, timeline: Timeline) -> None:
        self._ledger = ledger
        self._timeline = timeline
        self._known: list[Made] = []

    def know(self, value: float, base: float, dimension: str) -> None:
        """Let a number of the answer that was supported be an operand of the next."""
        if all(known.value != value for known in self._known):
            self._known.append(Made(value, base, dimension, "told"))

    def natural(self, value: float, tolerance: float, dimension: str) -> str:
        """How a number is made naturally, empty if it is not; one with a dimension is in its base unit."""
        values, made = self._sorted(dimension)
        place = bisect_left(values, value - tolerance)
        return made[place].how if place < len(values) and values[place] <= value + tolerance else ""

    def reach(self, value: float, tolerance: float, dimension: str) -> Reached | None:
        """How two or three steps give a number, if they do."""
        operands = self._operands(dimension)
        if dimension == "percent":
            for other in operands:
                for share in (value / 100, 1 + value / 100, 1 - value / 100):
                    how = _hit(operands, other * share, other * tolerance / 100)
                    if how is not None and share > 0 and other != how:
                        return Reached(f"{how:.10g} against {other:.10g}", 2)
        shares = self._shares
        for step, terms in ((2, operands), (3, self._pairs(dimension))):
            constants = _CONSTANTS if step == 2 and not dimension else ()
            factors = dict.fromkeys(
                (*shares, *(self._operands("") if step == 2 else self._deep("")), *constants)
            )
            for other in operands if step == 2 else self._deep(dimension):
                for wanted in (value - other, value + other, other - value):
                    if wanted > 0 and (how := _hit(terms, wanted, tolerance)) is not None:
                        return Reached(f"{how:.10g} and {other:.10g}", step)
            for factor in factors:
                for wanted, by in ((value / factor, 1 / factor), (value * factor, factor)):
                    if (how := _hit(terms, wanted, tolerance * by)) is not None:
                        return Reached(f"{how:.10g} by {factor:.10g}", step)
                inverse = factor / value
                if step == 2 and (how := _hit(terms, inverse, inverse * tolerance / value)) is not None:
                    return Reached(f"{factor:.10g} by {how:.10g}", step)
        return None

    @cached_property
    def totals(self) -> list[Made]:
        """The sums and means of one key over all rows, and those by category."""
        return [made for made in self._made if made.how.startswith(("sum of", "mean of"))][:_MOST_ROWS]

    @cached_property
    def is_whole(self) -> bool:
        """Whether all numbers of the evidence that people may reckon with are operands."""
        return len(self._numbers) <= _MOST_OPERANDS

    def columns(self) -> Iterator[tuple[str, Sequence[Record], list[tuple[Quantity, Record]]]]:
        """The numbers of results under one key, row by row."""
        for records in self._ledger.groups:
            found: dict[str, list[tuple[Quantity, Record]]] = defaultdict(list)
            for record in records[:_MOST_ROWS]:
                for key, quantity in members(record).items():
                    found[key].append((quantity, record))
            yield from ((key, records, column) for key, column in found.items() if len(column) > 1)

    @cached_property
    def _made(self) -> list[Made]:
        found = [made for _, made in zip(range(_MOST_MADE), self._all_made(), strict=False)]
        return [made for made in found if isfinite(made.value)]

    def _all_made(self) -> Iterator[Made]:
        for lapse in sorted(self._timeline.lapses)[:_MOST_ROWS]:
            yield Made(lapse, lapse, "time", "time between two moments")
        for entry in self._ledger.lists:
            yield Made(float(entry.length), float(entry.length), "", f"items of {entry.key[:_LONGEST_SHOWN]}")
        for key, records, column in self.columns():
            yield from _of_series(key, [quantity for quantity, _ in column])
            for name, rows in _categories(records):
                part = [quantity for quantity, record in column if record.index in rows]
                if 1 < len(part) < len(column):
                    yield from _of_series(f"{key[:_LONGEST_SHOWN]} of {name}", part)
        for records in self._ledger.groups:
            yield Made(float(len(records)), float(len(records)), "", "rows")
            for name, rows in _categories(records):
                for count in (len(rows), len(records) - len(rows)):
                    yield Made(float(count), float(count), "", f"rows of {name}")
            yield from _of_products(records[:_MOST_ROWS])
        for record in self._ledger.records[:_MOST_ROWS]:
            own = [*members(record).values()]
            if 2 < len(own) <= _MOST_CATEGORIES:
                total = fsum(amount(quantity) for quantity in own)
                yield Made(total, total, "", f"all of {record.key[:_LONGEST_SHOWN]}")
        texts: dict[str, list[Quantity]] = defaultdict(list)
        for quantity in self._ledger.quantities:
            if quantity.call >= 0 and not (quantity.is_whole and quantity.key) and quantity.is_operand:
                texts[f"{quantity.path.partition('[')[0]} {_dimension(quantity)}"].append(quantity)
        for series in texts.values():
            yield from _of_series("text", series[:_MOST_ROWS])
            for size in range(2, min(len(series), _MOST_CATEGORIES)):
                total = fsum(amount(quantity) for quantity in series[:size])
                yield Made(total, total, _dimension(series[0]), f"first {size} of text")

    def _sorted(self, dimension: str) -> tuple[list[float], list[Made]]:
        if dimension not in self._tables:
            is_plain = dimension in _PLAIN
            fitting = {"": None, "percent": ("", "percent"), "money": ("", "money")}.get(
                dimension, (dimension,)
            )
            own = [made for made in self._made if fitting is None or made.dimension in fitting]
            own.sort(key=lambda made: abs(made.value if is_plain else made.base))
            self._tables[dimension] = [abs(made.value if is_plain else made.base) for made in own], own
        return self._tables[dimension]

    @cached_property
    def _tables(self) -> dict[str, tuple[list[float], list[Made]]]:
        return {}

    @cached_property
    def _numbers(self) -> list[Made]:
        """The numbers that people reckon with, each once, those of results first."""
        found: dict[float, Made] = {}
        for is_user in (False, True):
            for quantity in self._ledger.quantities:
                if quantity.is_operand and quantity.value and is_user is (quantity.call == FROM_USER):
                    found.setdefault(abs(amount(quantity)), _as_made(quantity))
        return list(found.values())

    def _operands(self, dimension: str) -> list[float]:
        """The values that steps are made of, in order: told ones, sums, numbers of the evidence."""
        sums = [made for made in self._made if made.how.startswith(("sum of", "items", "time", "first"))]
        whole = [made for made in sums if " of " not in made.how[7:]]
        chosen = (*self._known[-_MOST_DEEP:], *whole[:_MOST_DEEP], *self._numbers[:_MOST_OPERANDS])
        if dimension in _PLAIN:
            found = {abs(made.value) for made in chosen if not made.how.startswith("time")}
        else:
            found = {abs(made.base) for made in chosen if made.dimension == dimension}
        return sorted(found - {0.0})

    def _deep(self, dimension: str) -> list[float]:
        """The operands of three steps: as many told ones, sums and numbers as a wide search allows."""
        sums = [made for made in self._made if made.how.startswith("sum of") and " of " not in made.how[7:]]
        chosen = (*self._known[-8:], *sums[:4], *self._numbers[:_MOST_DEEP])
        is_plain = dimension in _PLAIN
        found = {
            abs(made.value if is_plain else made.base)
            for made in chosen
            if is_plain or made.dimension == dimension
        }
        return sorted(found - {0.0})[: _MOST_DEEP + 8]

    @property
    def _shares(self) -> list[float]:
        """The shares that were told, as parts of one, what is left of one and what is more than one by them."""
        found: dict[float, None] = {}
        for made in (*self._known, *self._numbers):
            share = abs(made.value) / 100 if made.dimension == "percent" else abs(made.value)
            if 0 < share < 1:
                found.update(dict.fromkeys((share, 1 + share, 1 - share)))
        return [*found][: 3 * _MOST_DEEP]

    def _pairs(self, dimension: str) -> list[float]:
        found: set[float] = set()
        operands = self._deep(dimension)
        for one, other in combinations(operands, 2):
            found |= {one + other, other - one, one * other, one / other, other / one}
        found |= {operand * share for operand in operands for share in self._shares}
        return sorted(found - {0.0})


def members(record: Record) -> dict[str, Quantity]:
    """The numbers of a record that people reckon with, by key, each in its most natural reading."""
    return {q.key: q for q in reversed(record.numbers) if q.is_operand and q.is_whole}


def amount(quantity: Quantity) -> float:
    """The number of a quantity as people tell it: cents as a part of the currency."""
    return quantity.value / 100 if quantity.is_minor else quantity.value


def _dimension(quantity: Quantity) -> str:
    return (
        quantity.unit.dimension
        if quantity.unit
        else "money"
        if quantity.currencies or quantity.is_minor
        else ""
    )


def _as_made(quantity: Quantity) -> Made:
    return Made(amount(quantity), quantity.base, _dimension(quantity), quantity.key)


def _of_series(key: str, series: Sequence[Quantity]) -> Iterator[Made]:
    """Sum, mean and range of one key; counts of what is positive or negative."""
    dimension, name = _dimension(series[0]), key[:_LONGEST_SHOWN]
    factor = series[0].base / series[0].value if series[0].value else 1.0
    values = [amount(quantity) for quantity in series]
    for value, how in (
        (fsum(values), "sum of"), (fsum(values) / len(values), "mean of"), (max(values) - min(values), "range of"),
        (fsum(value for value in values if value > 0), "gains of"),
        (fsum(value for value in values if value < 0), "losses of"), (sorted(values)[len(values) // 2], "median of"),
    ):  # fmt: skip
        yield Made(value, value * factor, dimension, f"{how} {name}")
    for count, how in (
        (sum(value > 0 for value in values), "above 0"),
        (sum(value == 0 for value in values), "0"),
    ):
        yield Made(float(count), float(count), "", f"{name} {how}")


def _of_products(records: Sequence[Record]) -> Iterator[Made]:
    """The sums of the products of two keys, as of quantities and prices, whole and by category."""
    rows = [members(record) for record in records]
    keys = [key for key, count in Counter(key for row in rows for key in row).items() if count > 1][:5]
    parts = [("all", {record.index for record in records}), *_categories(records)]
    amounts = [[amount(quantity) for quantity in row.values()] for row in rows]
    total = fsum(prod(values) for values in amounts if values)
    yield Made(total, total, "", "sum of rows")
    for one, other in combinations(keys, 2):
        for name, part in parts:
            chosen = [
                (amount(row[one]), amount(row[other])) for row, record in zip(rows, records, strict=True)
                if record.index in part and one in row and other in row
            ]  # fmt: skip
            total = fsum(a * b for a, b in chosen)
            yield Made(total, total, "", f"sum of {one} × {other} of {name}"[:90])
            below = sum(a < b for a, b in chosen)
            yield Made(float(below), float(below), "", f"rows with {one} below {other}")


def _categories(records: Sequence[Record]) -> list[tuple[str, set[int]]]:
    """Which records share a value of one key, where the values of the key are few."""
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for record in records[:_MOST_ROWS]:
        for leaf in record.leaves:
            is_text = isinstance(leaf.value, str) and len(leaf.value) <= _LONGEST_SHOWN
            if is_text or isinstance(leaf.value, bool) or leaf.value is None:
                found[leaf.key, str(leaf.value)].add(record.index)
    sizes = Counter(key for key, _ in found)
    return [
        (f"{key} {value}", members)
        for (key, value), members in found.items()
        if sizes[key] <= _MOST_CATEGORIES
    ]


def _hit(values: Sequence[float], wanted: float, tolerance: float) -> float | None:
    """The first of `values`, which are in order, that is `wanted`."""
    place = bisect_left(values, wanted - tolerance)
    return values[place] if place < len(values) and values[place] <= wanted + tolerance else None


def runs(values: Sequence[float], longest: int = 9) -> Iterable[tuple[float, list[float]]]:
    """The sums of numbers told in a row, with the numbers."""
    for start in range(len(values)):
        for size in range(2, longest):
            if start + size <= len(values):
                yield fsum(values[start : start + size]), [*values[start : start + size]]
