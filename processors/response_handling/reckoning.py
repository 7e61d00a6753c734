"""Rules RH1, RH11.1 and RH12.5: numbers that nothing gives, and those that are not what they are said to be.

Where a sentence says that something was reckoned (a total, an average, a share, a length of time, a
conversion), and from what, the number is held against that reckoning.
"""

import re
from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Final

from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import (
    CLAUSE,
    TOLD,
    Made,
    Numbers,
    Support,
    converted,
    is_slip,
    slack_of,
    whole_of,
)
from processors.response_handling.reading import Token
from processors.response_handling.response import Finding, Response, shown, words_of

_MOST_INVENTED: Final = 2
"""Where more numbers of one answer have no support, it goes by something that was not read."""
_MOST_DOUBTED: Final = 24
"""Numbers of one answer that are held against what they may be instead."""
_LONG: Final = 5
"""Digits from which a slip says much."""
_NEAR: Final = {
    "mean": 0.15,
    "total": 0.06,
    "share": 0.15,
    "of": 0.3,
    "from": 0.3,
    "": 0.0,
    "part": 0.0,
    "unit": 1.0,
    "time": 1.0,
}
"""How far, in parts of it, what is told may lie from what was to be reckoned to be taken for that."""
_LEAST_SLIP: Final = 100
"""Totals below it are no slips of another."""
_ADJACENT: Final = 32
"""Characters between a number and the same in another unit."""
_MEANS = re.compile(
    r"(?:(?:\s[^\W\d]{1,12},?){1,2}(?=\s(?:or|oder|ou|o|of|lub)\s))?[\s(（=≈~/|,*]{0,6}(?:(?:or|oder|ou|o|of|lub)\s?)?"
    r"(?:about|roughly|around|rund|etwa|environ|unos|cerca de|circa|około|ca\.?|c\.|approx\.?)?\s?~?"
)
_WITHIN = re.compile(r"[^()（）.;]{0,16}[(（]([^()（）]{1,60})[)）]")
_OF = re.compile(
    r".{0,4}?(?:\b(?:of|von|de|d[aeo]s?|di|su|sur|van|z|ze|against|vs|versus|gegen|gegenüber|contre|contro|contra|frente"
    r"|tegen|wobec|to|auf|a)\b|[/／→]|中|のうち).{0,10}?"
)


def unsupported_numbers(response: Response) -> Iterator[Finding]:
    """RH1: numbers that nothing gives; RH11.1: that fit in another unit; RH12.5: of what is null."""
    numbers = response.once(Numbers)
    is_unread = sum(not support.is_supported for support in numbers.supports) > _MOST_INVENTED
    for support in [support for support in numbers.supports if not support.direct][:_MOST_DOUBTED]:
        token, claim = support.token, shown(response.around(support.token))
        if (wrong := _misreckoned(support, numbers, response)) is not None:
            yield Finding("RH1.7", claim, f"{token.text}: {wrong.how} is {wrong.value:.10g}")
            continue
        if not support.is_checked or support.steps == 1:
            continue
        other = numbers.in_another_unit(token)
        if other is not None and support.steps == 2:  # then only what is told as it stands, of one dimension
            is_alike = other.unit and token.unit and other.unit.dimension == token.unit.dimension
            other = other if is_alike and abs(other.value) == token.value and not support.is_local else None
        slip = numbers.slip(token) if support.steps != 2 else None
        if other is not None and response.may_mean(other, token):
            what = f"{token.text} is {other.key} {other.value:.10g} in another unit"
            yield Finding("RH11.1", claim, what, other.path, other.call)
        elif slip is not None and (not support.how or slip.dimension != "given" or _digits(token) >= _LONG):
            rule = "RH1.1" if slip.dimension == "given" and _digits(token) >= _LONG - 1 else "RH1.7"
            yield Finding(
                rule, claim, f"{token.text} is not in the results; nearest: {slip.how} {slip.value:.10g}"
            )
        elif not support.how and not is_unread and numbers.is_whole and not numbers.is_of_part(support):
            stems = {word[:5] for word in words_of(claim)}
            nulls = (leaf for leaf in response.current if leaf.value is None)
            null = next((leaf for leaf in nulls if stems & {word[:5] for word in key_words(leaf.key)}), None)
            near = min(numbers.given, key=lambda made: abs(abs(made.value) - token.value), default=None)
            if null is not None:
                yield Finding("RH12.5", claim, f"{null.key} is null", null.path, null.call)
            else:
                beside = f"; nearest: {near.how} {near.value:.10g}" if near is not None else ""
                yield Finding("RH1.2", claim, f"{token.text} is not in the results{beside}")


