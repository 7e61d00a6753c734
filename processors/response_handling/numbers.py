"""Rules RH1 and RH11: numbers that no evidence supports, or in another unit or currency."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from processors.response_handling.arithmetic import Arithmetic, operand_of
from processors.response_handling.ledger import Leaf, Quantity
from processors.response_handling.lexicons.keys import AVERAGE_KEYS, HOW_MANY, LASTING, TOTAL_KEYS
from processors.response_handling.lexicons.units import factors_of, key_words
from processors.response_handling.reading import Token
from processors.response_handling.response import Finding, Response, shown

_SMALL = 12
_LONG_NUMBER = 4
"""Significant digits of numbers that are hardly reckoned in ways no search finds; one more with decimals."""
_FITS_ANYTHING = 100
"""Numbers below it, without a unit, are too easily reckoned in ways that no search finds."""
_PLAIN_FACTS = {
    ("time", 24.0),
    ("time", 7.0),
    ("time", 60.0),
    ("time", 365.0),
    ("time", 12.0),
    ("percent", 100.0),
    ("percent", 0.0),
}
_SHORTEST_STEM = 4
_MOST_COMPARED = 200
_MOST_DERIVED = 14
_MOST_MEANS = 6
_LETTERS = re.compile(r"[^\W\d_]{4,40}")
_IN_NAME = re.compile(r"[^\W\d_]{0,20}[A-Z][^\W\d_]{0,20}\s$")


@dataclass(slots=True)
class Support:
    """What speaks for a number of the answer, and what nearly does."""

    token: Token
    direct: list[Quantity] = field(default_factory=list)
    how: str = ""
    is_reckoned: bool = False
    is_sure: bool = False
    """Of a number that nothing supports: whether the search would have found what does."""
    other_unit: list[Quantity] = field(default_factory=list)
    other_currency: list[Quantity] = field(default_factory=list)
    is_checked: bool = True

    @property
    def is_supported(self) -> bool:
        """Whether anything does."""
        return bool(self.direct or self.how) or not self.is_checked


def supports(response: Response) -> list[Support]:
    """For each number of the answer what speaks for it; those made in steps are found in rounds."""
    found = [Support(token) for token in response.tokens if token.kind == "number"]
    response.arithmetic.said = [support.token.value for support in found]
    for support in found:
        _direct(support, response)
        if (
            support.token.unit is not None
            and support.token.unit.dimension == "time"
            and 1 < support.token.value <= 366
        ):
            response.arithmetic.know(support.token.value, "")
        if not support.direct:
            support.is_checked = _needs_support(support.token, response)
            if not dimension_of(support.token) and 1 < support.token.value <= _SMALL:
                response.arithmetic.know(support.token.value, "")
        if support.direct and support.token.values:
            token = support.token
            response.arithmetic.know(*_operand(token, token.value))
    for support in [support for support in found if not support.is_supported][_MOST_DERIVED:]:
        support.is_checked = False
    for _ in range(4):
        open_ones = [
            s for s in found if not s.is_supported and not (s.other_unit and dimension_of(s.token) != "time")
        ]
        for support in open_ones:
            _derived(support, response)
            if support.how:
                support.is_reckoned = True
                response.arithmetic.know(*_operand(support.token, support.token.value))
        if all(not support.how for support in open_ones):
            break
    return found


def dimension_of(token: Token) -> str:
    """What a number of the answer measures: a dimension, `money`, or nothing said."""
    return "money" if token.currencies or token.is_minor else token.unit.dimension if token.unit else ""


def _operand(token: Token, value: float) -> tuple[float, str, float]:
    if token.is_minor:
        return value / 100, "money", value
    factor = token.unit.factors[0] if token.unit and not token.currencies else 1.0
    return value * factor, dimension_of(token), value


def _needs_support(token: Token, response: Response) -> bool:
    """Whether a number is a statement at all: years, codes, parts of names and plain facts are none."""
    value = token.value
    dimension = dimension_of(token)
    if token.is_fraction:
        return False
    if not response.words.is_spaced and token.unit is not None and token.unit.symbol == "d":
        if any(day[2] == value for day in response.timeline.days):
            return False
    if value <= (_SMALL if token.is_spelled else 1) and dimension == "time" and not token.extra:
        return False
    if (dimension, value) in _PLAIN_FACTS or (value == 0 and not dimension):
        return False
    plain = token.text.replace(" ", "")
    if (
        _IN_NAME.search(response.output[max(0, token.start - 24) : token.start])
        and response.output[token.end : token.end + 2].strip()[:1].isupper()
    ):
        return False
    if not dimension and plain.isdigit() and token.scale == 1.0:
        if plain in response.digit_groups:
            return False
        if len(plain) == 4 and 1900 <= value <= 2100:
            return False
        if (
            len(plain) in (2, 3, 4)
            and any(group.endswith(plain) and len(group) >= len(plain) + 2 for group in response.digit_groups)
            and len(plain) == 4
        ):
            return False
        if len(plain) > 1 and plain.startswith("0"):
            return False
    return True


def _direct(support: Support, response: Response) -> None:
    token = support.token
    if token.extra and token.unit is not None:
        total = token.value * token.unit.factors[0] + sum(
            value * unit.factors[0] for value, unit in token.extra
        )
        smallest = token.extra[-1][1].factors[0]
        for quantity in response.ledger.quantities[:_MOST_COMPARED]:
            if (
                quantity.unit
                and quantity.unit.dimension == "time"
                and abs(quantity.value * quantity.unit.factors[0] - total) <= smallest / 2
            ):
                support.direct.append(quantity)
        return
    for quantity in _candidates(token, response):
        verdict = _matches(token, quantity)
        if verdict == "yes":
            support.direct.append(quantity)
        elif verdict == "unit":
            support.other_unit.append(quantity)
        elif verdict == "currency":
            support.other_currency.append(quantity)
    if (
        token.unit is not None
        and token.unit.symbol == "h"
        and any(m.minutes == token.value * 60 for m in response.ledger.moments)
    ):
        support.how = "an hour of the evidence"
    if not support.direct and not token.unit and not token.currencies:
        for entry in response.ledger.result_lists:
            if float(entry.length) in token.values:
                support.how = f"items of {entry.key or 'the result'}"


def _candidates(token: Token, response: Response) -> list[Quantity]:
    """The numbers of the evidence that could be the token's under some unit, each once."""
    ratios = {1.0, 100.0, 0.01, *({1e3, 1e-3, 1e6} if token.unit is None and token.readings[0][1] else ())}
    if token.unit is not None and token.unit.dimension != "percent":
        ratios |= {one / other for one in token.unit.factors for other in factors_of(token.unit.dimension)}
    found: dict[int, Quantity] = {}
    for stated in token.values:
        slack = max(token.tolerance(stated), 0.06 * stated if token.is_approximate else 0.0)
        wanted = [(stated * ratio, slack * ratio) for ratio in ratios]
        if token.unit is not None and token.unit.dimension == "temperature":
            signs = (-stated, stated)
            wanted += [(abs(t * 9 / 5 + 32), 2.0) for t in signs] + [
                (abs((t - 32) * 5 / 9), 2.0) for t in signs
            ]
        for value, within in wanted:
            for quantity in response.ledger.between(
                value - within - 1e-6 * value, value + within + 1e-6 * value
            ):
                found[id(quantity)] = quantity
    return sorted(found.values(), key=lambda quantity: (quantity.call < 0, quantity.call, quantity.record))


