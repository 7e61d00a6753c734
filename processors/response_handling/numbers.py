"""The numbers of an answer: which stand in the evidence, which are reckoned from it, and which are neither.

A number is supported directly (as it stands, rounded, in another unit), naturally (a sum, a mean, a count)
or in steps; supported ones are operands of the next.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from processors.response_handling.arithmetic import Arithmetic, Made, Reached, runs
from processors.response_handling.ledger import Ledger, Quantity
from processors.response_handling.reading import Token
from processors.response_handling.timeline import Timeline

_SMALL: Final = 12
"""Whole numbers up to this one without a unit are counts and marks that are not looked up."""
_SHORTEST_SLIP: Final = 3
_ABOUT: Final = 0.06
"""By how much what is said to be approximate may differ."""
_PEOPLE_KNOW: Final = frozenset({24.0, 60.0, 100.0, 365.0, 1000.0})
_MOST_MATCHES: Final = 60


@dataclass(slots=True)
class Support:
    """A number of the answer: what it stands for directly, or how it is reckoned, or neither."""

    token: Token
    direct: list[Quantity] = field(default_factory=list)
    how: str = ""
    steps: int = 0
    is_checked: bool = True

    @property
    def is_supported(self) -> bool:
        """Whether anything gives the number, or nothing need."""
        return bool(self.direct or self.how or not self.is_checked)


class Numbers:
    """The numbers of one answer, each looked up once."""

    def __init__(self, ledger: Ledger, tokens: Sequence[Token], timeline: Timeline) -> None:
        self._ledger = ledger
        self._arithmetic = Arithmetic(ledger, timeline)
        self.supports = [Support(token) for token in tokens if token.kind == "number"]
        plain = [
            token.value
            for token in tokens
            if token.kind == "number" and not token.is_spelled and not _is_share(token)
        ]
        self._sums = {round(total, 6): parts for total, parts in runs(plain)}
        for support in self.supports:
            support.direct = self._direct(support.token)
            support.is_checked = self._is_checked(support.token)
        for look in (self._natural, self._reached, self._reached):
            for support in self.supports:
                if not support.direct and not support.how and (support.is_checked or look == self._natural):
                    look(support)
                if support.direct or support.how:
                    token = support.token
                    self._arithmetic.know(
                        token.value, token.total, token.unit.dimension if token.unit else ""
                    )

    def within(self, start: int, end: int) -> list[Support]:
        """The numbers told in a part of the answer."""
        return [support for support in self.supports if start <= support.token.start < end]

    @property
    def is_reckoned(self) -> bool:
        """Whether the answer reckons with what it was given."""
        return any(support.steps > 1 for support in self.supports)

    @property
    def is_whole(self) -> bool:
        """Whether all numbers of the evidence took part in the search."""
        return self._arithmetic.is_whole

    @property
    def count(self) -> int:
        """How many numbers of the evidence people may reckon with."""
        return len(self._arithmetic._numbers)

    def slipped_total(self, token: Token) -> Made | None:
        """The sum or mean of one key, not told itself, of which a number is a slip."""
        said = {support.token.value for support in self.supports}
        for made in self._arithmetic.totals:
            if made.value not in said and is_slip(token, made.value):
                return made
        return None

    def _is_checked(self, token: Token) -> bool:
        value, is_bare = token.value, token.unit is None and not token.currencies and token.scale == 1.0
        if (
            token.is_spelled
            or not value
            or (is_bare and value == int(value) and (value <= _SMALL or value in _PEOPLE_KNOW))
        ):
            return False
        is_year = is_bare and 1900 <= value <= 2100 and token.text.isdigit()
        return not is_year and (
            (token.unit is not None and token.unit.dimension != "time")
            or token.text.strip("-") not in self._written
        )

    @cached_property
    def _written(self) -> frozenset[str]:
        """Runs of digits in texts and keys of the evidence, as names and codes have them."""
        texts = [str(leaf.value) for leaf in self._ledger.leaves if isinstance(leaf.value, str)]
        joined = " ".join((*texts, *self._ledger.keys))
        plain = "".join(c if c.isdigit() or c in ".," else " " for c in joined)
        return frozenset(piece.strip(".,") for piece in plain.split())

    @cached_property
    def _views(self) -> dict[str, tuple[list[float], list[Quantity]]]:
        """The numbers of the evidence in order: as they stand, and in base units by dimension."""
        found: dict[str, list[tuple[float, Quantity]]] = {"": []}
        for quantity in self._ledger.quantities:
            found[""].append((abs(quantity.value), quantity))
            if quantity.unit is not None:
                found.setdefault(quantity.unit.dimension, []).append((abs(quantity.base), quantity))
        for entries in found.values():
            entries.sort(key=lambda entry: entry[0])
        return {view: ([value for value, _ in es], [q for _, q in es]) for view, es in found.items()}

    def between(self, view: str, value: float, tolerance: float) -> list[Quantity]:
        """The numbers of the evidence that are `value`, in base units of a dimension or as they stand."""
        values, quantities = self._views.get(view, ([], []))
        start = bisect_left(values, value - tolerance)
        return quantities[start : min(bisect_right(values, value + tolerance), start + _MOST_MATCHES)]

    def _direct(self, token: Token) -> list[Quantity]:
        unit, found = token.unit, list[Quantity]()
        for value in token.values:
            slack = _slack(token, value)
            plain = self.between("", value, slack)
            if token.extra:
                plain = []
            if unit is None:
                found += plain
            elif _is_share(token):
                found += [q for q in plain if q.unit is None or q.unit.dimension == "percent"]
                shares = self.between("", value / 100, slack / 100)
                found += [q for q in shares if q.unit is None and abs(q.value) <= 5]
                found += self.between("percent", value * unit.factors[0], slack * unit.factors[0])
            elif unit.dimension == "temperature":
                found += [
                    q
                    for q in plain
                    if q.unit is None or q.unit.symbol in ("", unit.symbol) or not unit.symbol
                ]
                other = (value - 32) / 1.8 if unit.symbol == "F" else value * 1.8 + 32
                slack = slack / 1.8 if unit.symbol == "F" else slack * 1.8
                for q in self.between("", abs(other), slack):
                    if (
                        q.unit is not None
                        and {q.unit.symbol, unit.symbol} == {"C", "F"}
                        and (q.value < 0) == (other < 0)
                    ):
                        found.append(q)
            else:
                found += [q for q in plain if q.unit is None and unit.dimension != "bits"]
                whole = token.total / unit.factors[0] if token.extra else value
                for factor in unit.factors:
                    found += self.between(unit.dimension, whole * factor, slack * factor)
                    near = self.between(
                        unit.dimension, whole * factor, slack * factor + whole * factor * 0.001
                    )
                    found += [q for q in near if q.unit is not None and len(q.unit.factors) > 1]
            if unit is None:
                minor = self.between("", value * 100, slack * 100)
                found += [
                    q
                    for q in minor
                    if q.is_minor or (q.value == int(q.value) and token.currencies and q.currencies)
                ]
        return list({id(quantity): quantity for quantity in found}.values())

    def _wanted(self, token: Token) -> Iterator[tuple[float, float, str]]:
        """A number as it is searched for: its value, tolerance and dimension, in base units and as it stands."""
        slack, unit = _slack(token, token.value), token.unit
        if unit is not None and unit.dimension not in ("percent", "temperature"):
            whole = token.total / unit.factors[0]
            yield from ((whole * factor, slack * factor, unit.dimension) for factor in unit.factors)
        if not token.extra:
            yield token.value, slack, "percent" if _is_share(token) else "" if unit is None else "money"

    def _natural(self, support: Support) -> None:
        for value, slack, dimension in self._wanted(support.token):
            how = self._arithmetic.natural(value, slack, dimension)
            if how:
                support.how, support.steps = how, 1
                return

    def _reached(self, support: Support) -> None:
        token = support.token
        parts = self._sums.get(round(token.value, 6), [])
        if parts and token.value not in parts:
            support.how, support.steps = " + ".join(f"{part:.10g}" for part in parts), 2
            return
        for value, slack, dimension in self._wanted(token):
            found: Reached | None = self._arithmetic.reach(value, slack, dimension)
            if found is not None:
                support.how, support.steps = found
                return


def _is_share(token: Token) -> bool:
    return token.unit is not None and token.unit.dimension == "percent"


def _slack(token: Token, value: float) -> float:
    """How far a number of the evidence may lie from one that is told: as rounded, cut off, or approximate."""
    own = token.tolerance(value)
    digits = "".join(filter(str.isdigit, token.text))
    last = 10.0 ** (len(digits) - len(digits.rstrip("0")))  # what is rounded ends with zeros
    return max(own, min(_ABOUT * value, 2 * own * last)) if token.is_approximate else own


def is_slip(token: Token, value: float) -> bool:
    """Whether a number is another one with one digit changed, or two near each other transposed."""
    if token.scale != 1.0 or token.is_approximate:
        return False
    one, other = (f"{abs(number):.{token.readings[token.reading][1]}f}" for number in (token.value, value))
    if len(one) != len(other):
        return False
    if abs(abs(value) - token.value) <= 2.1 * token.tolerance(token.value):
        return False  # rounded otherwise
    places = [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    is_moved = len(places) == 2 and sorted(one) == sorted(other) and places[1] - places[0] <= 2
    digits = sum(map(str.isdigit, one))
    return digits >= _SHORTEST_SLIP and (is_moved or (len(places) == 1 and digits > _SHORTEST_SLIP))
