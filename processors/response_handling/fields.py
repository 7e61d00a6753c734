"""Rule RH10.3: a number of one member told under the name of another one beside it."""

import re
from collections.abc import Iterator
from typing import Final

from processors.response_handling.ledger import Quantity
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers
from processors.response_handling.response import Finding, Response, alike, around, shown, words_of

_WORD = re.compile(r"[^\W\d_]{2,40}")
_MOST_MEMBERS, _SMALL = 12, 100
"""Members of a record that are looked at; whole numbers up to the second are told beside anything."""
_VAGUE: Final = frozenset(("total", "count", "number", "amount", "value", "sum", "size", "id", "avg"))
"""Words of keys that people use of any number."""


def wrong_fields(response: Response) -> Iterator[Finding]:
    """RH10.3: the number told behind the name of one member is another's, and its own is told nowhere."""
    numbers = response.once(Numbers)
    said = {abs(quantity.value) for support in numbers.supports for quantity in support.direct}
    for support in numbers.supports:
        token, own = support.token, support.direct
        if (
            token.is_spelled
            or not own
            or not own[0].is_operand
            or len({(one.record, one.key) for one in own}) != 1
        ):
            continue
        if own[0].call < 0 or not response.tells(token.start):
            continue
        start, end = around(response.clauses, token.start)
        beside = words_of(response.around(token))
        for other in _beside(own[0], response):
            names = _own_words(own[0], other, response)
            is_told = abs(other.value) in said or any(alike(name, word) for name in names for word in beside)
            if names and not is_told and other.value != own[0].value:
                for match in _WORD.finditer(response.output, start, token.start):
                    is_named = any(
                        alike(name, match[0].lower()) for name in _own_words(other, own[0], response)
                    )
                    if is_named and numbers.within(match.end(), end)[:1] == [support]:
                        what = f"{token.text} is {own[0].key}; {other.key} is {other.value:.10g}"
                        yield Finding("RH10.3", shown(response.around(token)), what, other.path, other.call)
                        return


def _beside(own: Quantity, response: Response) -> Iterator[Quantity]:
    """The numbers of the same record that are of a kind with one."""
    record = response.ledger.records[own.record]
    is_even = all(isinstance(leaf.value, (int, float)) for leaf in record.leaves)
    is_large = abs(own.value) >= _SMALL
    for other in record.numbers[:_MOST_MEMBERS]:
        is_alike = (other.unit and other.unit.dimension) == (own.unit and own.unit.dimension)
        if is_alike and other.key != own.key and other.is_operand and other.is_whole:
            shared = {*key_words(other.key)} & {*key_words(own.key)}
            if is_large or is_even or shared or own.unit is not None:
                yield other


def _own_words(one: Quantity, other: Quantity, response: Response) -> list[str]:
    """The words of a key that tell it from another."""
    words, others = {*key_words(one.key)} - _VAGUE, key_words(other.key)
    telling = (word for word in words if len(word) > 2 and word not in response.words.function)
    return [word for word in telling if not any(word[:3] == its[:3] for its in others)]
