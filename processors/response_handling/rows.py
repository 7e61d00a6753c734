"""Rule RH10: a value of another row than the one that the answer names.

A row is named by its label, a text that few rows have. Where a sentence names one row, the values told in
it have to be that row's; where it names several, values are held against the names in their order.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from processors.response_handling.ledger import Moment, Quantity, Record
from processors.response_handling.lexicons.keys import STATE_KEYS
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers
from processors.response_handling.reading import Token, agree
from processors.response_handling.response import Finding, Response, shown, target_of, words_of

_MOST_ROWS, _MOST_MOMENTS, _MOST_NAMED, _LONGEST_LABEL = 60, 150, 3, 60
"""Rows of a group, dates and times, rows that one label may name, and its characters."""
_DISTINCT: Final = 0.6
"""Of how many rows a key has to tell apart for its texts to name rows."""
_SMALL: Final = 100
"""Whole numbers below this one stand in many rows by chance."""
_LETTER = re.compile(r"[^\W\d_]")


class _Place(NamedTuple):
    """Where a text or value of rows stands in the answer, under which key, whose, and hardly by chance."""

    start: int
    end: int
    key: str
    rows: frozenset[int]
    is_strong: bool


def wrong_rows(response: Response) -> Iterator[Finding]:
    """RH10.1: values of two rows that changed places; RH10.2: one of another row than the one named."""
    for records in response.ledger.groups:
        targets = [target_of(response.calls[record.call]) for record in records if record.parent < 0]
        is_one_thing = len(targets) > 1 and len({*targets}) == 1
        texts = [] if is_one_thing or len(records) > _MOST_ROWS else [*_texts(records, response)]
        rows = {record.index: record for record in records}
        values = [*_values(rows, response)] if texts else []
        wrong: list[tuple[_Place, _Place, bool]] = []
        for start, end in response.spans if texts else ():
            named = [place for place in texts if start <= place.start < end]
            told = [place for place in (*values, *named) if start <= place.start < end]
            for key in dict.fromkeys(place.key for place in named):
                labels = {place for place in named if place.key == key and len(place.rows) <= _MOST_NAMED}
                others = [place for place in told if place.key != key]
                wrong += _mismatches(sorted(labels), others, rows, words_of(response.output[start:end]))
        swapped = [
            (label, place) for (label, place, _), (other, its, _) in combinations(wrong, 2)
            if place.key == its.key and place.rows & other.rows and its.rows & label.rows
        ]  # fmt: skip
        alone = [(label, place) for label, place, is_alone in wrong if is_alone]
        for rule, pairs in (("RH10.1", swapped), ("RH10.2", [] if swapped else alone)):
            for label, place in pairs[:1]:
                name, text = (
                    response.output[label.start : label.end],
                    response.output[place.start : place.end],
                )
                own = next(leaf for row in label.rows for leaf in rows[row].leaves if leaf.key == place.key)
                what = f"{text} is of another row; {place.key} of {name} is {own.value}"
                claim = next(
                    response.output[start:end] for start, end in response.spans if start <= place.start < end
                )
                yield Finding(rule, shown(claim), shown(what), own.path, own.call)


def _mismatches(
    labels: Sequence[_Place], others: Sequence[_Place], rows: dict[int, Record], said: frozenset[str]
) -> Iterator[tuple[_Place, _Place, bool]]:
    """Labels and values of one sentence that do not belong together, and whether that is beyond doubt."""
    by_key: dict[str, list[_Place]] = defaultdict(list)
    for place in sorted(others):
        by_key[place.key].append(place)
    for key, places in by_key.items():
        is_one = len({label.rows for label in labels}) == 1
        pairs = zip([labels[0] for _ in places] if is_one else labels, places, strict=False)
        told = {row for place in places for row in place.rows}
        for label, place in pairs if is_one or len(labels) == len(places) else ():
            has_own = any(
                leaf.key == key and leaf.value is not None for n in label.rows for leaf in rows[n].leaves
            )
            if not label.rows & place.rows and has_own:
                words = _words(place.rows, key, rows) - _words(label.rows, key, rows)
                yield label, place, is_one and place.is_strong and not label.rows & told and not words & said


def _words(indices: frozenset[int], key: str, rows: dict[int, Record]) -> set[str]:
    """The words of rows, but those under one key."""
    texts = [str(leaf.value) for n in indices for leaf in rows[n].leaves if leaf.key != key]
    return {word for text in texts for word in words_of(text) if len(word) > 3}


def _texts(records: Sequence[Record], response: Response) -> Iterator[_Place]:
    """The short texts of rows that the answer repeats and that tell rows apart."""
    low, found = response.output.lower(), defaultdict[tuple[str, str], set[int]](set)
    written: set[str] = set()
    for record in records:
        pairs = [(leaf.key, leaf.value) for leaf in record.leaves if isinstance(leaf.value, str)]
        for key, text in (*record.labels, *pairs):
            is_label = 1 < len(text) <= _LONGEST_LABEL and _LETTER.search(text) is not None
            if is_label and STATE_KEYS.isdisjoint(key_words(key)[-1:]):
                found[key, text.lower()].add(record.index)
                written.add(text)
    spread = Counter(key for key, _ in found)
    for (key, text), rows in found.items():
        start = low.find(text) if len(rows) < len(records) and spread[key] >= _DISTINCT * len(records) else -1
        while start >= 0:
            end = start + len(text)
            edges, own = low[max(0, start - 1) : start] + low[end : end + 1], response.output[start:end]
            if not text.isascii() or not any(map(str.isalnum, edges)):
                is_name = own[:1].isupper() or any(map(str.isdigit, own)) or not own.isascii()
                is_strong = is_name and own in written and len(rows) * 2 <= len(records)
                yield _Place(start, end, key, frozenset(rows), is_strong)
            start = low.find(text, end)


def _values(rows: dict[int, Record], response: Response) -> Iterator[_Place]:
    """The numbers, dates and times of the answer that stand under one key of the rows and nowhere else."""
    found: list[tuple[Token, Sequence[Quantity | Moment], bool]] = []
    for support in response.once(Numbers).supports:
        value = abs(support.direct[0].value) if support.direct and not support.token.is_spelled else 0.0
        is_strong = value >= _SMALL or value != int(value) or bool(support.token.currencies)
        found.append((support.token, support.direct if value else [], is_strong))
    moments = [moment for moment in response.ledger.moments[:_MOST_MOMENTS] if moment.call >= 0]
    for token in response.tokens:
        if token.kind == "time" and token.is_exact:
            found.append((token, [m for m in moments if m.minutes == token.minutes and not m.zone], True))
        elif token.kind == "date":
            found.append(
                (token, [m for m in moments if any(agree(a, b) for a in m.dates for b in token.dates)], True)
            )
    for token, entries, is_strong in found:
        owners = frozenset(entry.record for entry in entries)
        if owners and owners < rows.keys() and len({entry.key for entry in entries}) == 1:
            yield _Place(token.start, token.end, entries[0].key, owners, is_strong)
