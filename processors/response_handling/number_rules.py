"""Rules RH1, RH11 and RH12.5: numbers that nothing supports, and wrong units and currencies."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from processors.response_handling.arithmetic import amount
from processors.response_handling.ledger import Quantity, folded
from processors.response_handling.lexicons.units import factors_of, key_words
from processors.response_handling.numbers import is_slip
from processors.response_handling.reading import Token
from processors.response_handling.response import Finding, Response, shown, words_of

_LONG: Final = 5
"""Digits from which a slip says much."""
_MOST_INVENTED: Final = 2
"""Where more numbers of one answer have no support, it goes by something that was not read."""
_TELLING: Final = 3
"""Digits by which a number is known again in another power of ten."""
_VAGUE: Final = 0.004
"""A tolerance that two steps meet by chance, as a part of the number."""


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
        is_vague = token.tolerance(token.value) > _VAGUE * token.value
        other = _in_another_unit(token, evidence) if support.steps != 2 or is_vague else None
        if other is not None and response.may_mean(other, token):
            what = f"{token.text} is {other.key} {other.value:.10g} in another unit"
            yield Finding("RH11.1", claim, what, other.path, other.call)
            continue
        slip = next(
            (q for q in evidence if q.value not in told and q.is_operand and is_slip(token, amount(q))), None
        )
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


def invented_identifiers(response: Response) -> Iterator[Finding]:
    """RH3.5: an identifier that no evidence has, nor any that it is a part or a slip of."""
    for token in response.tokens:
        whole = folded(token.text)
        digits = sum(map(str.isdigit, whole))
        if (
            token.kind == "id"
            and digits > _TELLING
            and len(whole) > _LONG + 1
            and whole not in response.ledger.text
        ):
            if not any(part in response.ledger.text for part in re.findall(r"\d{4,30}", whole)):
                yield Finding(
                    "RH3.5", shown(response.around(token)), f"{shown(token.text)} is not in the evidence"
                )


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
    """The number of the evidence that has the digits of one told, in another unit or power of ten."""
    unit = token.unit
    if not token.value or (unit is not None and unit.dimension in ("percent", "temperature", "time")):
        return None
    near = 1 + token.tolerance(token.value) / token.value
    digits = f"{token.readings[token.reading][0]:.10g}".replace(".", "").strip("0")
    for quantity in evidence:
        other = quantity.unit
        if not quantity.value or (unit is None) != (other is None):
            continue
        if unit is not None and other is not None and other.dimension != unit.dimension:
            if other.symbol != "%" and 1 / near <= abs(quantity.value) / token.value <= near:
                return quantity
            continue
        ratios = (
            {10.0**power for power in range(-9, 10) if power} if len(digits) >= _TELLING else set[float]()
        )
        if unit is not None:
            ratios |= {factor / unit.factors[0] for factor in factors_of(unit.dimension)}
        ratio = abs(quantity.base if unit is not None else amount(quantity)) / token.total
        if any(1 / near <= ratio / by <= near for by in ratios):
            return quantity
    return None