def _close(token: Token, value: float, stated: float, factor: float = 1.0, *, is_other: bool = False) -> bool:
    slack = token.tolerance(stated) * factor
    if is_other:
        slack = min(slack, 0.12 * stated * factor)
    if token.is_approximate:
        slack = max(slack, abs(stated * factor) * 0.06)
    return abs(abs(value) - stated * factor) <= slack + 1e-9 * abs(value)


def _matches(token: Token, quantity: Quantity) -> str:
    value = quantity.value
    unit, other = token.unit, quantity.unit
    for stated in token.values:
        if token.currencies or token.is_minor:
            amount = value / 100 if quantity.is_minor and other is None else value
            wanted = stated / 100 if token.is_minor else stated
            if (
                other is not None
                and other.dimension not in ("", "percent")
                and not quantity.currencies
                and not quantity.is_minor
            ):
                continue
            if token.is_minor and (
                _close(token, value, stated) and (quantity.is_minor or not quantity.currencies)
            ):
                return "yes"
            if not quantity.currencies and other is None and value >= 100 and value == round(stated * 100, 6):
                return "yes"
            if _close(token, amount, wanted, 1.0) if not token.is_minor else abs(amount - wanted) < 0.005:
                if (
                    quantity.currencies
                    and token.currencies
                    and quantity.currencies.isdisjoint(token.currencies)
                ):
                    return "currency"
                return "yes"
        elif unit is not None:
            if unit.dimension == "percent":
                if other is not None and other.dimension != "percent":
                    continue
                if _close(token, value, stated) or (
                    abs(value) <= 2 and other is None and _close(token, value * 100, stated)
                ):
                    return "yes"
            elif other is None or quantity.currencies:
                if _close(token, value, stated) and not quantity.is_minor:
                    return "yes"
                if unit.dimension == "time" and LASTING & {*key_words(quantity.key)} and any(
                    _close(token, value * factor, stated, unit.factors[0]) for factor in (0.001, 1.0, 60.0)
                ):  # fmt: skip
                    return "yes"
            elif other.dimension == unit.dimension:
                if unit.dimension == "temperature":
                    if _same_temperature(token, stated, quantity):
                        return "yes"
                elif any(
                    _close(token, value * one, stated, factor, is_other=unit.symbol != other.symbol)
                    for one in other.factors
                    for factor in unit.factors
                ):
                    return "yes"
                elif stated > _SMALL and any(
                    abs(value * one - stated * factor) < 1e-6 * abs(value * one)
                    for one in other.factors
                    for factor in factors_of(unit.dimension)
                ):
                    return "unit"
                if unit.symbol != other.symbol and stated > _SMALL and _close(token, value, stated):
                    return "unit"
                if stated == abs(value) and unit.symbol != other.symbol and stated not in (0, 1):
                    return "unit"
            elif (
                _close(token, value, stated)
                and other.dimension not in ("percent",)
                and unit.dimension != "time"
                and stated > _SMALL
            ):
                return "unit"
        else:
            if _close(token, value, stated):
                return "yes"
            if quantity.is_minor and _close(token, value / 100, stated):
                return "yes"
            if token.readings[0][1] and abs(value) <= 1 and _close(token, value * 100, stated):
                return "yes"
            if other is not None and other.dimension in ("length", "mass", "bytes", "time", "volume", "energy", "power") and token.readings[0][1] and (  # noqa: E501
                any(_close(token, value, stated, 10.0**power) for power in (3, -3, 6))
            ):  # fmt: skip
                return "yes"
    return ""


