"""Rule RH10.3: a number of one member told under the name of another one beside it."""

import re
from collections.abc import Iterator

from processors.response_handling.ledger import Quantity
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers
from processors.response_handling.response import Finding, Response, alike, around, shown

_WORD = re.compile(r"[^\W\d_]{2,40}")
_BEHIND = re.compile(r"\s[^\W\d_]{2,40}")
_OPERATOR = re.compile(r"[-+−–×*/=]\s?[$€£¥]?\s?\Z")
_MOST_MEMBERS, _SMALL, _BEFORE = 12, 100, 12
"""Members of a record; whole numbers up to the second are told beside anything; characters before one."""


def wrong_fields(response: Response) -> Iterator[Finding]:
    """RH10.3: the number told behind the name of one member is another's, and its own is told nowhere."""
    numbers = response.once(Numbers)
    said = {abs(quantity.value) for support in numbers.supports for quantity in support.direct}
    for support in numbers.supports:
        token, own = support.token, support.direct
        is_one = len({(one.record, one.key) for one in own}) == 1 and own[0].call >= 0
        is_reckoned = _OPERATOR.search(response.output, max(0, token.start - 4), token.start) is not None
        if not is_one or token.is_spelled or is_reckoned or not response.tells(token.start):
            continue
        start, end = around(response.clauses, token.start)
        beside = response.words_around(token)
        for other in response.ledger.records[own[0].record].numbers[:_MOST_MEMBERS]:
            names, its = _own_words(own[0], other), _own_words(other, own[0])
            is_told = abs(other.value) in said or any(alike(name, word) for name in names for word in beside)
            if is_told or not names or not _is_like(own[0], other):
                continue
            names_at = [*_WORD.finditer(response.output, start, token.start)]
            # Of `450 of 500 used` a name behind is the other's.
            if not numbers.within(token.start - _BEFORE, token.start):
                names_at += filter(None, [_BEHIND.match(response.output, token.end)])
            for match in names_at:
                is_named = any(alike(name, match[0].strip().lower()) for name in its)
                is_first = match.start() >= token.end or numbers.within(match.end(), end)[:1] == [support]
                if is_named and is_first:
                    what = f"{token.text} is {own[0].key}; {other.key} is {other.value:.10g}"
                    yield Finding("RH10.3", shown(response.around(token)), what, other.path, other.call)
                    return


def _is_like(own: Quantity, other: Quantity) -> bool:
    """Whether two numbers are of a kind, and one is no small number without a unit."""
    is_alike = (other.unit and other.unit.dimension) == (own.unit and own.unit.dimension)
    return is_alike and other.is_whole and (abs(own.value) >= _SMALL or own.unit is not None)


def _own_words(one: Quantity, other: Quantity) -> list[str]:
    """The words of a key that tell it from another."""
    words, others = {*key_words(one.key)}, key_words(other.key)
    return [word for word in words if len(word) > 2 and not any(word[:3] == its[:3] for its in others)]
