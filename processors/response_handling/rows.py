"""Rule RH10: a value of another row than the one that the answer names.

A row is named by texts and words of names that it does not share with all its siblings: its own, those of
what it stands in, and the arguments of its call; dates and times help. What stands nearest to a value names
its row: in the clause, before it in the sentence, in a sentence before, in the question.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations, islice, permutations, takewhile
from typing import Final, NamedTuple
from unicodedata import normalize

from processors.response_handling.ledger import Leaf, Moment, Quantity, Record, folded
from processors.response_handling.lexicons import keys
from processors.response_handling.lexicons.names import OF_OTHERS
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers
from processors.response_handling.reading import Token, agree
from processors.response_handling.response import (
    UNSPACED,
    Finding,
    Response,
    alike,
    around,
    shown,
    words_of,
)

_MOST_ROWS, _MOST_MOMENTS, _LONGEST_LABEL = 60, 150, 60
"""Rows of a group, dates and times, and characters of a label."""
_MOST_PLACES, _MOST_FOUND, _MOST_ABOVE, _MOST_CELLS, _MOST_BEFORE = 8, 150, 4, 12, 3
"""Places of one word and of all, records above a row, cells of a record, sentences or clauses before one."""
_LONGEST_UNIT = 12
_BESIDE = 12
"""Characters between two numbers that are compared: `248 against 256`."""
_SMALL, _ROUNDED, _ROUGH = 100, 0.006, 0.05
"""Whole numbers up to the first, without a unit, are values only beside a word of their key."""
_NAME, _MOMENT, _NUMBER, _STATE = range(4)
_WORD, _LETTER = re.compile(r"[^\W_\u3040-\u9fff]{1,40}|[\u3040-\u9fff]{1,40}"), re.compile(r"[^\W\d_]")
_WORD_AT = re.compile(r"[^\W_\u3040-\u9fff]")
_GLUED = re.compile(r"(?<=[a-z])(?=\d)")
_BARE: Final = {n: normalize("NFD", chr(n))[0] for n in range(0xE0, 0x180)} | str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ł": "l"}
)
_STEM = 5
"""Letters by which a longer word of a name is found in other forms, where no other name begins so."""
_Span = tuple[int, int]


class _Place(NamedTuple):
    """Where something of rows stands in a text, and under which key, if that is sure."""

    start: int
    end: int
    key: str
    rows: frozenset[int]
    kind: int
    text: str
    is_claim: bool = False

    @property
    def is_marked(self) -> bool:
        """Whether it is written as names, dates and numbers are, and is no small number."""
        if self.kind in (_MOMENT, _NUMBER):
            return not self.text.isdigit() or float(self.text) >= _SMALL
        return self.text != self.text.lower() or not self.text.isascii() or any(map(str.isdigit, self.text))

    def meets(self, other: "_Place") -> bool:
        """Whether both have a character in common."""
        return self.start < other.end and other.start < self.end


_Mistake = tuple[_Place, Leaf, frozenset[int], bool]
"""A value told of rows, what they have, which they are, and whether that is told nowhere."""


class Text:
    """A text in which labels are looked up by their words."""

    def __init__(self, text: str) -> None:
        self.text, self.low = text, text.lower()
        self.words: dict[str, list[_Span]] = defaultdict(list)
        for match in _WORD.finditer(self.low):
            self.words[_plain(match[0])].append(match.span())
            if len(match[0]) > _STEM:
                self.words[f"{_plain(match[0])[:_STEM]}*"].append(match.span())

    def find(self, label: str) -> list[_Span]:
        """Where a label in lower case stands: whole words, where blanks part them."""
        if label not in self.low:
            return []
        first = _WORD.search(label)
        if first is None or UNSPACED.search(label):
            matches = re.finditer(re.escape(label), self.low)
            return [match.span() for match in islice(matches, _MOST_PLACES)]
        places = self.words.get(_plain(first[0]), ())[:_MOST_PLACES]
        starts = [start - first.start() for start, _ in places]
        spans = [(start, start + len(label)) for start in starts if self.low.startswith(label, start)]
        return [(start, end) for start, end in spans if not _WORD_AT.match(self.low, end)]


class Told:
    """What is told, for all groups: both texts, and what dates, times and numbers of the evidence fit."""

    def __init__(self, response: Response) -> None:
        self.answer, self.question = Text(response.output), Text(response.question)
        self.entries: list[tuple[Token, Sequence[Quantity | Moment], int]] = [
            (support.token, support.direct, _NUMBER)
            for support in response.once(Numbers).supports
            if support.token.value
        ]
        moments = response.ledger.moments[:_MOST_MOMENTS]
        for token in response.tokens:
            if token.kind in ("date", "time"):
                self.entries.append((token, [m for m in moments if _fits(m, token)], _MOMENT))


def _fits(moment: Moment, token: Token) -> bool:
    """Whether a date or time may be that of the evidence."""
    if token.kind == "date":
        return any(agree(one, other) for one in moment.dates for other in token.dates)
    lapse = 1 if moment.minutes is None or moment.zone else moment.minutes - token.minutes
    return lapse % (1440 if token.is_exact else 720) == 0


def _is_compared(place: _Place, own: Leaf, response: Response) -> bool:
    """Whether right beside a number in parentheses stands the other row's: nothing says which is whose."""
    before = response.output[: place.start]
    if before.rfind("(") <= before.rfind(")"):
        return False
    near = response.once(Numbers).within(place.start - _BESIDE, place.end + _BESIDE)
    return place.kind == _NUMBER and any(
        quantity.path == own.path and quantity.call == own.call and support.token.start != place.start
        for support in near
        for quantity in support.direct
    )