def _same_temperature(token: Token, stated: float, quantity: Quantity) -> bool:
    symbol, other = token.unit.symbol if token.unit else "", quantity.unit.symbol if quantity.unit else ""
    signed = -stated if token.is_negative else stated
    if symbol == other or not symbol or not other:
        return _close(token, quantity.value, stated)
    converted = quantity.value * 9 / 5 + 32 if other == "C" else (quantity.value - 32) * 5 / 9
    return abs(converted - signed) <= token.tolerance(stated) + (1.0 if token.is_approximate else 0.0) + 1e-9


def _derived(support: Support, response: Response) -> None:
    token = support.token
    arithmetic = response.arithmetic
    for stated in (token.value,):
        tolerance = token.tolerance(stated)
        if token.is_approximate:
            tolerance = max(tolerance, stated * 0.06)
        if token.extra and token.unit is not None:
            base = stated * token.unit.factors[0] + sum(
                value * unit.factors[0] for value, unit in token.extra
            )
            slack = token.extra[-1][1].factors[0] / 2
            made = arithmetic.natural(base, slack * 1.01, ("time",))
            if made is None and _between_times(round(base / 60), response):
                support.how = "between two times"
                return
            if made is not None:
                support.how = made.shown()
                return
            continue
        dimension = dimension_of(token)
        factors = token.unit.factors if token.unit and not token.currencies else (1.0,)
        if token.is_minor:
            factors = (0.01,)
        for factor in factors:
            base, slack = stated * factor, tolerance * factor
            tries = [(base, slack, dimension)]
            if dimension and dimension != "percent":
                tries.append((stated, tolerance, ""))
            if dimension == "money" and not token.is_minor:
                tries.append((stated * 100, tolerance * 100, ""))
            if not dimension:
                tries += [(stated, tolerance, "money"), (stated, tolerance, "percent")]
                tries += [(stated * f, tolerance * f, d) for d, f in _usual_factors(response).items()]
            if dimension == "percent" and token.word not in ("%",):
                tries.append((stated / 100, tolerance / 100, ""))
            for value, within, wanted in tries:
                made = arithmetic.natural(value, within, (wanted,))
                if made is not None:
                    support.how = made.shown()
                    return
            support.how, support.is_sure = _deep(
                arithmetic, base, token.tolerance(stated) * factor, dimension
            )
            if support.how:
                return


