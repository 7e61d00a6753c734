"""Rule RH10: a value of another row than the one that the answer names."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from processors.response_handling.ledger import Record
from processors.response_handling.numbers import Support
from processors.response_handling.response import Finding, Response, shown

_WORD = re.compile(r"[^\W_]{1,40}")
_CLOSE = re.compile(r"[^\d,;:]{1,20}")
MAX_RECORDS = 60


class _Mention(NamedTuple):
    start: int
    record: Record


def wrong_rows(response: Response, known: list[Support]) -> Iterator[Finding]:
    """A finding where a number stands only in other rows than the one named beside it, which has another.

    The name may stand before its values or behind them; only what fits neither order is a finding.
    """
    if not any(support.direct for support in known):
        return
    for records in response.ledger.groups.values():
        if not 1 < len(records) <= MAX_RECORDS:
            continue
        labels = {record.index: response.ledger.labels(record) for record in records}
        common = set.intersection(*labels.values())
        names = {record.index: response.ledger.labels(record, names_only=True) for record in records}
        common_names = set.intersection(*names.values())
        by_index = {record.index: record for record in records}
        for start, end in response.sentences:
            claims = [s for s in known if start <= s.token.start < end and _belongs(s, by_index)]
            if not claims:
                continue
            mentions = _mentions(response.output[start:end], start, records, names, common_names)
            mentions = mentions or _mentions(response.output[start:end], start, records, labels, common)
            if not mentions:
                mentions = (
                    _mentions(response.question, start, records, labels, common)
                    if len(response.sentences) == 1
                    else []
                )
                mentions = mentions if len(mentions) == 1 else []
            yield from _judge(claims, mentions, by_index, response)


def _belongs(support: Support, by_index: dict[int, Record]) -> bool:
    """Whether a number stands in rows of the group alone, and not in all of them."""
    rows = {quantity.record for quantity in support.direct}
    is_plain = not support.token.is_spelled and all(quantity.is_operand for quantity in support.direct)
    return (
        bool(rows) and is_plain and rows <= by_index.keys() and len(rows) < len(by_index) and not support.how
    )


def _mentions(
    text: str, offset: int, records: list[Record], labels: dict[int, set[str]], common: set[str]
) -> list[_Mention]:
    """The rows that a text names, each where its most telling word stands first.

    A row is named by the words that not all rows have; of rows with words in common the one that has most
    of them said is meant, and none if two have as many.
    """
    places: dict[str, int] = {}
    for match in _WORD.finditer(text.lower()):
        places.setdefault(match[0], match.start())
    scores: dict[int, set[str]] = {}
    for record in records:
        said = {
            word
            for word in labels[record.index] - common
            if word in places and (len(word) > 1 or word.isdigit()) and not (word.isdigit() and len(word) < 4)
        }
        if said:
            scores[record.index] = said
    found = []
    for record in records:
        if record.index not in scores:
            continue
        said = scores[record.index]
        rivals = [other for index, other in scores.items() if index != record.index and said & other]
        if any(said <= other for other in rivals):
            continue
        own = said - set().union(*rivals)
        if own or all(len(other) < len(said) for other in rivals):
            found.append(_Mention(offset + min(places[word] for word in (own or said)), record))
    return sorted(found)[:12] if len({mention.start for mention in found}) == len(found) else []


def _judge(
    claims: list[Support], mentions: list[_Mention], by_index: dict[int, Record], response: Response
) -> Iterator[Finding]:
    if not mentions:
        return
    before, behind = [], []
    for support in claims:
        token = support.token
        if (named := next((m for m in reversed(mentions) if m.start < token.start), None)) is not None:
            before.append((support, named.record))
        if (named := next((m for m in mentions if m.start > token.start), None)) is not None:
            behind.append((support, named.record, _CLOSE.fullmatch(response.output, token.end, named.start)))
    wrong = [(support, record) for support, record in before if not _fits(support, record)]
    if len(behind) == len(claims) > len(before) and all(near for _, _, near in behind):
        wrong = [(support, record) for support, record, _ in behind if not _fits(support, record)]
    elif behind and all(_fits(support, record) for support, record, _ in behind):
        return
    for support, record in wrong:
        own = _counterpart(support, record)
        quantity = support.direct[0]
        other = by_index[quantity.record]
        name = next((text for _, text in other.texts if len(text) < 60), other.key)
        mine = next((text for _, text in record.texts if len(text) < 60), record.key)
        claim = shown(response.output[max(0, support.token.start - 30) : support.token.end + 10])
        yield Finding(
            "RH10",
            claim,
            f"{support.token.text} is {quantity.key} of {name}; {mine} has {own}",
            quantity.path,
            quantity.call,
        )


def _fits(support: Support, record: Record) -> bool:
    return (
        any(quantity.record == record.index for quantity in support.direct)
        or _counterpart(support, record) is None
    )


def _counterpart(support: Support, record: Record) -> str | None:
    """What the named row has under the key of the number; None where it has nothing to compare."""
    keys = {quantity.key for quantity in support.direct}
    for quantity in record.numbers:
        if quantity.key in keys and quantity.is_member:
            return f"{quantity.value:.10g}"
    return None