def wrong_rows(response: Response) -> Iterator[Finding]:
    """RH10.1: values of two rows that changed places; RH10.2: one of another row than the one named."""
    for records in response.ledger.groups:
        wrong = [*_Group(records, response).mistakes()] if len(records) <= _MOST_ROWS else []
        wrong = [mistake for mistake in wrong if not _is_compared(mistake[0], mistake[1], response)]
        swapped = [
            (place, own) for (place, own, named, _), (other, _, its, _) in combinations(wrong, 2)
            if place.key == other.key and named & other.rows and its & place.rows
        ]  # fmt: skip
        for place, own in (swapped or [(place, own) for place, own, _, is_sure in wrong if is_sure])[:1]:
            claim = response.output[slice(*around(response.spans, place.start))]
            what = f"{place.text.strip()} is of another row; {own.key} is {own.value}"
            yield Finding("RH10.1" if swapped else "RH10.2", shown(claim), shown(what), own.path, own.call)


class _Group:
    """Rows beside each other, and where the answer and the question tell of them."""

    def __init__(self, records: Sequence[Record], response: Response) -> None:
        self.response, self.told = response, response.once(Told)
        self.rows = {record.index: record for record in records}
        self.under: dict[int, set[int]] = defaultdict(set)
        """For each record the rows that it is or that stand in it."""
        for record in records:
            for above in self._above(record):
                self.under[above.index].add(record.index)
        self.whole: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.parts: dict[str, set[int]] = defaultdict(set)
        self.cells: set[tuple[int, str]] = set()
        """Rows and keys of which values are told."""
        firsts = [leaf for record in records for leaf in record.leaves[:1] if str(leaf.value).isdecimal()]
        numbers = sorted(int(str(leaf.value)) for leaf in firsts)
        is_counting = numbers == [*range(numbers[0], numbers[0] + len(records))] if numbers else False
        self.numbered = {leaf.key for leaf in firsts if is_counting and len(records[0].leaves) > 1}
        """Keys by which rows are numbered: what stands for such a number may be any other one."""
        columns = defaultdict[str, list[object]](list)
        for leaf in (leaf for record in records for leaf in record.leaves):
            columns[leaf.key].append(leaf.value)
        whole = {key: own for key, own in columns.items() if len(own) == len(records)}
        self.naming = {
            key for key, own in whole.items()
            if len({*map(str, own)}) == len(own) and keys.NAMING & {*key_words(key)[-1:], key}
        }  # fmt: skip
        """Keys of identifiers, which name their rows and are no values of them."""
        texts = {key: [text for text in own if isinstance(text, str)] for key, own in whole.items()}
        self.beginnings = {
            key: _beginning(own) for key, own in texts.items()
            if len(own) == len(records) and UNSPACED.search(own[0])
        }  # fmt: skip
        """How the texts of all rows begin where no blanks part words."""
        self.units = {
            leaf.value for record in records for leaf in record.leaves
            if isinstance(leaf.value, str) and leaf.value and keys.UNIT_KEYS & {*key_words(leaf.key)[-1:]}
        }  # fmt: skip
        self._read_labels()
        found = [*self._of_labels(self.told.answer), *self._of_entries()]
        self.places = sorted(found) if any(place.is_claim for place in found) else []

    @cached_property
    def asked(self) -> list[_Place]:
        """Where the question names rows."""
        return self._of_labels(self.told.question)

    def _above(self, record: Record) -> list[Record]:
        found = [record]
        while record.parent >= 0 and len(found) < _MOST_ABOVE:
            record = self.response.ledger.records[record.parent]
            found.append(record)
        return found

    def _read_labels(self) -> None:
        """Note by what texts rows can be named, and by what words of slugs and names."""
        shared = set.intersection(*({*record.labels} for record in self.rows.values()))
        for row, record in self.rows.items():
            cells = [(key, label, False) for key, label in record.labels if (key, label) not in shared]
            for one in self._above(record):
                if len(self.under[one.index]) < len(self.rows):
                    leaves = [(leaf.key, leaf.value) for leaf in one.leaves[:_MOST_CELLS]]
                    cells += [(key, text, one is record) for key, text in leaves if isinstance(text, str)]
                    cells += [(key, str(number), False) for key, number in leaves[:1] if type(number) is int]
            for key, text, is_own in cells:
                if len(text) < 2 or text.isdecimal():
                    text = f"{' '.join(key_words(key)[-1:])} {text}"  # zone B, court 3
                if len(text) > _LONGEST_LABEL:
                    continue
                own = text.removeprefix(self.beginnings.get(key, ""))
                if 1 < len(own) < len(text):
                    self.whole[own.lower()][""].add(row)
                for label in {text.lower(), _GLUED.sub(" ", text.lower())}:  # KL1018 as KL 1018
                    self.whole[label][key if is_own else ""].add(row)
                for word in () if _is_state(key) or not _LETTER.search(text) else _WORD.findall(text):
                    low, is_slug = word.lower(), not key or " " not in text
                    is_name = (low != word or not low.isalpha()) and low not in self.response.words.function
                    if UNSPACED.search(low):
                        self.parts[low[:2]].add(row)  # as a family name begins a name
                    elif len(low) > 2 and (is_slug or is_name):
                        self.parts[_plain(low)].add(row)

    def _of_labels(self, text: Text) -> list[_Place]:
        """Where a text names rows, each place by the longest label."""
        found, size = list[_Place](), len(self.rows)
        for label, by_key in self.whole.items():
            spans = text.find(label)
            longer = [others for name, others in self.whole.items() if label in name] if spans else []
            for key in by_key if spans else ():
                rows = frozenset[int]().union(*(others[key] for others in longer if key in others))
                is_name = _LETTER.search(label) and not _is_state(key)
                kind, is_claim = _NAME if is_name else _STATE, bool(key) and len(by_key) == 1
                is_claim = is_claim and key not in self.naming
                found += [_Place(*span, key, rows, kind, text.text[slice(*span)], is_claim) for span in spans]
        for word, own in self.parts.items():
            spans = text.find(word) if UNSPACED.search(word) else text.words.get(word, [])[:_MOST_PLACES]
            is_telling = len(word) > _STEM and sum(other[:_STEM] == word[:_STEM] for other in self.parts) == 1
            spans = spans or (text.words.get(f"{word[:_STEM]}*", [])[:_MOST_PLACES] if is_telling else [])
            found += [_Place(*span, "", frozenset(own), _NAME, text.text[slice(*span)]) for span in spans]
        del found[_MOST_FOUND:]
        longest = [max(other.end - other.start for other in found if other.meets(one)) for one in found]
        sized = zip(found, longest, strict=True)
        return [one for one, most in sized if len(one.rows) < size and one.end - one.start == most]

    def _of_entries(self) -> Iterator[_Place]:
        """Where the answer tells dates, times and numbers of rows."""
        for token, entries, kind in self.told.entries:
            of_results = [self.under.get(entry.record, set()) for entry in entries if entry.call >= 0]
            rows, under = frozenset[int]().union(*of_results), {entry.key for entry in entries}
            if rows and len(rows) < len(self.rows):
                self.cells.update((entry.record, entry.key) for entry in entries)
                is_sure = len(under) == 1
                is_vague = not any(isinstance(entry, Moment) or _is_exact(entry, token) for entry in entries)
                is_claim = is_sure and not (is_vague or token.is_spelled)
                is_claim = is_claim and not (token.currencies and self._is_rate(token))
                key, end = under.pop() if is_sure else "", token.end
                behind = self.response.output[end : end + _LONGEST_UNIT].lstrip()
                end += any(behind.startswith(unit) for unit in self.units) * 2  # then it is no bare number
                text = self.response.output[token.start : end]
                is_claim = is_claim and key not in self.numbered and key not in self.naming
                yield _Place(token.start, token.end, key, rows, kind, text, is_claim)

    def _is_rate(self, token: Token) -> bool:
        """Whether two numbers of the same sentence divide to one, and so may have made it."""
        others = [one.token.value for one in self.response.once(Numbers).beside(token) if one.token.value]
        return any(abs(one / other - token.value) <= _ROUNDED for one, other in permutations(others, 2))

    def mistakes(self) -> Iterator[_Mistake]:
        """Values told of rows that they are not of."""
        for place in self.places:
            named, is_near = self._named(place) if place.is_claim else (frozenset[int](), False)
            leaves = [leaf for row in sorted(named) for leaf in self.rows[row].leaves]
            own = [leaf for leaf in leaves if leaf.key == place.key and leaf.value is not None]
            is_new = place.kind != _NAME or folded(place.text) not in self.response.user_text
            if own and is_new and self.response.tells(place.start):
                is_alone = self.response.output[: place.start].endswith("(")
                is_keyed, is_marked = self._is_keyed(place), place.is_marked or is_alone
                if place.kind != _NUMBER and not keys.WHEN.issuperset(key_words(place.key)):
                    start, _ = around(self.response.spans, place.start)
                    before = self._within(start, place.start, (_NAME,), place)
                    is_near = is_near or (bool(before) and all(one.rows & named for one in before))
                is_sure = (is_near and (is_keyed or is_marked)) or (is_keyed and is_marked)
                others = [
                    leaf for row in place.rows for leaf in self.rows[row].leaves if leaf.key == place.key
                ]
                its = words_of(" ".join(str(leaf.value) for leaf in others))
                is_sure = is_sure and not any(self._is_told(leaf, its) for leaf in own)
                if is_keyed or is_marked:
                    yield place, own[0], named, is_sure and not self._is_beside(place, named)

    def _is_told(self, leaf: Leaf, its: frozenset[str]) -> bool:
        """Whether the answer tells a value, or a long word of it that those of the other rows have not."""
        text = leaf.value.lower() if isinstance(leaf.value, str) else ""
        words = {_plain(word) for word in words_of(text) - its if len(word) > 3}
        is_said = bool(text and self.told.answer.find(text)) or not words.isdisjoint(self.told.answer.words)
        return is_said or (leaf.record, leaf.key) in self.cells

    def _is_keyed(self, place: _Place) -> bool:
        """Whether the clause or the question has a word of the key of a value."""
        start, end = around(self.response.clauses, place.start)
        said = self.response.output[start:end] + self.response.question
        parts = [part for part in key_words(place.key) if len(part) > 2]
        is_said = any(alike(part, word) for part in parts for word in words_of(said))
        return is_said or (UNSPACED.search(place.key) is not None and place.key in said)

    def _is_beside(self, place: _Place, named: frozenset[int]) -> bool:
        """Whether another row is named as well."""
        near = self._within(*around(self.response.clauses, place.start), (_NAME,), place)
        beside = self._within(*around(self.response.spans, place.start), (_NAME,), place)
        is_far = not any(one.rows & named for one in near)
        start, end = around(self.response.clauses, place.start)
        alike_places = (one for one in self.places if start <= one.start < end and one.key == place.key)
        if any(one.rows.isdisjoint(place.rows | named) for one in alike_places):
            return True
        near += [one for one in beside if one.start < place.start]
        is_other = any(one.rows & place.rows and not one.rows & named for one in near)
        start, end = around(self.response.clauses, place.start)
        if not OF_OTHERS.isdisjoint(words_of(self.response.output[start:end])):
            return True
        return is_other or (is_far and any(one.rows.isdisjoint(named) for one in near))

    def _within(self, start: int, end: int, kinds: Sequence[int], beside: _Place) -> list[_Place]:
        """What stands in a part of the answer, beside a place."""
        first, last = (bisect_left(self.places, at, key=lambda one: one.start) for at in (start, end))
        return [one for one in self.places[first:last] if one.kind in kinds and not one.meets(beside)]

    def _named(self, place: _Place) -> tuple[frozenset[int], bool]:
        """The rows that are named for a value, if none is its own, and whether its clause names them."""
        rows, is_near, is_named = frozenset(self.rows), False, False
        for names, is_own in self._levels(place):
            hits = [name for name in names if name.rows & rows]
            is_near |= is_own and bool(hits)
            is_named |= any(name.kind == _NAME for name in hits)
            rows = rows.intersection(*(name.rows for name in hits))
            if rows <= place.rows or any(name.key == place.key for name in hits):
                break
            if is_named and not rows & place.rows:
                return rows, is_near
        return frozenset(), False

    def _levels(self, place: _Place) -> Iterator[tuple[Sequence[_Place], bool]]:
        """What may name the row of a value, from the nearest, and whether that is in its clause.

        Dates and times help to name the row of a text; largest and smallest numbers are told beside any.
        """
        start, _ = around(self.response.spans, place.start)
        clauses = [clause for clause in self.response.clauses if start <= clause[0] <= place.start]
        for begin, end in reversed(clauses[-2 * _MOST_BEFORE :]):
            for kind in (_NAME, _MOMENT) if place.kind in (_NAME, _STATE) else (_NAME,):
                if place.kind == _MOMENT and keys.WHEN.issuperset(key_words(place.key)):
                    end = min(end, place.start)  # what happened then, not what it is the time of, may follow
                yield self._within(begin, end, (kind,), place), place.start < end
        before = [span for span in self.response.spans if span[0] < start][-_MOST_BEFORE:]
        for begin, end in reversed(before):
            yield self._within(begin, end, (_NAME,), place), False
        yield self.asked, False


def _beginning(texts: Sequence[str]) -> str:
    """The signs with which all texts begin."""
    same = takewhile(lambda signs: len({*signs}) == 1, zip(*texts, strict=False))
    return "".join(signs[0] for signs in same)


def _is_exact(entry: Quantity, token: Token) -> bool:
    """Whether a number is told as it is, not roughly nor in so large a unit that little is left of it."""
    if token.is_approximate:
        return abs(entry.value) == token.value
    pairs = ((abs(entry.base), token.total), (abs(entry.value), token.value))
    return any(abs(one - other) <= _ROUGH * other for one, other in pairs)


def _plain(word: str) -> str:
    return word if word.isascii() else word.translate(_BARE)


def _is_state(key: str) -> bool:
    return not keys.STATE_KEYS.isdisjoint(key_words(key)[-1:])
