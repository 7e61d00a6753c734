"""Arithmetic that people do with results: one engine with typed operands, bounded work and shown expressions.

What is natural to reckon is made first: sums, means, ranges and differences of one key over records, by
category and
as running totals; sums, differences, products and shares within a record; counts; time between moments.
Deeper
expressions are tried for one number at a time, and count only where so many attempts would hardly hit by
chance.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, combinations
from typing import Final, NamedTuple

from processors.response_handling.ledger import FROM_USER, Ledger, Quantity, Record
from processors.response_handling.lexicons.keys import STATE_KEYS
from processors.response_handling.timeline import Timeline

MAX_SERIES: Final = 400
_PAIRED_SERIES: Final = 16
_RUNNING_SERIES: Final = 40
_MOST_OPERANDS: Final = 14
_MOST_CATEGORIES: Final = 12
_MOST_MADE: Final = 3_000
_MOST_TERMS: Final = 24
_MOST_LUCK: Final = 0.5
"""Hits by chance that a search may expect, where its hits are to count."""
_LONG: Final = 4_000
"""How many times its tolerance a number is, which nothing fits in a wide search either."""
_DECADES: Final = 4.0
"""Over how many powers of e the numbers tried are spread."""


class Made(NamedTuple):
    """A number that was reckoned: its value in base units, its dimension, and how, for people."""

    value: float
    dimension: str
    how: str
    parts: tuple[float, ...]

    def shown(self) -> str:
        """The expression with its numbers."""
        try:
            return self.how.format(*(f"{part:.10g}" for part in self.parts))
        except (IndexError, KeyError, ValueError):  # keys of results stand in it, and may hold braces
            return self.how


class Operand(NamedTuple):
    """A number of the evidence in base units."""

    value: float
    dimension: str
    name: str
    record: int
    call: int
    raw: float = 0.0
    """The value as it stands, by which prices and rates of a unit are reckoned."""


class Arithmetic:
    """What can be reckoned from a ledger. `money` says that amounts without a unit may be money."""

    def __init__(self, ledger: Ledger, timeline: Timeline) -> None:
        self._timeline = timeline
        self._ledger = ledger
        self._known: list[Operand] = []
        self.said: list[float] = []
        """All numbers of the answer, in their order."""

    def know(self, value: float, dimension: str, raw: float = 0.0) -> None:
        """Let a number of the answer that was supported be an operand of the next."""
        if len(self._known) < _MOST_OPERANDS and all(known.value != value for known in self._known):
            self._known.append(Operand(value, dimension, "", -2, FROM_USER, raw))
            self.__dict__.pop("_terms", None)
            self.__dict__.pop("_pairs", None)

    def natural(self, value: float, tolerance: float, dimensions: Sequence[str]) -> Made | None:
        """The natural expression that gives `value`, if any."""
        for dimension in dimensions:
            values, made = self._sorted.get(dimension, ((), ()))
            place = bisect_left(values, value - tolerance)
            if place < len(values) and values[place] <= value + tolerance:
                return made[place]
        return None

    def nearest(self, value: float, dimensions: Sequence[str]) -> Made | None:
        """The natural expression whose value is nearest, within a tenth."""
        best: Made | None = None
        for dimension in dimensions:
            values, made = self._sorted.get(dimension, ((), ()))
            place = bisect_left(values, value)
            for candidate in made[max(0, place - 1) : place + 1]:
                if abs(candidate.value - value) <= abs(value) / 10 and (
                    best is None or abs(candidate.value - value) < abs(best.value - value)
                ):
                    best = candidate
        return best

    @cached_property
    def columns(self) -> list[tuple[str, list[Operand]]]:
        """The numbers of results under one key, row by row."""
        return [*self._all_columns()]

    def _all_columns(self) -> Iterator[tuple[str, list[Operand]]]:
        for records in self._ledger.groups.values():
            found: dict[str, list[Operand]] = defaultdict(list)
            for record in records if len(records) <= MAX_SERIES else ():
                for quantity in record.numbers:
                    if quantity.is_operand and quantity.is_member:
                        found[quantity.key].append(operand_of(quantity))
            yield from ((key, column) for key, column in found.items() if len(column) > 1)
        yield from self._plain_series.items()

    def is_mean(self, value: float, tolerance: float, sizes: Iterable[float]) -> bool:
        """Whether a number is an average of columns or parts of them, weighted, or a sum by a count."""
        if any(
            abs(made.value - value) <= tolerance
            for made in self._made
            if made.how.startswith(("mean", "median"))
        ):
            return True
        divisors = {o.value for o in (*self._operands[:40], *self._known) if 1 < o.value <= 366}
        for _, column in self.columns:
            values = [operand.value for operand in column]
            if any(abs(math.fsum(values) / divisor - value) <= tolerance for divisor in divisors):
                return True
        return False

    def counts(self) -> set[float]:
        """How many rows of the results have something in common, and what is left of them."""
        found = {made.value for made in self._counts()}
        for records in self._ledger.groups.values():
            if len(records) > MAX_SERIES:
                continue
            sizes: dict[str, list[int]] = defaultdict(list)
            for name, members in _categories(records):
                sizes[name.partition(" ")[0]].append(len(members))
                found |= {float(len(members)), float(len(records) - len(members))}
            for key, own in sizes.items():
                found |= (
                    {float(a + b) for a, b in combinations(own, 2)} if key.lower() in STATE_KEYS else set()
                )
        return found

    def deep(self, value: float, tolerance: float, dimension: str) -> tuple[str | None, bool]:
        """An expression in up to three steps, and whether the search was so narrow that its answer is sure.

        Two numbers of answer or evidence are put together first, then two and a third. How many tries there
        are and how many digits have to be met say how often one would fit by chance.
        """
        if value <= 0:
            return None, False
        if tolerance * 2_000 <= value and self._is_told_sum(value, tolerance):
            return "the sum of what the answer tells in a row", True
        if dimension == "percent":
            how = _hit(self._pairs, value / 100, tolerance / 100)
            if how is not None and "÷" in how:
                return how, True
            return None, self._is_all
        terms, pairs = self._terms, self._pairs
        luck = 2 * tolerance / value / _DECADES
        if len(pairs[0]) * luck <= _MOST_LUCK and (how := _hit(pairs, value, tolerance)):
            return how, True
        is_narrow = len(pairs[0]) * len(terms) * 4 * luck <= _MOST_LUCK
        for term in terms:
            a = term.value
            tries = [
                (value - a, 1.0, "{} + {:.10g}"),
                (value + a, 1.0, "{} - {:.10g}"),
                (a - value, 1.0, "{1:.10g} - {0}"),
            ]
            if term.dimension == "percent":
                share = _share(term)
                tries = [
                    (value / (1 + share), 1.0, "{} + {:.10g} %"),
                    (value / share, 1 / share, "{1:.10g} % of {0}"),
                ]
                tries += [(value / (1 - share), 1.0, "{} - {:.10g} %")] if share < 1 else []
            elif a > 0 and (not term.dimension or term.dimension != dimension):
                tries += [(value / a, 1 / a, "{} × {:.10g}"), (value * a, a, "{} ÷ {:.10g}")]
            for wanted, factor, pattern in tries:
                if wanted > 0 and (found := _hit(pairs, wanted, tolerance * factor)):
                    return (pattern.format(f"({found})", a), True) if is_narrow else (None, False)
        return None, self._is_all and (is_narrow or tolerance * _LONG <= value)

    def _is_told_sum(self, value: float, tolerance: float) -> bool:
        for start in range(len(self.said)):
            for size in range(2, 9):
                part = self.said[start : start + size]
                if value not in part and abs(math.fsum(part) - value) <= tolerance:
                    return True
        return False

    @property
    def is_trivial(self) -> bool:
        """Whether there is at most one number to reckon with."""
        return len(self._operands) <= 1

    @cached_property
    def _is_all(self) -> bool:
        """Whether the numbers that people may reckon with are few, and none stands inside a text."""
        is_told = any(q.call >= 0 and not q.is_member and q.is_operand for q in self._ledger.quantities)
        members = sum(q.call >= 0 and q.is_operand for q in self._ledger.quantities)
        return not is_told and members > 1 and len(self._operands) + len(self._known) <= _MOST_TERMS

    @cached_property
    def _terms(self) -> list[Operand]:
        """The numbers that steps are made of: what the answer said before, the evidence, sums of columns."""
        found: dict[tuple[float, str], Operand] = {}
        sums = [
            Operand(made.value, made.dimension, made.how, -1, 0) for made in self._made
            if made.how.startswith(("sum of", "Σ")) and " of " not in made.how[7:]
        ]  # fmt: skip
        for operand in (*self._known, *sums[:6], *self._operands):
            if operand.value > 0 and len(found) < _MOST_TERMS:
                found.setdefault((operand.value, operand.dimension), operand)
                if operand.dimension not in ("", "money", "percent") and operand.raw:
                    found.setdefault((operand.raw, ""), operand._replace(value=operand.raw, dimension=""))
        return list(found.values())

    @cached_property
    def _pairs(self) -> tuple[list[float], list[tuple[str, float, float]]]:
        """What two terms give, in order, and how."""
        found: list[tuple[float, tuple[str, float, float]]] = []
        for one, other in combinations(self._terms, 2):
            for first, second in ((one, other), (other, one)):
                a, b = first.value, second.value
                if second.dimension == "percent" and first.dimension != "percent":
                    share = _share(second)
                    found += [
                        (a * share, ("{1:.10g} % of {0:.10g}", a, b)),
                        (a * (1 + share), ("{:.10g} + {:.10g} %", a, b)),
                        (a * (1 - share), ("{:.10g} - {:.10g} %", a, b)),
                    ]
                elif first.dimension != "percent":
                    found.append((a / b, ("{:.10g} ÷ {:.10g}", a, b)))
            a, b = one.value, other.value
            if one.dimension == other.dimension or not one.dimension or not other.dimension:
                found += [
                    (a + b, ("{:.10g} + {:.10g}", a, b)),
                    (abs(a - b), ("{:.10g} - {:.10g}", max(a, b), min(a, b))),
                ]
            if (
                "percent" not in (one.dimension, other.dimension)
                and not one.dimension == other.dimension == "money"
            ):
                found.append((a * b, ("{:.10g} × {:.10g}", a, b)))
        found.sort(key=lambda entry: entry[0])
        return [value for value, _ in found], [how for _, how in found]

    def near_sums(self, value: float, dimensions: Sequence[str]) -> Iterator[Made]:
        """The sums and means within a sixth of `value`, and sums of what was said in a row."""
        told = [known.value for known in self._known if known.dimension in dimensions and known.value > 31]
        for size in range(2, min(len(told), 8) + 1):
            for start in range(len(told) - size + 1):
                part = told[start : start + size]
                if 0.85 * value <= (total := math.fsum(part)) <= 1.18 * value:
                    yield Made(total, dimensions[0], " + ".join(["{}"] * size), tuple(part))
        for dimension in dimensions:
            values, made = self._sorted.get(dimension, ((), ()))
            for candidate in made[bisect_left(values, value * 0.85) : bisect_left(values, value * 1.18)][
                :200
            ]:
                if candidate.how.startswith(("sum of", "Σ", "mean of")):
                    yield candidate

    @cached_property
    def _sorted(self) -> dict[str, tuple[list[float], list[Made]]]:
        by_dimension: dict[str, list[Made]] = defaultdict(list)
        for made in self._made:
            by_dimension[made.dimension].append(made)
        found = {}
        for dimension, entries in by_dimension.items():
            entries.sort(key=lambda entry: entry.value)
            found[dimension] = ([entry.value for entry in entries], entries)
        return found

    @cached_property
    def _operands(self) -> list[Operand]:
        """The numbers that people reckon with, each once, those of results first."""
        found: dict[tuple[float, str], Operand] = {}
        for source in (False, True):
            for quantity in self._ledger.quantities:
                if (
                    (quantity.call == FROM_USER) is source
                    and quantity.is_operand
                    and (quantity.is_member or source)
                ):
                    operand = operand_of(quantity)
                    found.setdefault((operand.value, operand.dimension), operand)
        for entry in self._ledger.result_lists[:8]:
            found.setdefault((float(entry.length), ""), Operand(float(entry.length), "", "", -1, entry.call))
        return list(found.values())

    @cached_property
    def _made(self) -> list[Made]:
        found: list[Made] = []
        for made in self._all_made():
            if math.isfinite(made.value):
                found.append(made if made.value >= 0 else Made(-made.value, *made[1:]))
            if len(found) >= _MOST_MADE:
                break
        return found

    def _all_made(self) -> Iterator[Made]:
        yield from self._counts()
        yield from self._lapses()
        yield from self._within_scopes()
        yield from self._over_records()

    def _over_records(self) -> Iterator[Made]:
        for records in self._ledger.groups.values():
            if len(records) > MAX_SERIES:
                continue
            columns: dict[str, list[tuple[Operand, Record]]] = defaultdict(list)
            for record in records:
                for quantity in record.numbers:
                    if quantity.is_operand and quantity.is_member:
                        columns[quantity.key].append((operand_of(quantity), record))
            categories = _categories(records)
            for key, column in columns.items():
                yield from _series(key, [operand for operand, _ in column])
                for name, members in categories:
                    part = [operand for operand, record in column if record.index in members]
                    if 0 < len(part) < len(column):
                        yield from _category(name, key, part, [operand for operand, _ in column])
            for one, other in combinations(list(columns)[:6], 2):
                first = {record.index: operand for operand, record in columns[one]}
                second = {record.index: operand for operand, record in columns[other]}
                both = [index for index in first if index in second]
                if len(both) > 1:
                    for name, members in (("", set(both)), *categories):
                        picked = [index for index in both if index in members]
                        yield Made(sum(first[i].value * second[i].value for i in picked), first[both[0]].dimension or second[both[0]].dimension,  # noqa: E501
                                   f"Σ {one} × {other}{' of ' + name if name else ''}", ())  # fmt: skip
                    weight = sum(second[i].value for i in both)
                    if weight:
                        yield Made(
                            sum(first[i].value * second[i].value for i in both) / weight,
                            first[both[0]].dimension,
                            f"mean {one} by {other}",
                            (),
                        )
            yield from self._of_columns(columns)
        for key, plain in self._plain_series.items():
            yield from _series(key, plain)

    def _of_columns(self, columns: dict[str, list[tuple[Operand, Record]]]) -> Iterator[Made]:
        """Sums of columns, and of their products, against each other: margins, overall rates."""
        sums = {
            key: (math.fsum(o.value for o, _ in column), _common(o for o, _ in column))
            for key, column in columns.items()
        }
        values = {
            key: {record.index: operand.value for operand, record in column}
            for key, column in columns.items()
        }
        for one, other in combinations(list(columns)[:5], 2):
            both = values[one].keys() & values[other].keys()
            if len(both) > 1:
                total = math.fsum(values[one][i] * values[other][i] for i in both)
                sums[f"{one} × {other}"] = (total, sums[one][1] or sums[other][1])
        for (first, (a, kind)), (second, (b, other_kind)) in combinations(list(sums.items())[:10], 2):
            if a and b:
                how = f"sums of {first} and {second}"
                yield Made(a - b, kind or other_kind, how, ())
                yield Made(a / b, "", how, ())
                yield Made(b / a, "", how, ())
                for share in (a / b, b / a, (a - b) / a, (b - a) / b):
                    yield Made(100 * share, "percent", how, ())

    @cached_property
    def _plain_series(self) -> dict[str, list[Operand]]:
        found: dict[tuple[int, str], list[Operand]] = defaultdict(list)
        for quantity in self._ledger.quantities:
            if quantity.path.endswith("]") and quantity.is_operand and quantity.call >= 0:
                found[quantity.record, quantity.key].append(operand_of(quantity))
        return {key: column for (_, key), column in found.items() if 1 < len(column) <= MAX_SERIES}

    def _counts(self) -> Iterator[Made]:
        for entry in self._ledger.result_lists:
            yield Made(
                float(entry.length), "", f"items of {entry.key or 'the result'}: {{}}", (float(entry.length),)
            )
        for name, records in self._ledger.groups.items():
            yield Made(float(len(records)), "", f"records of {name}: {{}}", (float(len(records)),))
            if len(records) > MAX_SERIES:
                continue
            for category, members in _categories(records):
                count = float(len(members))
                yield Made(count, "", f"{category}: {{}}", (count,))
                yield Made(len(records) - count, "", f"not {category}: {{}}", (len(records) - count,))
                yield Made(100 * count / len(records), "percent", f"share of {category}", ())

    def _lapses(self) -> Iterator[Made]:
        for seconds, how in self._timeline.lapses():
            yield Made(seconds, "time", how, ())

    def _within_scopes(self) -> Iterator[Made]:
        """Pairs within records; within calls and over all, where there are few numbers."""
        scopes: list[list[Operand]] = []
        if len(self._operands) <= _MOST_OPERANDS:
            scopes.append(self._operands)
        else:
            by_call: dict[int, list[Operand]] = defaultdict(list)
            by_record: dict[int, list[Operand]] = defaultdict(list)
            for operand in self._operands:
                by_call[operand.call].append(operand)
            for quantity in self._ledger.quantities:
                if quantity.is_operand and quantity.is_member and quantity.call >= 0:
                    operand = operand_of(quantity)
                    by_record[quantity.record].append(operand)
            users = by_call.pop(FROM_USER, [])[:6]
            scopes += [scope + users for scope in by_call.values() if len(scope) <= _MOST_OPERANDS - 4]
            scopes += [scope + users[:3] for scope in list(by_record.values())[:60] if 1 <= len(scope) <= 10]
            for record in self._ledger.records:
                parent = by_record.get(record.parent, [])
                own = by_record.get(record.index, [])
                if parent and own and len(parent) + len(own) <= _MOST_OPERANDS:
                    scopes.append(parent + own)
        for scope in scopes:
            for one, other in combinations(scope, 2):
                yield from _pair(one, other)
            counts = [o for o in scope if not o.dimension and 1 < o.value <= 31 and o.value == int(o.value)][
                :5
            ]
            for first, second in combinations(counts, 2):
                for price in scope[:_MOST_OPERANDS]:
                    if price is not first and price is not second and price.dimension != "percent":
                        values = (price.value, first.value, second.value)
                        yield Made(math.prod(values), price.dimension, "{} × {} × {}", values)
        for operand in self._operands[:_MOST_OPERANDS]:
            if operand.call != FROM_USER and operand.dimension in ("", "money"):
                for factor in (12, 52, 7, 365, 2):
                    yield Made(operand.value * factor, operand.dimension, "{} × {}", (operand.value, factor))
                    yield Made(operand.value / factor, operand.dimension, "{} ÷ {}", (operand.value, factor))
        for record in self._ledger.records:
            numbers = [operand_of(q) for q in record.numbers if q.is_operand and q.is_member]
            if 2 < len(numbers) <= 16:
                total = sum(number.value for number in numbers)
                yield Made(total, _common(numbers), "sum of " + (record.key or "all"), ())
                for number in numbers:
                    yield Made(
                        total - number.value,
                        _common(numbers),
                        f"sum of {record.key or 'all'} but {number.name}",
                        (),
                    )
                    if total:
                        yield Made(100 * number.value / total, "percent", f"share of {number.name}", ())


def operand_of(quantity: Quantity) -> Operand:
    """A quantity in base units."""
    value = quantity.value
    if quantity.is_minor:
        value /= 100
    elif quantity.unit is not None:
        value *= quantity.unit.factors[0]
    return Operand(value, quantity.dimension, quantity.key, quantity.record, quantity.call, quantity.value)


def _share(operand: Operand) -> float:
    return operand.value / 100


def _hit(
    pairs: tuple[list[float], list[tuple[str, float, float]]], value: float, tolerance: float
) -> str | None:
    """How the first number within the tolerance is made."""
    values, hows = pairs
    place = bisect_left(values, value - tolerance)
    if place < len(values) and values[place] <= value + tolerance:
        pattern, a, b = hows[place]
        return pattern.format(a, b)
    return None


def _common(operands: Iterable[Operand]) -> str:
    return next((operand.dimension for operand in operands if operand.dimension), "")


def _pair(one: Operand, other: Operand) -> Iterator[Made]:
    kinds = {one.dimension, other.dimension}
    if (len(kinds) == 2 and not kinds & {"percent", "money"}) or kinds == {"money", "area"}:
        a, b = one.raw or one.value, other.raw or other.value
        if a and b:
            yield Made(a * b, "", "{} × {}", (a, b))
            yield Made(a / b, "", "{} ÷ {}", (a, b))
            yield Made(b / a, "", "{1} ÷ {0}", (a, b))
    a, b = one.value, other.value
    values = (a, b)
    if one.dimension == other.dimension or not one.dimension or not other.dimension:
        dimension = one.dimension or other.dimension
        if "percent" not in (one.dimension, other.dimension) or one.dimension == other.dimension:
            yield Made(a + b, dimension, "{} + {}", values)
            yield Made(a - b, dimension, "{} - {}", values)
            if a > 0 and b > 0:
                yield Made(100 * a / b, "percent", "{} of {}", values)
                yield Made(100 * b / a, "percent", "{1} of {0}", values)
                yield Made(100 * (a - b) / b, "percent", "{} against {}", values)
                yield Made(100 * (b - a) / a, "percent", "{1} against {0}", values)
                yield Made(100 * a / (a + b), "percent", "{0} of {0} + {1}", values)
                yield Made(100 * b / (a + b), "percent", "{1} of {0} + {1}", values)
                yield Made(a / b, "", "{} ÷ {}", values)
                yield Made(b / a, "", "{1} ÷ {0}", values)
    for first, second in ((one, other), (other, one)):
        a, b = first.value, second.value
        is_share = second.dimension == "percent" or (not second.dimension and 0 < b < 1)
        if is_share and first.dimension != "percent":
            share = b if second.dimension != "percent" else b / 100
            yield Made(a * share, first.dimension, "{1} % of {0}", (a, share * 100))
            yield Made(a * (1 + share), first.dimension, "{} + {} %", (a, share * 100))
            yield Made(a * (1 - share), first.dimension, "{} - {} %", (a, share * 100))
            if share < 1:
                yield Made(a / (1 + share), first.dimension, "{} without {} %", (a, share * 100))
        elif not second.dimension and b:
            if first is one:
                yield Made(a * b, first.dimension, "{} × {}", (a, b))
            if first.dimension:
                yield Made(a / b, first.dimension, "{} ÷ {}", (a, b))
        elif first.dimension and second.dimension and first.dimension != second.dimension and b:
            factors = {"time": (3600.0, 86400.0, 60.0)}.get(second.dimension, (1.0, 1e3))
            for factor in factors:
                yield Made(a / (b / factor), first.dimension, "{} ÷ {}", (a, b / factor))
                if first is one:
                    yield Made(
                        a * (b / factor),
                        "money" if "money" in (one.dimension, other.dimension) else "",
                        "{} × {}",
                        (a, b / factor),
                    )


def _series(key: str, column: Sequence[Operand]) -> Iterator[Made]:
    values = [operand.value for operand in column]
    if len(values) < 2:
        return
    dimension = _common(column)
    total = math.fsum(values)
    yield Made(total, dimension, f"sum of {key} ({len(values)})", ())
    yield Made(total / len(values), dimension, f"mean of {key}", ())
    ordered = sorted(values)
    middle = len(ordered) // 2
    yield Made(
        ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2,
        dimension,
        f"median of {key}",
        (),
    )
    yield Made(ordered[-1] - ordered[0], dimension, f"range of {key}", ())
    if len(values) <= _RUNNING_SERIES:
        for running in (values, values[::-1], ordered[::-1], ordered):
            for place, part in enumerate(accumulate(running), 1):
                if 1 < place < len(values):
                    yield Made(part, dimension, f"sum of {place} of {key}", ())
        for value in values:
            yield Made(total - value, dimension, f"sum of {key} without {{}}", (value,))
            if total:
                yield Made(100 * value / total, "percent", f"{{}} of the sum of {key}", (value,))
        if total and values[0] > 0 and values[-1] > 0:
            yield Made(100 * (values[-1] - values[0]) / values[0], "percent", f"last against first {key}", ())
    if len(values) <= _PAIRED_SERIES:
        for a, b in combinations(values, 2):
            yield Made(a - b, dimension, "{} - {}", (a, b))
            yield Made(a + b, dimension, "{} + {}", (a, b))
            if a > 0 and b > 0:
                yield Made(100 * (a - b) / b, "percent", "{} against {}", (a, b))
                yield Made(100 * (b - a) / a, "percent", "{1} against {0}", (a, b))
                yield Made(100 * b / a, "percent", "{1} of {0}", (a, b))
                yield Made(a / b, "", "{} ÷ {}", (a, b))
                yield Made(b / a, "", "{1} ÷ {0}", (a, b))


def _category(name: str, key: str, part: Sequence[Operand], column: Sequence[Operand]) -> Iterator[Made]:
    values = [operand.value for operand in part]
    rest = math.fsum(operand.value for operand in column)
    dimension = _common(part)
    total = math.fsum(values)
    yield Made(total, dimension, f"sum of {key} of {name}", ())
    if len(values) > 1:
        yield Made(total / len(values), dimension, f"mean of {key} of {name}", ())
    yield Made(rest - total, dimension, f"sum of {key} but {name}", ())
    if rest:
        yield Made(100 * total / rest, "percent", f"share of {name} in {key}", ())


def _categories(records: Sequence[Record]) -> list[tuple[str, set[int]]]:
    """The sets of records that share a text, a flag, a month or a zero under one key."""
    found: dict[tuple[str, object], set[int]] = defaultdict(set)
    for record in records:
        for key, text in record.texts:
            if len(text) <= 60:
                found[key, text.casefold()].add(record.index)
                if text[4:5] == "-" and text[:4].isdigit():
                    found[key, text[:7]].add(record.index)
        for key, flag in record.flags:
            found[key, flag].add(record.index)
        for quantity in record.numbers:
            if quantity.is_member:
                found[quantity.key, quantity.value == 0].add(record.index)
    per_key: dict[str, list[tuple[object, set[int]]]] = defaultdict(list)
    for (key, value), members in found.items():
        if len(members) < len(records):
            per_key[key].append((value, members))
    made = [
        (f"{key} {value}", members)
        for key, values in per_key.items()
        if len(values) <= _MOST_CATEGORIES
        for value, members in values
    ][: 4 * _MOST_CATEGORIES]
    pairs = [
        (f"{one}, {other}", both)
        for (one, first), (other, second) in combinations(made[:16], 2)
        if 0 < len(both := first & second) < min(len(first), len(second))
    ]
    return made + pairs[:40]
