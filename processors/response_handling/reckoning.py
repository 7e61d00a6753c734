"""Rules RH1 and RH11.1: numbers that nothing gives, and those that are not what they are said to be.

Where a sentence says that something was reckoned (a total, an average, a share, a length of time), and
from what, the number is held against that reckoning.
"""

import re
from collections.abc import Iterator
from itertools import combinations, islice, permutations
from typing import Final

from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import (
    CLAUSE,
    STATED,
    Computed,
    Numbers,
    Support,
    is_slip,
    slack_of,
    whole_of,
)
from processors.response_handling.reading import Token
from processors.response_handling.response import Finding, Response, Settings, shown

_MOST_INVENTED: Final = 2
"""Where more numbers of one answer have no support, it goes by something that was not read."""
_MOST_DOUBTED: Final = 24
"""Numbers of one answer that are held against what they may be instead."""
_MOST_GIVEN: Final = 36
"""With more numbers of the evidence, not all steps over them were tried."""
_LONG: Final = 5
"""Digits from which a slip says much."""
_NEAR: Final = {"mean": 0.15, "total": 0.0, "share": 0.15, "change": 0.3, "time": 1.0}
"""How far, in parts of it, what is told may lie from what was to be reckoned to be taken for that.

Totals of parts are told of often, so that only a slip of a total counts."""
_LONGEST_KEY: Final = 60
_KEY_BEFORE: Final = re.compile(r"\"([^\"\n]{1,40})\"\s{0,4}:\s{0,4}\"?$")
_LEAST_SLIP: Final = 100
"""Totals below it are no slips of another."""


def unsupported_numbers(response: Response, _: Settings) -> Iterator[Finding]:
    """RH1: numbers that nothing gives; RH11.1: that fit in another unit."""
    numbers_only = (token for token in response.tokens if token.kind == "number" and not token.is_spelled)
    if all(map(response.repeats, numbers_only)):
        return  # as of most answers, so that the numbers of the evidence need not be read
    numbers = response.once(Numbers)
    if numbers.are_foreign:
        return
    is_unread = sum(not support.is_supported for support in numbers.supports) > _MOST_INVENTED
    doubted = (one for one in numbers.supports if not one.direct or _is_count_itself(one, numbers))
    for support in islice(doubted, _MOST_DOUBTED):
        token, claim = support.token, shown(response.around(support.token))
        wrong = _misreckoned(support, numbers, response)
        if wrong is not None:
            yield Finding("RH1.7", claim, f"{token.text}: {wrong.how} is {wrong.value:.10g}")
            continue
        if not support.is_checked or support.direct or support.steps == 1:
            continue
        other = numbers.in_another_unit(token)
        if other is not None and support.steps == 2:  # then only what is told as it stands
            other = other if abs(other.value) == token.value else None
        slip = numbers.slip(token) if support.steps != 2 else None
        if other is not None:
            what = f"{token.text} is {other.key} {other.value:.10g} in another unit"
            yield Finding("RH11.1", claim, what, other.path, other.call)
        elif slip is not None and (not support.how or slip.dimension != "given" or _digits(token) >= _LONG):
            what = f"{token.text} is not in the results; nearest: {slip.how} {slip.value:.10g}"
            yield Finding("RH1.7", claim, what)
        elif (
            not support.how
            and not is_unread
            and len(numbers.given) <= _MOST_GIVEN
            and numbers.is_of_results(token)
            and not _fills_a_field(token, response)
        ):
            near = min(
                numbers.given, key=lambda computed: abs(abs(computed.value) - token.value), default=None
            )
            beside = f"; nearest: {near.how} {near.value:.10g}" if near is not None else ""
            yield Finding("RH1.2", claim, f"{token.text} is not in the results{beside}")


def _fills_a_field(token: Token, response: Response) -> bool:
    """Whether a number is the value of a member, in an answer of JSON, that nothing in the run names."""
    if response.output.lstrip()[:1] not in ("{", "["):
        return False
    key = _KEY_BEFORE.search(response.output, max(0, token.start - _LONGEST_KEY), token.start)
    if key is None:
        return False
    return not any(response.has_evidence_of(word) for word in key_words(key[1]) if len(word) > 2)


