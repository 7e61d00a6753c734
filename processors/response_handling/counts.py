"""Rule RH1.5: a count of rows that the rows do not give.

A small number counts the rows of a list where it stands before their number (`two of the six`) or before
the name of the list or of the tool (`two builds`). So many rows have to be of the one state or kind that its
clause names; where it names none, any count of rows will do.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

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
_VAGUE = frozenset(
    (
        "results", "items", "data", "rows", "list", "records", "entries", "resultaten", "ergebnisse",
        "resultados", "risultati", "wyniki",
    )
)  # fmt: skip
"""Names of lists that do not say of what."""
_Count = tuple[Support, list[str], str, float, int]
"""A number that may count rows, two words behind it, its clause, the number that follows, its end in that."""


def wrong_counts(response: Response) -> Iterator[Finding]:
    """RH1.5: so many of all, or so many of a state, where the rows give another count."""
    counts = [*_counts(response)] if response.ledger.groups else []
    lengths = [entry.length for entry in response.ledger.lists[:_MOST_ROWS]]
    totals: set[float] = {sum(lengths), *map(sum, combinations(lengths[:_MOST_VALUES], 2))}
    for records in response.ledger.groups if counts else ():
        if len(records) > _MOST_ROWS or any(record.call not in response.last_calls for record in records):
            continue
        values, size, first = _values(records), len(records), records[0]
        names = {*key_words(first.key)} - _VAGUE or {*key_words(response.calls[first.call].name)}
        for support, behind, clause, of, end in counts:
            n, is_part = support.token.value, of == size > support.token.value
            is_named = any(len(name) > 3 and alike(name, word) for name in names for word in behind)
            if n == size or not (is_part or is_named):
                continue
            said = [value for value, rows in values.items() if len(rows) < size and _says(clause, value)]
            rows = values[said[0]] if said else {*range(size)}
            given = len(rows)
            if not said:
                allowed, is_sure = totals, n > size and not (support.direct or support.how)
            else:
                allowed = {given, *([] if is_part else _sums([records[row] for row in rows]))}
                allowed |= {size - given} if "negation" in response.words.said(clause) else set()
                is_sure = n > given or (is_part and _is_last(clause, said[0], end))
                is_sure &= len(said) == 1 and n < size
            if is_sure and n not in allowed:
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
        behind = [_WORD.findall(part) for part in _END.split(output[token.end : token.end + _NEAR].lower())]
        end_of = of.end - start if of else 0
        yield support, behind[0][:2], output[start:end].lower(), of.value if of else 0.0, end_of


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
    spread, keys = Counter(key for key, _ in found), Counter(value for _, value in found)
    most = min(_MOST_VALUES, (len(records) + 1) // 2)
    telling = {entry: rows for entry, rows in found.items() if spread[entry[0]] <= most}
    return {value: rows for (_, value), rows in telling.items() if keys[value] == 1}


def _sums(records: Sequence[Record]) -> list[float]:
    """The sums over rows, by key."""
    found: dict[str, float] = defaultdict(float)
    for key, quantity in (entry for record in records for entry in members(record).items()):
        found[key] += amount(quantity)
    return [*found.values()]


def _is_last(clause: str, value: str, end: int) -> bool:
    """Whether hardly a word follows a value and the number of all, so that no condition can."""
    words, parts = [*_WORD.finditer(clause)], _WORD.findall(value)
    last = max(end, *(word.end() for word in words if any(alike(part, word[0]) for part in parts)), 0)
    return sum(word.start() >= last for word in words) < 3


def _says(text: str, value: str) -> bool:
    """Whether a text has all words of a value, in some form."""
    if UNSPACED.search(value):
        return value in text
    said, words = _WORD.findall(text), _WORD.findall(value)
    return bool(words) and all(any(alike(word, other) for other in said) for word in words)
