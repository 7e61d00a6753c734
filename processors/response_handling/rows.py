"""Rule RH10: a value of another row than the one that the answer names.

A row is named by its label, a text that few rows have. Where a sentence names one row, the values told in
it have to be that row's; where it names several, values are held against the names in their order.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from processors.response_handling.ledger import Moment, Quantity, Record
from processors.response_handling.lexicons.keys import STATE_KEYS
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers
from processors.response_handling.reading import Token, agree
from processors.response_handling.response import Finding, Response, shown, target_of, words_of

_MOST_ROWS: Final = 60
_MOST_MOMENTS: Final = 150
_LONGEST_LABEL, _MOST_NAMED = 60, 3
"""Characters of a label, and rows that it may name."""
_DISTINCT: Final = 0.6
"""Of how many rows a key has to tell apart for its texts to name rows."""
_SMALL: Final = 100
"""Whole numbers below this one stand in many rows by chance."""
_LETTER = re.compile(r"[^\W\d_]")


class _Place(NamedTuple):
    """Where a text or value of rows stands in the answer: under which key, and whose it is."""

    start: int
    end: int
    key: str
    rows: frozenset[int]
    is_strong: bool
    """Whether it can hardly stand there by chance."""


def wrong_rows(response: Response) -> Iterator[Finding]:
    """RH10: a value that stands only in other rows than the one named beside it, which has another."""
    for records in response.ledger.groups:
        if 1 < len(records) <= _MOST_ROWS and not _is_one_thing(records, response):
            yield from _of_group(records, response)


def _is_one_thing(records: Sequence[Record], response: Response) -> bool:
    """Whether the rows are results of calls for one target: one thing at several times."""
    roots = [target_of(response.calls[record.call]) for record in records if record.parent < 0]
    return len(roots) > 1 and len(set(roots)) == 1


def _of_group(records: Sequence[Record], response: Response) -> Iterator[Finding]:
    rows = {record.index: record for record in records}
    texts = [*_texts(records, response)]
    values = [*_values(rows, response)]
    if not texts:
        return
    for start, end in response.spans:
        named = [place for place in texts if start <= place.start < end]
        told = sorted(place for place in values if start <= place.start < end)
        for key in {place.key: None for place in named}:
            labels = [place for place in named if place.key == key and len(place.rows) <= _MOST_NAMED]
            others = [place for place in (*told, *named) if place.key != key]
            if not labels:
                continue
            found = _judged(labels, others, rows, (start, end), response)
            if found is not None:
                yield found
                return


def _judged(
    labels: Sequence[_Place],
    others: Sequence[_Place],
    rows: dict[int, Record],
    span: tuple[int, int],
    response: Response,
) -> Finding | None:
    """What is wrong between the labels of one key and the values of other keys in one sentence."""
    by_key: dict[str, list[_Place]] = defaultdict(list)
    for place in sorted(others, key=lambda place: place.start):
        by_key[place.key].append(place)
    labels = [
        label for label in sorted(labels, key=lambda label: label.start)
        if not any(o.start <= label.start < label.end <= o.end and o.end - o.start > label.end - label.start for o in labels)
    ]  # fmt: skip
    for key, places in by_key.items():
        pairs = zip(labels, places, strict=False)
        if len({label.rows for label in labels}) == 1:
            pairs = zip(labels[:1] * len(places), places, strict=True)
        elif len(labels) != len(places):
            continue
        wrong = [(label, place) for label, place in pairs if not label.rows & place.rows]
        if len(wrong) < 2 and not any(place.is_strong for _, place in wrong):
            continue
        if len(wrong) == 1 and len(labels) == len(places) > 1:
            continue
        label, place = wrong[0]
        if len(wrong) < 2 and _is_beside(label, place, rows, response.output[slice(*span)]):
            continue
        own = [
            leaf
            for row in label.rows
            for leaf in rows[row].leaves
            if leaf.key == key and leaf.value is not None
        ]
        told = {row for other in places for row in other.rows}
        if not own or (label.rows & told and len(wrong) < 2):
            continue
        text = response.output[place.start : place.end]
        what = (
            f"{text} is of another row; {key} of {response.output[label.start : label.end]} is {own[0].value}"
        )
        return Finding("RH10", shown(response.output[slice(*span)]), shown(what), own[0].path, own[0].call)
    return None


def _is_beside(label: _Place, place: _Place, rows: dict[int, Record], sentence: str) -> bool:
    """Whether the sentence names the row that a value is of by some word that the other row does not have."""

    def words(indices: frozenset[int]) -> set[str]:
        leaves = (leaf for index in indices for leaf in rows[index].leaves if isinstance(leaf.value, str))
        return {word for leaf in leaves if leaf.key != place.key for word in words_of(str(leaf.value))}

    telling = words(place.rows) - words(label.rows)
    return any(len(word) > 3 and word in telling for word in words_of(sentence))


def _texts(records: Sequence[Record], response: Response) -> Iterator[_Place]:
    """The short texts of rows that the answer repeats and that not all rows have."""
    low = response.output.lower()
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    leaves: dict[tuple[str, str], str] = {}
    for record in records:
        for key, text in record.labels:
            if _is_label(text):
                found[key, text.lower()].add(record.index)
        for leaf in record.leaves:
            is_state = not STATE_KEYS.isdisjoint(key_words(leaf.key)[-1:])
            if isinstance(leaf.value, str) and _is_label(leaf.value) and not is_state:
                found[leaf.key, leaf.value.lower()].add(record.index)
                leaves[leaf.key, leaf.value.lower()] = leaf.value
    spread = Counter(key for key, _ in found)
    for (key, text), rows in found.items():
        if len(rows) == len(records) or spread[key] < _DISTINCT * len(records):
            continue
        start = low.find(text)
        while start >= 0:
            edges = low[max(0, start - 1) : start] + low[start + len(text) : start + len(text) + 1]
            if not text.isascii() or not any(character.isalnum() for character in edges):
                written = response.output[start : start + len(text)]
                is_name = written[:1].isupper() or any(map(str.isdigit, written)) or not written.isascii()
                is_strong = is_name and written == leaves.get((key, text)) and len(rows) * 2 <= len(records)
                yield _Place(start, start + len(text), key, frozenset(rows), is_strong)
            start = low.find(text, start + len(text))


def _is_label(text: str) -> bool:
    return 1 < len(text) <= _LONGEST_LABEL and _LETTER.search(text) is not None


def _values(rows: dict[int, Record], response: Response) -> Iterator[_Place]:
    """The numbers, dates and times of the answer that stand under one key of the rows and nowhere else."""
    for support in response.once(Numbers).supports:
        entries = support.direct
        if entries and not support.token.is_spelled:
            value = abs(entries[0].value)
            is_strong = value >= _SMALL or value != int(value) or bool(support.token.currencies)
            yield from _place(support.token, entries, rows, is_strong)
    moments = [moment for moment in response.ledger.moments[:_MOST_MOMENTS] if moment.call >= 0]
    for token in response.tokens:
        found: list[Moment] = []
        if token.kind == "time" and token.is_exact:
            found = [moment for moment in moments if moment.minutes == token.minutes and not moment.zone]
        elif token.kind == "date":
            found = [
                moment for moment in moments if any(agree(a, b) for a in moment.dates for b in token.dates)
            ]
        yield from _place(token, found, rows, is_strong=True)


def _place(
    token: Token, entries: Sequence[Quantity | Moment], rows: dict[int, Record], is_strong: bool
) -> Iterator[_Place]:
    owners = frozenset(entry.record for entry in entries)
    if (
        entries
        and owners <= rows.keys()
        and len(owners) < len(rows)
        and len({entry.key for entry in entries}) == 1
    ):
        yield _Place(token.start, token.end, entries[0].key, owners, is_strong)