def _is_count_itself(support: Support, numbers: Numbers) -> bool:
    """Whether a share has only the digits of a count told beside it: `28 of 80, which is 28%`."""
    value = support.token.value
    beside = (one.token for one in numbers.beside(support.token)) if _is_share(support.token) else ()
    is_stated = any(one.value == value and one.unit is None for one in beside)
    return is_stated and all(entry.unit is None and entry.value == value for entry in support.direct)


def _misreckoned(support: Support, numbers: Numbers, response: Response) -> Computed | None:
    """What a sentence says was reckoned, where the number told is near that, but not it."""
    token = support.token
    if token.is_spelled or not token.value or (support.is_sure and support.is_local):
        return None
    kinds, value, slack = numbers.kinds_near(support), whole_of(token), slack_of(token, token.value)
    if _is_share(token):
        candidates = [*_shares(token, bool({"up", "down"} & kinds), numbers, response)]
    else:
        candidates = [
            computed for kind in kinds & {"mean", "total"} for computed in numbers.of_kind(kind, support)
        ]
        candidates += _lapses(token, response)
    near = min(
        (m for m in candidates if m.kind in _NEAR),
        key=lambda computed: abs(computed.value - value),
        default=None,
    )
    if near is None or any(abs(computed.value - value) <= slack for computed in candidates):
        return None
    is_slipped = near.kind == "total" and value >= _LEAST_SLIP
    is_slipped = is_slipped and is_slip(value, near.value, token.readings[token.reading][1])
    is_near = is_slipped or abs(near.value - value) <= _NEAR[near.kind] * near.value
    is_wrong = is_near and (not support.is_sure or (is_slipped and near.how == STATED))
    return near if is_wrong or support.direct else None


def _shares(token: Token, is_change: bool, numbers: Numbers, response: Response) -> Iterator[Computed]:
    """The shares or changes of the only two numbers told in the clause or the sentence of one."""
    amounts_only = (s for s in numbers.beside(token) if not s.direct or any(q.is_operand for q in s.direct))
    beside = [s.token for s in amounts_only if not _is_share(s.token)]
    first, last = response.span_of(token)
    marks = [first, *(match.start() for match in CLAUSE.finditer(response.output, first, last)), last]
    start, end = max(m for m in marks if m <= token.start), min(m for m in marks if m >= token.end)
    for scope in ([one for one in beside if start <= one.start < end], beside):
        amounts = {one.value for one in scope if one.value > 1}
        if (
            len(amounts) != 2
            or len({(one.unit, one.currencies) for one in scope} - {(None, frozenset())}) > 1
        ):
            continue
        stated = [support.token.value for support in numbers.supports]
        given = [
            *(abs(computed.value) for computed in numbers.given),
            *stated,
            *(one + by for one in amounts for by in stated),
        ]
        for one, other in permutations(amounts, 2):
            how, kind = f"{one:.10g} of {other:.10g}", "change" if is_change else "share"
            yield from (
                Computed(100 * by, 0.0, "", how, kind) for by in (one / other, abs(one - other) / other)
            )
            yield from (
                Computed(100 * one / by, 0.0, "", how) for by in (*given, one + other, abs(one - other)) if by
            )
        return


def _lapses(token: Token, response: Response) -> Iterator[Computed]:
    """What lies between two times told beside a length, if that is an hour or ten minutes off."""
    if token.unit is None or token.unit.dimension != "time":
        return
    start, end = response.span_of(token)
    clocks = [one for one in response.tokens if one.kind == "time" and start <= one.start < end]
    for one, other in combinations(clocks[:4], 2):
        gap = (other.minutes - one.minutes) % 1440 * 60
        if min(abs(abs(token.total - gap) - off) for off in (0, 600, 3600)) <= 60:
            how = f"{one.text.strip()} to {other.text.strip()}"
            yield Computed(gap / token.unit.factors[0], gap, "time", how, "time")


def _digits(token: Token) -> int:
    return sum(map(str.isdigit, token.text))


def _is_share(token: Token) -> bool:
    return token.unit is not None and token.unit.dimension == "percent"