def _deep(arithmetic: Arithmetic, value: float, tolerance: float, dimension: str) -> tuple[str, bool]:
    how, is_sure = arithmetic.deep(value, tolerance, dimension)
    return how or "", is_sure


def _between_times(minutes: int, response: Response) -> bool:
    """Whether a length lies between two times of day, of the answer or the evidence."""
    told = [m.minutes for m in response.ledger.moments[:40] if m.minutes is not None]
    said = [token.minutes for token in response.tokens if token.kind == "time"][:20]
    return any((one - other) % 1440 == minutes % 1440 for one in (*said, *told) for other in (*said, *told))


def _usual_factors(response: Response) -> dict[str, float]:
    found: dict[str, float] = {}
    for quantity in response.ledger.quantities:
        if quantity.unit is not None and quantity.unit.dimension != "percent":
            found.setdefault(quantity.unit.dimension, quantity.unit.factors[0])
    return found


def unsupported_numbers(response: Response, known: list[Support]) -> Iterator[Finding]:
    """RH1.1: a slip of a number of the evidence; RH12.5: a number where the result has null.

    RH1.2: a number that is nowhere in it, of an answer that reckons nothing; RH1.6: beside what was reckoned.
    """
    open_ones = [s for s in known if not s.is_supported and not s.other_unit and not s.other_currency]
    steps = sum(support.is_reckoned for support in known)
    is_lookup = (len(open_ones) < 4 and not steps) or (
        len(open_ones) == 1
        and (steps < 2 or len(_significant(open_ones[0].token.value, 2, 1.0).rstrip("0")) > 3)
    )
    for support in open_ones:
        token = support.token
        stated = token.value
        near = _nearly(token, response, is_lone=len(open_ones) == 1)
        claim = shown(response.output[max(0, token.start - 12) : token.end + 14])
        if near is not None:
            what = f"{token.text} is not in the results; nearest: {near[0]}"
            is_surely = len(_digits(token)) >= _LONG_NUMBER and near[2] is not None
            yield Finding("RH1.1" if is_surely else "RH1.7", claim, what, near[1], near[2])
            continue
        null = _null_beside(token.start, response) if is_lookup else None
        if null is not None:
            yield Finding("RH12.5", claim, f"{token.text} against {null.key} null", null.path, null.call)
        elif (is_lookup or (support.is_sure and not token.is_approximate and len(_digits(token)) > 2)) and (
            stated > _SMALL or stated != int(stated) or dimension_of(token) or token.scale != 1.0
        ):
            is_bare = not dimension_of(token) and token.scale == 1.0 and stated < _FITS_ANYTHING
            is_open = bool(steps) or (is_bare and not response.arithmetic.is_trivial)
            places = token.readings[token.reading][1]
            if is_open and not support.is_sure and len(_digits(token)) < _LONG_NUMBER + bool(places):
                continue
            rule = "RH1.6" if is_open else "RH1.2"
            made = response.arithmetic.nearest(stated, ("", "money"))
            nearest = f"; nearest: {made.shown()} = {made.value:.10g}" if made is not None else ""
            yield Finding(rule, claim, f"{token.text} is not in the results{nearest}")
    yield from _transposed(response, known)
    yield from _wrong_means(response, known)
    yield from _wrong_counts(response, known)


