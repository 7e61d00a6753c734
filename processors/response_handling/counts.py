"""Rule RH1.5: a count of rows that the rows do not give.

A small number counts the rows of a list where it stands before their number (`two of the six`) or before
the name of the list or of the tool (`two builds`). So many rows have to be of the one state or kind that its
clause names.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from processors.response_handling.ledger import Record
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers, Support
from processors.response_handling.reading import Token
from processors.response_handling.response import UNSPACED, Finding, Response, alike, around, shown

_MOST_ROWS, _MOST_LISTS, _LONGEST_VALUE = 200, 12, 40
"""Rows of a list, lists that are added up, and characters of a value."""
_NEAR, _COUNTS = 60, range(1, 101)
"""Characters between a count and the number of all, and what counts."""
_END = re.compile(r"[.,:;()\n、。，]")
_OF = re.compile(
    r"\b(?:of|von|de|des|di|dei|delle|degli|van|z|ze|spośród|dos|das)\s(?:(?:the|your|our|den|der|die|de|los|las|les|jouw|je)\s)?$",
    re.IGNORECASE,
)
"""What stands before the number of all where that comes first: `of the nine, six`."""
_PART = re.compile(r"(?:[^:;(（：.!?\n]|[:.](?=\d)){1,400}")
_WORD = re.compile(r"[^\W\d_]{2,40}")
_Count = tuple[Support, list[str], str, float, int]
"""A number that may count rows, two words behind it, its clause, the number that follows, its end in that."""
_Kinds = Mapping[str, Mapping[str | bool | None, set[int]]]
"""Which rows have a value, by key and value."""


def wrong_counts(response: Response) -> Iterator[Finding]:
    """RH1.5: so many of all, or so many of a state, where the rows give another count."""
    counts = [*_counts(response)] if response.ledger.groups else []
    lengths = [entry.length for entry in response.ledger.lists[:_MOST_ROWS]]
    totals: set[float] = {sum(lengths), *map(sum, combinations(lengths[:_MOST_LISTS], 2))}
    for records in response.ledger.groups if counts else ():
        if len(records) > _MOST_ROWS or any(record.call not in response.last_calls for record in records):
            continue
        kinds, size, first = _kinds(records), len(records), records[0]
        names = {*key_words(first.key)} or {*key_words(response.calls[first.call].name)}
        for support, behind, clause, of, end in counts:
            n, is_part, given = support.token.value, of == size > support.token.value, None
            is_named = is_part or any(
                len(name) > 3 and alike(name, word) for name in names for word in behind
            )
            if is_named and n != size:
                is_new = n > size and n not in totals and not (support.direct or support.how)
                said = _said(clause, kinds, size)
                given = size if is_new and not said else None
                if len(said) == 1:
                    ((text, held),) = said.items()
                    allowed = {held, size - held if "negation" in response.words.said(clause) else held}
                    is_sure = n > held or (is_part and _is_last(clause, text, end))
                    given = held if is_sure and n not in allowed else given
            if given is not None:
                claim = shown(response.around(support.token))
                yield Finding("RH1.5", claim, f"{given} of {size} rows", first.path, first.call)
                return


def _counts(response: Response) -> Iterator[_Count]:
    """The numbers that may count rows: small, whole, not the number of all."""
    output, supports = response.output, response.once(Numbers).supports
    for last, support, following in zip([None, *supports], supports, [*supports[1:], None], strict=False):
        token = support.token
        if token.unit or token.value not in _COUNTS or not response.tells(token.start):
            continue
        is_all = last is not None and _is_before(last.token, token, output)
        before = " ".join(_WORD.findall(output, max(0, token.start - 24), token.start)[-2:])
        if "approx" in response.words.categories(before):
            continue
        start, end = around(response.clauses, token.start)
        parts = [part.span() for part in _PART.finditer(output, start, end)]
        start, end = next((part for part in parts if part[0] <= token.start < part[1]), (start, end))
        is_of = following is not None and not is_all and _is_before(token, following.token, output)
        of, end_of = (following.token.value, following.token.end - start) if following and is_of else (0.0, 0)
        if last is not None and is_all and _OF.search(output, start, last.token.start):
            of, is_all = last.token.value, False
        behind = _WORD.findall(_END.split(output[token.end : token.end + _NEAR].lower())[0])
        yield support, behind[: 0 if is_all else 2], output[start:end].lower(), of, end_of


def _is_before(one: Token, other: Token, text: str) -> bool:
    """Whether a number stands shortly before another one of the same clause."""
    return other.start - one.end <= _NEAR and _END.search(text, one.end, other.start) is None


def _kinds(records: Sequence[Record]) -> _Kinds:
    """Which rows have which value, for keys of values that repeat."""
    found: dict[str, dict[str | bool | None, set[int]]] = defaultdict(lambda: defaultdict(set))
    for place, record in enumerate(records):
        for leaf in record.leaves:
            if isinstance(leaf.value, str) and 1 < len(leaf.value) <= _LONGEST_VALUE:
                found[leaf.key][leaf.value.lower()].add(place)
            elif leaf.value is None or isinstance(leaf.value, bool):
                found[leaf.key][leaf.value].add(place)
    return {key: by_value for key, by_value in found.items() if len(by_value) * 2 <= len(records) + 1}


def _said(clause: str, kinds: _Kinds, size: int) -> dict[str, int]:
    """The kinds that a clause names, by their value or the key of a flag that is set, and their rows."""
    found = dict[str, int]()
    for key, by_value in kinds.items():
        for value, rows in by_value.items():
            text = value if isinstance(value, str) else " ".join(key_words(key)) if value else ""
            if len(rows) < size and _says(clause, text):
                found[text] = len(rows)
    return found


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
