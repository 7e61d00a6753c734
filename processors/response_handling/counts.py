"""Rule RH1.5: a count of rows that the rows do not give.

A small number counts the rows of a list where it stands before their number (`two of the six`), before the
name of the list or of the tool (`two builds`) or before a state or kind that some rows have. So many rows
have to be of the one state or kind that its clause names; where it names none, any count will do.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from processors.response_handling.ledger import FROM_USER, Record
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers, Support, amount, members
from processors.response_handling.reading import Token
from processors.response_handling.response import UNSPACED, Finding, Response, alike, around, shown

_MOST_ROWS, _MOST_VALUES, _LONGEST_VALUE = 200, 12, 40
"""Rows of a list, values of one key, and their characters."""
_NEAR, _COUNTS = 40, range(1, 101)
_END = re.compile(r"[.,:;()\n、。，]")
_PART = re.compile(r"(?:[^:;(（：.!?\n]|[:.](?=\d)){1,400}")
_WORD = re.compile(r"[^\W\d_]{2,40}")


class _Count(NamedTuple):
    """A number that may count rows, two words behind it, its clause, and the number that follows in it."""

    support: Support
    behind: list[str]
    clause: str
    of: float
    is_bare: bool


def wrong_counts(response: Response) -> Iterator[Finding]:
    """RH1.5: so many of all, or so many of a state, where the rows give another count."""
    counts = [*_counts(response)] if response.ledger.groups else []
    for records in response.ledger.groups if counts else ():
        if len(records) > _MOST_ROWS or any(record.call not in response.last_calls for record in records):
            continue
        values, size, first = _values(records), len(records), records[0]
        names = {*key_words(first.key), *key_words(response.calls[first.call].name)}
        for support, behind, clause, of, is_bare in counts:
            n, is_part = support.token.value, of == size > support.token.value
            said = {value: rows for value, rows in values.items() if _says(clause, value)}
            of_value = [rows for value, rows in said.items() if any(alike(value, word) for word in behind)]
            is_named = any(len(name) > 3 and alike(name, word) for name in names for word in behind)
            if n == size or not (is_part or is_named or of_value):
                continue
            rows = of_value or [*said.values()]
            is_new = is_named and not support.direct and not support.how
            is_wrong, given = is_new and not rows, size
            if len(rows) == 1 and n < size:
                given = len(rows[0])
                allowed = {given, *([] if is_part else _sums([records[row] for row in rows[0]]))}
                allowed |= {size - given} if "negation" in response.words.said(clause) else set()
                is_wrong = n not in allowed and (n > given or is_new or (is_part and is_bare))
            if is_wrong:
                claim = shown(response.around(support.token))
                yield Finding("RH1.5", claim, f"{given} of {size} rows", first.path, first.call)
                return


def _counts(response: Response) -> Iterator[_Count]:
    """The numbers that may count rows: small, whole, no estimates, not of the user, not the number of all."""
    output, supports = response.output, response.once(Numbers).supports
    for last, support, following in zip([None, *supports], supports, [*supports[1:], None], strict=False):
        token, words = support.token, response.words
        is_count = not (token.unit or token.currencies or token.is_negative) and token.value in _COUNTS
        is_all = last is not None and _is_before(last.token, token, output)
        if not is_count or is_all or any(quantity.call == FROM_USER for quantity in support.direct):
            continue
        before = _WORD.findall(output, max(0, token.start - 24), token.start)[-2:]
        if "approx" in words.categories(" ".join(before)) or not response.tells(token.start):
            continue
        start, end = around(response.clauses, token.start)
        parts = [part.span() for part in _PART.finditer(output, start, end)]
        start, end = next((part for part in parts if part[0] <= token.start < part[1]), (start, end))
        of = following.token if following and _is_before(token, following.token, output) else None
        others = [one for one in response.tokens if start <= one.start < end and one.kind != "id"]
        behind = [_WORD.findall(part) for part in _END.split(output[token.end : token.end + _NEAR].lower())]
        is_bare = all(one in (token, of) for one in others)
        yield _Count(support, behind[0][:2], output[start:end].lower(), of.value if of else 0.0, is_bare)


def _is_before(one: Token, other: Token, text: str) -> bool:
    """Whether a number stands shortly before another one of the same clause."""
    return other.start - one.end <= _NEAR and _END.search(text, one.end, other.start) is None


def _values(records: Sequence[Record]) -> dict[str, set[int]]:
    """Which rows have a value, or a flag set, for keys of few values that repeat."""
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for place, record in enumerate(records):
        for leaf in record.leaves:
            value = " ".join(key_words(leaf.key)) if leaf.value is True else leaf.value
            if isinstance(value, str) and 1 < len(value) <= _LONGEST_VALUE:
                found[leaf.key, value.lower()].add(place)
    spread = Counter(key for key, _ in found)
    most = min(_MOST_VALUES, (len(records) + 1) // 2)
    return {value: rows for (key, value), rows in found.items() if spread[key] <= most}


def _sums(records: Sequence[Record]) -> list[float]:
    """The sums over rows, by key."""
    found: dict[str, float] = defaultdict(float)
    for key, quantity in (entry for record in records for entry in members(record).items()):
        found[key] += amount(quantity)
    return [*found.values()]


def _says(text: str, value: str) -> bool:
    """Whether a text has all words of a value, in some form."""
    if UNSPACED.search(value):
        return value in text
    said, words = _WORD.findall(text), _WORD.findall(value)
    return bool(words) and all(any(alike(word, other) for other in said) for word in words)