def _transposed(response: Response, known: list[Support]) -> Iterator[Finding]:
    """RH1.1 as well: two digits of a long number changed places, though something can be reckoned to it."""
    told = {_digits(support.token) for support in known}
    for support in known:
        digits = _digits(support.token)
        if support.direct or not support.how or len(digits) <= _LONG_NUMBER or support.token.is_approximate:
            continue
        token, most = support.token, 2 * support.token.value
        places = token.readings[token.reading][1]
        for quantity in response.ledger.quantities[:_MOST_COMPARED]:
            if quantity.call < 0 or not token.value < 2 * abs(quantity.value) < 2 * most:
                continue
            own = _significant(abs(quantity.value), places, token.scale).rstrip("0")
            if sorted(own) == sorted(digits) and _slipped(own, digits) and own not in told:
                claim = shown(response.output[max(0, token.start - 12) : token.end + 14])
                what = f"{token.text} is not in the results; nearest: {quantity.key} {quantity.value:.10g}"
                yield Finding("RH1.1", claim, what, quantity.path, quantity.call)
                break


def _null_beside(position: int, response: Response) -> Leaf | None:
    """A null of the last calls whose key the words around a claim name."""
    start, end = response.sentence_of(position)
    words = {w[:5] for w in _LETTERS.findall(response.output[start:end].lower())}
    for leaf in response.current:
        if leaf.value is None and leaf.call >= 0:
            if any(len(word) >= _SHORTEST_STEM and word[:5] in words for word in key_words(leaf.key)):
                return leaf
    return None


def _wrong_means(response: Response, known: list[Support]) -> Iterator[Finding]:
    """RH1.4: a number told as an average that is none of the results, though it lies within their range."""
    for one in [one for one in response.told if "mean" in one.categories][:_MOST_MEANS]:
        inside = [s for s in known if one.start <= s.token.start < one.end and not s.token.is_spelled]
        marks = [one.start + place for word in response.words.mean_places(one.text) for place in (word,)]
        claims = [
            s for s in inside if s.token.value > 1 and any(-60 < mark - s.token.start < 24 for mark in marks)
        ]
        claims = sorted(claims, key=lambda s: min(abs(mark - s.token.start) for mark in marks))[:2]
        if not claims or any(AVERAGE_KEYS & {*key_words(q.key)} for s in claims for q in s.direct):
            continue
        claims = claims[:1]
        sizes = [s.token.value for s in known if s not in claims]
        if any(_is_mean(s.token, response, sizes) for s in claims):
            continue
        for key, column in response.arithmetic.columns:
            values = sorted(operand.value for operand in column)
            fits = [s for s in claims if len({*values}) > 2 and _is_of(s.token, values, column[0].dimension)]
            if len(fits) == 1 and not (
                fits[0].token.unit is not None and fits[0].token.unit.dimension == "percent"
            ):
                mean = math.fsum(values) / len(values)
                what = f"{fits[0].token.text} is no average of the results; mean of {key} = {mean:.6g}"
                yield Finding("RH1.4", shown(one.text), what)
                return


