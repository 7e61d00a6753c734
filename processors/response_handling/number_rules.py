"""Rules RH1, RH11 and RH12.5: numbers that nothing supports, and wrong units and currencies."""

from collections.abc import Iterator, Sequence
from typing import Final

from processors.response_handling.arithmetic import amount
from processors.response_handling.ledger import Quantity
from processors.response_handling.lexicons.units import UNITS, Unit, factors_of, key_words
from processors.response_handling.numbers import is_slip
from processors.response_handling.reading import Token
from processors.response_handling.response import Finding, Response, shown, words_of

_LONG: Final = 5
"""Digits from which a slip says much."""
_MOST_INVENTED: Final = 2
"""Where more numbers of one answer have no support, it goes by something that was not read."""
_SCALES: Final = (1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9)


def unsupported_numbers(response: Response) -> Iterator[Finding]:
    """RH1: numbers that nothing gives; RH11.1: those that fit in another unit; RH12.5: those of what is null."""
    numbers = response.numbers
    evidence = [q for q in response.ledger.quantities if q.call >= 0]
    nulls = [leaf for leaf in response.current if leaf.value is None]
    unsure = sum(not support.is_supported for support in numbers.supports) > _MOST_INVENTED
    told = {q.value for support in numbers.supports for q in support.direct}
    for support in numbers.supports:
        token = support.token
        if not support.is_checked or support.direct or support.steps == 1:
            continue
        claim = shown(response.around(token))
        other = _in_another_unit(token, evidence) if support.steps != 2 else None
        if other is not None and response.may_mean(other, token):
            what = f"{token.text} is {other.key} {other.value:.10g} in another unit"
            yield Finding("RH11.1", claim, what, other.path, other.call)
            continue
        slip = next((q for q in evidence if q.value not in told and q.is_operand and is_slip(token, amount(q))), None)
        if slip is not None and (not support.how or (support.steps == 3 and _digits(token) >= _LONG)):
            rule = "RH1.1" if _digits(token) >= _LONG - 1 else "RH1.7"
            what = f"{token.text} is not in the results; nearest: {slip.key} {amount(slip):.10g}"
            yield Finding(rule, claim, what, slip.path, slip.call)
        elif support.steps != 2 and (total := numbers.slipped_total(token)) is not None:
            yield Finding("RH1.7", claim, f"{token.text} is not {total.how}: {total.value:.10g}")
        elif not support.how and not unsure and numbers.is_whole:
            words = {word[:5] for word in words_of(response.around(token))}
            null = next((n for n in nulls if words & {w[:5] for w in key_words(n.key)}), None)
            if null is not None:
                yield Finding("RH12.5", claim, f"{null.key} is null", null.path, null.call)
            else:
                near = min(evidence, key=lambda q: abs(abs(amount(q)) - token.value), default=None)
                beside = f"; nearest: {near.key} {amount(near):.10g}" if near is not None else ""
                rule = "RH1.6" if numbers.is_reckoned else "RH1.2"
                yield Finding(rule, claim, f"{token.text} is not in the results{beside}")


def wrong_currencies(response: Response) -> Iterator[Finding]:
    """RH11.2: an amount in a currency that no evidence has, where the evidence tells of one."""
    known = response.ledger.currencies
    for support in response.numbers.supports:
        currencies = support.token.currencies
        if known and currencies and currencies.isdisjoint(known):
            near = next(iter(support.direct), None)
            what = f"the evidence is in {', '.join(sorted(known)[:3])}"
            path, call = (near.path, near.call) if near is not None else ("", None)
            yield Finding("RH11.2", shown(response.around(support.token)), what, path, call)


def _digits(token: Token) -> int:
    return sum(character.isdigit() for character in token.text)


def _in_another_unit(token: Token, evidence: Sequence[Quantity]) -> Quantity | None:
    """The number of the evidence that has the digits of one told, in another unit or scale."""
    unit: Unit | None = token.unit
    for quantity in evidence:
        if quantity.unit is None or unit is None or unit.dimension in ("percent", "temperature"):
            if unit is None and token.scale != 1.0:
                if any(abs(abs(quantity.value) * by - token.value) <= token.tolerance(token.value) for by in _SCALES):
                    return quantity
            continue
        if quantity.unit.dimension == unit.dimension and unit.dimension != "time":
            for factor in factors_of(unit.dimension):
                told = token.value * factor
                if abs(told - abs(quantity.base)) <= token.tolerance(token.value) * factor and token.value:
                    return quantity
        elif {quantity.unit.symbol, unit.symbol} != {"%", "deg"} and quantity.unit.dimension != unit.dimension:
            if abs(abs(quantity.value) - token.value) <= token.tolerance(token.value) and UNITS.get(unit.symbol):
                return quantity
    return None
