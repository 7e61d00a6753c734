"""Rule RH10: a value of another row than the one that the answer names."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from processors.response_handling.arithmetic import clock
from processors.response_handling.ledger import Moment, Quantity, Record
from processors.response_handling.numbers import Support
from processors.response_handling.reading import Token, agree
from processors.response_handling.response import Finding, Response, shown

_WORD = re.compile(r"[^\W_]{1,40}")
_CLOSE = re.compile(r"[^\d,;:]{1,20}")
MAX_RECORDS = 60
MOST_MOMENTS = 400


class _Mention(NamedTuple):
    start: int
    record: Record


class _Claim(NamedTuple):
    """A number, date or time of the answer, and where in the evidence it stands."""

    token: Token
    entries: Sequence[Quantity | Moment]


def wrong_rows(response: Response, known: list[Support]) -> Iterator[Finding]:
    """A finding where a value stands only in other rows than the one named beside it, which has another.

    The name may stand before its values or behind them; only what fits neither order is a finding.
    """
    claims = [_Claim(s.token, s.direct) for s in known if s.direct and not s.how and not s.token.is_spelled]
    claims = [c for c in claims if all(isinstance(e, Quantity) and e.is_operand for e in c.entries)]
    claims += _moments(response)
    if not claims:
        return
    for records in response.ledger.groups.values():
        if not 1 < len(records) <= MAX_RECORDS or _is_one_thing(records, response):
            continue
        labels = {record.index: response.ledger.labels(record) for record in records}
        names = {record.index: response.ledger.labels(record, names_only=True) for record in records}
        by_index = {record.index: record for record in records}
        own = [claim for claim in claims if _belongs(claim, by_index)]
        for start, end in response.sentences:
            inside = [claim for claim in own if start <= claim.token.start < end]
            if not inside:
                continue
            mentions = _mentions(response.output[start:end], start, records, names)
            mentions = mentions or _mentions(response.output[start:end], start, records, labels)
            if not mentions and len(response.sentences) == 1:
                mentions = _mentions(response.question, start, records, labels)
                mentions = mentions if len(mentions) == 1 else []
            yield from _judge(inside, mentions, by_index, response)


def _is_one_thing(records: Sequence[Record], response: Response) -> bool:
    """Whether the rows are results of calls with the same arguments, flags aside: one thing at two times."""
    asked = [response.calls[record.call].arguments for record in records if record.parent < 0]
    targets = [
        sorted((key, str(v)) for key, v in (a or {}).items() if not isinstance(v, bool)) for a in asked
    ]
    return len(targets) > 1 and all(target == targets[0] for target in targets)


def _moments(response: Response) -> Iterator[_Claim]:
    told = [moment for moment in response.ledger.moments[:MOST_MOMENTS] if moment.call >= 0]
    for token in response.tokens:
        if token.kind == "time" and token.is_exact:
            entries = [moment for moment in told if moment.minutes == token.minutes and not moment.zone]
        elif token.kind == "date":
            entries = [m for m in told if any(agree(a, b) for a in m.dates for b in token.dates)]
        else:
            continue
        if entries:
            yield _Claim(token, entries)


def _belongs(claim: _Claim, by_index: dict[int, Record]) -> bool:
    """Whether a value stands in rows of the group alone, and not in all of them."""
    rows = {entry.record for entry in claim.entries}
    return rows <= by_index.keys() and len(rows) < len(by_index)


def _mentions(text: str, offset: int, records: list[Record], labels: dict[int, set[str]]) -> list[_Mention]:
    """The rows that a text names, each where its most telling word stands first.

    A row is named by the words that not all rows have; of rows with words in common the one that has most
    of them said is meant, and none if two have as many.
    """
    common = set.intersection(*labels.values())
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
    claims: list[_Claim], mentions: list[_Mention], by_index: dict[int, Record], response: Response
) -> Iterator[Finding]:
    before, behind = [], []
    for claim in claims:
        token = claim.token
        if (named := next((m for m in reversed(mentions) if m.start < token.start), None)) is not None:
            before.append((claim, named.record))
        if (named := next((m for m in mentions if m.start > token.start), None)) is not None:
            behind.append((claim, named.record, _CLOSE.fullmatch(response.output, token.end, named.start)))
    wrong = [(claim, record) for claim, record in before if not _fits(claim, record, response)]
    if len(behind) == len(claims) > len(before) and all(near for _, _, near in behind):
        wrong = [(claim, record) for claim, record, _ in behind if not _fits(claim, record, response)]
    is_open = len(behind) == len(claims) or len(before) < len(claims)
    if is_open and behind and all(_fits(claim, record, response) for claim, record, _ in behind):
        return
    for claim, record in wrong:
        entry = claim.entries[0]
        name, mine = (
            next((text for _, text in row.texts if len(text) < 60), row.key)
            for row in (by_index[entry.record], record)
        )
        own = _counterpart(claim, record, response)
        what = f"{claim.token.text} is {entry.key} of {name}; {mine} has {own}"
        said = response.output[max(0, claim.token.start - 30) : claim.token.end + 10]
        yield Finding("RH10", shown(said), what, entry.path, entry.call)


def _fits(claim: _Claim, record: Record, response: Response) -> bool:
    return any(entry.record == record.index for entry in claim.entries) or (
        _counterpart(claim, record, response) is None
    )


def _counterpart(claim: _Claim, record: Record, response: Response) -> str | None:
    """What the named row has under the key of the value; None where it has nothing to compare."""
    keys = {entry.key for entry in claim.entries}
    for quantity in record.numbers:
        if quantity.key in keys and quantity.is_member:
            return f"{quantity.value:.10g}"
    for moment in response.ledger.moments[:MOST_MOMENTS]:
        is_kind = (moment.minutes is not None) == (claim.token.kind == "time")
        if moment.record == record.index and moment.key in keys and is_kind:
            return clock(moment.minutes) if moment.minutes is not None else "another date"
    return None