def _in_base(token: Token) -> tuple[float, float]:
    factor = token.unit.factors[0] if token.unit is not None and not token.currencies else 1.0
    value = token.value * factor + sum(v * u.factors[0] for v, u in token.extra)
    slack = token.tolerance(token.value) * factor
    if token.extra:
        slack = token.extra[-1][1].factors[0] / 2
    return value, max(slack, 0.06 * value if token.is_approximate else 0.0)


def _is_of(token: Token, values: list[float], dimension: str) -> bool:
    """Whether a number may be an average of a column: of its dimension and between its ends."""
    own = dimension_of(token)
    value = _in_base(token)[0] if dimension else token.value
    return (own == dimension or not own or not dimension) and values[0] < value < values[-1]


def _is_mean(token: Token, response: Response, sizes: list[float]) -> bool:
    value, tolerance = _in_base(token)
    tries = [
        (value, tolerance),
        (token.value, max(token.tolerance(token.value), 0.06 * token.value * token.is_approximate)),
    ]
    return any(response.arithmetic.is_mean(v, t * 1.01 + 1e-9 * v, sizes) for v, t in tries)


def _wrong_counts(response: Response, known: list[Support]) -> Iterator[Finding]:
    """RH1.5: the count that was asked for, where the rows of the results give no such count."""
    question = response.question.lower()
    if not any(word in question for word in HOW_MANY) or not known:
        return
    groups = [records for records in response.ledger.groups.values() if 3 <= len(records) <= 200]
    first = known[0]
    token = first.token
    is_count = token.value == int(token.value) and not dimension_of(token) and token.value > 1
    if not groups or not is_count or token.is_approximate or token.start > 120:
        return
    rows = {record.index for records in groups for record in records}
    if any(quantity.record not in rows or TOTAL_KEYS & {quantity.key.lower()} for quantity in first.direct):
        return
    if token.value in response.arithmetic.counts():
        return
    most = max([len(groups[0]), *(sum(o.value for o in column) for _, column in response.arithmetic.columns)])
    if len(groups) > 1 or token.value > min(most, 60, 2 * len(groups[0])) or response.timeline.days:
        return
    what = f"{len(groups[0])} rows, none of whose values stands in {token.value:.0f}"
    yield Finding("RH1.5", shown(response.output[: token.end + 40]), what, "", groups[0][0].call)


def _nearly(token: Token, response: Response, *, is_lone: bool) -> tuple[str, str, int | None] | None:
    """A number of the evidence, or a natural sum, that differs by what slips.

    That is a digit, two that changed places, or the power of ten.
    """
    for reading in token.readings:
        digits = _significant(reading[0] * token.scale, reading[1], token.scale)
        if len(digits.rstrip("0")) < (2 if is_lone else 4):
            continue
        for quantity in response.ledger.quantities[:_MOST_COMPARED]:
            if quantity.call < 0 or not quantity.is_operand:
                continue
            value = abs(operand_of(quantity).value if quantity.is_minor else quantity.value)
            own = f"{value:.10g}".replace(".", "").strip("0")
            if (
                _slipped(digits, _significant(value, reading[1], token.scale))
                and len(digits) > 2
                and len(own) > 2
            ):
                return f"{quantity.key} {quantity.value:.10g}", quantity.path, quantity.call
            is_same = (token.unit is None) == (quantity.unit is None)
            is_long = len(own) > 2 or quantity.is_minor or token.scale > 1.0
            if is_same and is_long and own == digits.rstrip("0") and value != reading[0] * token.scale:
                return f"{quantity.key} {quantity.value:.10g}", quantity.path, quantity.call
        if len(digits) >= 4:
            for made in response.arithmetic.near_sums(reading[0] * token.scale, ("", "money")):
                if _slipped(digits, _significant(made.value, reading[1], token.scale)):
                    return f"{made.shown()} = {made.value:.10g}", "", None
    return None


def _significant(value: float, places: int, scale: float) -> str:
    return f"{value / scale:.{places}f}".replace(".", "").lstrip("0") if value < 1e15 else ""