def _misreckoned(support: Support, numbers: Numbers, response: Response) -> Made | None:
    """What a sentence says was reckoned, where the number told is near that, but not it."""
    token = support.token
    if token.is_spelled or not token.value or support.direct or (support.is_sure and support.is_local):
        return None
    said, value, slack = numbers.said(support), whole_of(token), slack_of(token, token.value)
    found: list[Made] = []
    if _is_share(token):
        found = [*_shares(support, numbers, response)]
    else:
        found = [*_converted(support, numbers, response.output)]
        if not found:  # a number in brackets behind another is nothing but that in another unit
            found = [made for kind in said & {"mean", "total"} for made in numbers.of_kind(kind, support)]
            found += _lapses(support, response)
    if any(abs(made.value - value) <= slack for made in found):
        return None
    near = min((m for m in found if _NEAR[m.kind]), key=lambda made: abs(made.value - value), default=None)
    if near is None:
        return None
    decimals = token.readings[token.reading][1]
    is_slipped = near.kind == "total" and value >= _LEAST_SLIP and is_slip(value, near.value, decimals)
    if not is_slipped and abs(near.value - value) > _NEAR[near.kind] * near.value:
        return None
    if near.kind in ("mean", "total") and numbers.is_partial(near.kind, support):
        return None
    return near if not support.is_sure or (is_slipped and near.how == TOLD) else None


def _shares(support: Support, numbers: Numbers, response: Response) -> Iterator[Made]:
    """The shares and changes of two numbers of one kind told beside one, if there are only two."""
    token, output = support.token, response.output
    beside = [s.token for s in numbers.beside(support.token) if not _is_share(s.token)]
    within, (first, last) = _WITHIN.match(output, token.end), response.span_of(token)
    inside = [one for one in beside if within and within.start() < one.start < within.end()]
    marks = [match.start() for match in CLAUSE.finditer(output, first, last)]
    start = max((mark for mark in marks if mark < token.start), default=first)
    if output[start] in "(（":  # a share in brackets is of what stands before them
        start, last = max((mark for mark in marks if mark < start), default=first), start
    end = min((mark for mark in marks if mark >= token.end), default=last)
    clause = [one for one in beside if start <= one.start < end]
    change = "from" if {"up", "down"} & numbers.said(support) else "share"
    for kind, scope in (("of", inside), (change, clause), (change, beside if end <= last else [])):
        ends = sorted((one.end, one.start) for one in scope)
        is_linked = len(scope) == 2 and _OF.fullmatch(output, ends[0][0], ends[1][1]) is not None
        if kind == "of" and not is_linked:
            continue
        is_plain = any(one.unit is None for one in scope)
        amounts = {one.value if is_plain else one.total for one in scope if one.value > 1}
        if len(amounts) != 2 or len({_kind_of(one) for one in scope} - {("", frozenset())}) > 1:
            continue
        for one, other in permutations(amounts, 2):
            how = f"{one:.10g} of {other:.10g}"
            yield from (
                Made(100 * by, 0.0, "", how, "of" if is_linked else kind)
                for by in (one / other, abs(one - other) / other)
            )
            yield from (Made(100 * one / by, 0.0, "", how) for by in (one + other, abs(one - other)))
            if kind != "of":
                told = [support.token.value for support in numbers.supports if support.token.value]
                given = [*(abs(made.value) for made in numbers.given if made.value), *told]
                given += [one + by for by in told]
                yield from (Made(100 * one / by, 0.0, "", how) for by in given)
        return


def _converted(support: Support, numbers: Numbers, output: str) -> Iterator[Made]:
    """What the number told right before one is in its unit."""
    token = support.token
    for other in numbers.beside(token):
        one, gap = other.token, token.start - other.token.end
        between = _MEANS.fullmatch(output, one.end, token.start) if 0 <= gap <= _ADJACENT else None
        if not (other.direct and one.unit and token.unit and between):
            continue
        if one.unit.dimension == token.unit.dimension and one.unit.symbol != token.unit.symbol:
            yield Made(
                converted(one.total, one.unit, token.unit), 0.0, "", f"{one.text} {one.unit.symbol}", "unit"
            )


def _lapses(support: Support, response: Response) -> Iterator[Made]:
    """What lies between two times told beside a length, if that is an hour or ten minutes off."""
    token = support.token
    if token.unit is None or token.unit.dimension != "time":
        return
    start, end = response.span_of(token)
    clocks = [one for one in response.tokens if one.kind == "time" and start <= one.start < end]
    for one, other in combinations(clocks[:4], 2):
        gap = (other.minutes - one.minutes) % 1440 * 60
        off = abs(token.total - gap)
        if off <= 60 or min(abs(off - 3600), abs(off - 600)) <= 60:
            yield Made(
                gap / token.unit.factors[0],
                gap,
                "time",
                f"{one.text.strip()} to {other.text.strip()}",
                "time",
            )


def _kind_of(token: Token) -> tuple[str, frozenset[str]]:
    return token.unit.dimension if token.unit else "", token.currencies


def _digits(token: Token) -> int:
    return sum(map(str.isdigit, token.text))


def _is_share(token: Token) -> bool:
    return token.unit is not None and token.unit.dimension == "percent"