def _digits(token: Token) -> str:
    """The significant digits of a number, zeros at the end aside."""
    return _significant(token.value, token.readings[token.reading][1], token.scale).rstrip("0")


def _slipped(one: str, other: str) -> bool:
    if len(one) != len(other) or one == other:
        return False
    different = [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(different) == 1:
        return True
    return len(different) == 2 and different[1] - different[0] <= 2 and sorted(one) == sorted(other)


def wrong_units(response: Response, known: list[Support]) -> Iterator[Finding]:
    """RH11.1: the digits of the evidence with another unit; RH11.2: a currency that no evidence has."""
    currencies = response.ledger.currencies
    for support in known:
        token = support.token
        claim = shown(response.output[max(0, token.start - 4) : token.end + 10])
        if token.currencies and currencies and token.currencies.isdisjoint(currencies):
            first = next(iter((*support.other_currency, *support.direct)), None)
            named = ", ".join(sorted(currencies)[:3])
            path, call = (first.path, first.call) if first is not None else ("", None)
            yield Finding("RH11.2", claim, f"{first.key if first else 'the results'}: {named}", path, call)
        elif (
            (slip := _scale_slip(token, response)) is not None
            and not support.is_supported
            and not support.other_unit
        ):
            what = f"{slip.key} {slip.value:.10g} {slip.unit.symbol if slip.unit else ''}"
            yield Finding("RH11.1", claim, what, slip.path, slip.call)
        elif not support.is_supported and not support.other_unit and (how := _unit_slip(token, response)):
            yield Finding("RH11.1", claim, f"another unit: {how}")
        elif support.other_unit and not support.is_supported:
            first = support.other_unit[0]
            symbol = first.unit.symbol if first.unit else ""
            yield Finding("RH11.1", claim, f"{first.key} {first.value:.10g} {symbol}", first.path, first.call)


def _unit_slip(token: Token, response: Response) -> str:
    """What would give a number if it had another unit of its dimension."""
    if (
        token.unit is None
        or len(_digits(token)) < 3
        or token.unit.dimension in ("percent", "temperature", "time")
    ):
        return ""
    for factor in factors_of(token.unit.dimension):
        made = response.arithmetic.natural(
            token.value * factor, token.tolerance(token.value) * factor, (token.unit.dimension,)
        )
        if made is not None:
            return made.shown()
    return ""


def _scale_slip(token: Token, response: Response) -> Quantity | None:
    """A quantity that differs by powers of 10 and 1024 alone: thousands for millions, 7 GiB for 700 MiB."""
    if (token.unit is None and token.scale == 1.0 and not token.currencies) or (
        token.unit and token.unit.dimension in ("percent", "temperature", "time")
    ):
        return None
    if not token.value:
        return None
    factors = token.unit.factors if token.unit is not None and not token.currencies else (1.0,)
    own = dimension_of(token)
    for quantity in response.ledger.quantities[:_MOST_COMPARED]:
        if quantity.call < 0 or not quantity.is_member or quantity.value < 100:
            continue
        if token.unit is not None and quantity.dimension != own:
            continue
        if (
            token.unit is None
            and not quantity.is_minor
            and len(f"{token.value / token.scale:g}".replace(".", "")) < 3
        ):
            continue
        if token.unit is None and token.scale == 1.0 and not quantity.is_minor:
            continue
        base = operand_of(quantity).value
        for factor in factors:
            ratio = base / (token.value * factor) if token.value else 0.0
            for binary in (0, 1, 2, -1):
                rest = ratio / 1024.0**binary
                power = round(math.log10(rest)) if rest > 0 else 0
                slack = token.tolerance(token.value) / token.value
                if (
                    0 < abs(power) <= 6
                    and abs(rest / 10.0**power - 1) <= min(slack, 0.02) + 1e-9
                    and (binary == 0 or own == "bytes")
                ):
                    return quantity
    return None
