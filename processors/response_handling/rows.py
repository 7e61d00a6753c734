"""Rule RH10: a value of another row than the one that the answer names."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from processors.response_handling.ledger import Leaf, Moment, Quantity, Record, folded
from processors.response_handling.lexicons.keys import NAME_KEYS, STATE_KEYS
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Support
from processors.response_handling.reading import agree
from processors.response_handling.response import Finding, Response, shown

MAX_RECORDS = 60
MOST_MOMENTS = 150
_MOST_TEXTS = 300
_MOST_PLACES = 4
_LABEL = re.compile(r"[^\W_]{1,40}(?:[-./#][^\W_]{1,40}){0,5}")
_CLOSE = re.compile(r"[^\d,;:、，；：。]{1,20}")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_NEAR = re.compile(r"[^,;:、，；：。]{1,40}")
_SMALL = 100
_SAME = 1e-6
_FITS_ANYTHING = 10


class _Mention(NamedTuple):
    start: int
    record: Record
    twins: Sequence[Record]
    """Further rows of the same name."""


class _Claim(NamedTuple):
    """A number, date, time or text of the answer, and where in the evidence it stands."""

    start: int
    end: int
    text: str
    kind: str
    entries: Sequence[Quantity | Moment | Leaf]


def wrong_rows(response: Response, known: list[Support]) -> Iterator[Finding]:
    """A finding where a value stands only in other rows than the one named beside it, which has another.

    The name may stand before its values or behind them; only what fits neither order is a finding.
    """
    claims = [
        _Claim(s.token.start, s.token.end, s.token.text, "number", s.direct) for s in known
        if s.direct and not s.how and not s.token.is_spelled
        and all(isinstance(e, Quantity) and e.is_operand for e in s.direct)
    ] + list(_moments(response))  # fmt: skip
    for records in response.ledger.groups.values():
        if not 1 < len(records) <= MAX_RECORDS or _is_one_thing(records, response):
            continue
        by_index = {record.index: record for record in records}
        own = [*(c for c in claims if _belongs(c, by_index)), *_texts(by_index, response)]
        if not own:
            continue
        columns = Counter(entry.key for claim in own for entry in claim.entries[:1])
        own = [claim for claim in own if _is_telling(claim, columns, response)]
        labels = {record.index: _labels(record, response) for record in records}
        names = {record.index: _labels(record, response, names_only=True) for record in records}
        for start, end in response.sentences:
            inside = sorted(
                (claim for claim in own if start <= claim.start < end), key=lambda claim: claim.start
            )
            if not inside:
                continue
            said = {word for claim in inside if claim.kind == "text" for word in _words(claim.text)}
            text = response.output[start:end]
            mentions = _mentions(text, start, records, names, said, response)
            mentions = mentions or _mentions(text, start, records, labels, said, response)
            if not mentions and len(response.sentences) == 1:
                mentions = _mentions(response.question, start, records, labels, said, response)
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
        entries: list[Moment] = []
        if token.kind == "time" and token.is_exact:
            entries = [moment for moment in told if moment.minutes == token.minutes and not moment.zone]
        elif token.kind == "date":
            entries = [m for m in told if any(agree(a, b) for a in m.dates for b in token.dates)]
        if entries:
            yield _Claim(token.start, token.end, token.text, token.kind, entries)


def _texts(by_index: dict[int, Record], response: Response) -> Iterator[_Claim]:
    """Short texts of rows that the answer repeats, names and states aside."""
    found: dict[tuple[str, str], list[Leaf]] = {}
    name = _name_key(by_index)
    for leaf in response.ledger.leaves:
        if (
            leaf.record in by_index
            and leaf.key != name
            and isinstance(leaf.value, str)
            and 1 < len(leaf.value) <= 40
        ):
            words = {*key_words(leaf.key)}
            if (
                not words & (NAME_KEYS | STATE_KEYS)
                and any(map(str.isalpha, leaf.value))
                and len(found) < _MOST_TEXTS
            ):
                found.setdefault((leaf.key, leaf.value), []).append(leaf)
    for (_, value), entries in found.items():
        rows = {entry.record for entry in entries}
        if len(rows) * 2 > len(by_index) or not (
            any(map(str.isdigit, value)) or value[:1].isupper() or _is_plain(value, response)
        ):
            continue
        place = response.output.find(value) if len(folded(value)) > 1 else -1
        for _ in range(_MOST_PLACES):
            end = place + len(value)
            edges = response.output[max(0, place - 1) : place] + response.output[end : end + 1]
            if place >= 0 and (not any(c.isalnum() for c in edges) or not value.isascii()):
                yield _Claim(place, end, value, "text", entries)
            place = response.output.find(value, end) if place >= 0 else -1


def _is_plain(value: str, response: Response) -> bool:
    return len(value) > 3 and value.isalpha() and value not in response.words.function


def _name_key(by_index: dict[int, Record]) -> str:
    """The first key whose texts all differ, by which rows are told apart."""
    for key in {key: None for record in by_index.values() for key, _ in record.texts}:
        texts = [
            next((folded(text) for own, text in record.texts if own == key), "")
            for record in by_index.values()
        ]
        if len({*texts}) == len(by_index):
            return key
    return ""


def _belongs(claim: _Claim, by_index: dict[int, Record]) -> bool:
    """Whether a value stands in rows of the group alone, and not in all of them."""
    rows = {entry.record for entry in claim.entries}
    return rows <= by_index.keys() and len(rows) < len(by_index)


def _is_telling(claim: _Claim, columns: Counter[str], response: Response) -> bool:
    """Small numbers without a unit fit by chance, unless others of their column are told or it is named."""
    entry = claim.entries[0]
    if claim.kind != "number" or not isinstance(entry, Quantity):
        return True
    if abs(entry.value) >= _SMALL or entry.value != int(entry.value) or entry.unit or entry.currencies:
        return True
    low = response.output.lower()
    return columns[entry.key] > 1 or any(len(word) > 3 and word[:5] in low for word in key_words(entry.key))


def _words(text: str) -> Iterator[str]:
    """The words of a text and the parts of those with hyphens; pairs of signs where nothing parts words."""
    for word in _LABEL.findall(text.lower()):
        yield word
        if not word.isalnum():
            yield from re.split(r"[-./#]", word)
        if not word.isascii() and (plain := word.translate(_UMLAUTS)) != word:
            yield plain
        if not word.isascii() and word[0] > "\u3000" and len(word) > 1:
            yield from (word[place : place + 2] for place in range(len(word) - 1))


def _labels(record: Record, response: Response, *, names_only: bool = False) -> set[str]:
    found = {
        w for w in response.ledger.labels(record, names_only=names_only) if not w.isdigit() or len(w) > 3
    }
    for key, text in record.texts:
        if (
            len(text) < 60
            and any(map(str.isalpha, text))
            and (not names_only or NAME_KEYS & {*key_words(key)})
        ):
            found.update(_words(text))
    return found


def _mentions(text: str, offset: int, records: list[Record], labels: dict[int, set[str]], left_out: set[str],
              response: Response) -> list[_Mention]:  # fmt: skip
    """The rows that a text names, each where its most telling word stands first.

    A row is named by the words that not all rows have; of rows with words in common the one that has most
    of them said is meant, and none if two have as many.
    """
    common = set.intersection(*labels.values()) | left_out
    places: dict[str, int] = {}
    low = text.lower()
    for match in _LABEL.finditer(low):
        for word in _words(match[0]):
            places.setdefault(word, max(match.start(), low.find(word, match.start())))
    scores: dict[int, set[str]] = {}
    for record in records:
        said = {
            word for word in labels[record.index] - common
            if word in places and (len(word) > 1 or word.isdigit()) and not (word.isdigit() and len(word) < 4)
            and word not in response.words.function
        }  # fmt: skip
        if said:
            scores[record.index] = said
    found = []
    for record in records:
        if record.index not in scores:
            continue
        said = scores[record.index]
        rivals = [other for index, other in scores.items() if index != record.index and said & other]
        twins = [other for other in records if other is not record and scores.get(other.index) == said]
        rivals = [other for other in rivals if other != said]
        if any(said <= other for other in rivals) or any(twin.index < record.index for twin in twins):
            continue
        own = said - set().union(*rivals)
        if own or all(len(other) < len(said) for other in rivals):
            found.append(_Mention(offset + min(places[word] for word in (own or said)), record, twins))
    found.sort(key=lambda mention: mention.start)
    return found[:12] if len({mention.start for mention in found}) == len(found) else []


def _judge(
    claims: list[_Claim], mentions: list[_Mention], by_index: dict[int, Record], response: Response
) -> Iterator[Finding]:
    if not mentions:
        return
    is_open = claims[0].start < mentions[0].start
    wrong = []
    for claim in claims:
        before = next((m for m in reversed(mentions) if m.start < claim.start), None)
        behind = next((m for m in mentions if m.start > claim.start), None) if is_open else None
        named = before or behind
        if named is None or any(_fits(claim, m, response) for m in (before, behind) if m is not None):
            continue
        if claim.kind == "number" and _is_reckoned(claim, named.record, by_index, response):
            continue
        rivals = [other for other in claims if other.entries[0].key == claim.entries[0].key]
        if len(rivals) > len(mentions) and any(_fits(other, named, response) for other in rivals):
            continue
        close = _NEAR if claim.kind == "text" else _CLOSE
        if before is not None or close.fullmatch(response.output, claim.end, named.start):
            wrong.append((claim, named.record))
    for claim, record in wrong:
        entry = claim.entries[0]
        name, mine = (
            next((text for _, text in row.texts if len(text) < 60 and text != claim.text), row.key)
            for row in (by_index[entry.record], record)
        )
        own = _counterpart(claim, record, response)
        what = f"{claim.text} is {entry.key} of {name}; {mine} has {own}"
        yield Finding(
            "RH10",
            shown(response.output[max(0, claim.start - 30) : claim.end + 10]),
            what,
            entry.path,
            entry.call,
        )


def _is_reckoned(claim: _Claim, record: Record, by_index: dict[int, Record], response: Response) -> bool:
    """Whether a number may be reckoned from the named row, or is small beside no word of its key.

    Reckoned is the sum of the rows that share a text with it, and what lies between its value and another
    number of the answer.
    """
    entry = claim.entries[0]
    if not isinstance(entry, Quantity):
        return True
    start, end = response.sentence_of(claim.start)
    low = response.output[start:end].lower()
    if entry.value < _FITS_ANYTHING and entry.value == int(entry.value) and entry.unit is None:
        if "|" not in low and not any(len(word) > 3 and word[:4] in low for word in key_words(entry.key)):
            return True
    scale = 100 if entry.is_minor else 1
    said = [
        token.value * scale
        for token in response.tokens
        if token.kind == "number" and token.text != claim.text
    ]
    own = [quantity.value for quantity in record.numbers if quantity.key == entry.key]
    total = sum(q.value for row in by_index.values() for q in row.numbers if q.key == entry.key)
    said = [value for value in said if abs(value - total) > _SAME]
    if any(
        abs(abs(one - value) - entry.value) < _SAME or one + value == entry.value
        for one in own
        for value in said
    ):
        return True
    named = {*record.texts}
    kin = [row for row in by_index.values() if not named.isdisjoint(row.texts)]
    return any(
        abs(
            sum(q.value for row in kin if text in row.texts for q in row.numbers if q.key == entry.key)
            - entry.value
        )
        < 1e-6
        for text in named
    )


def _fits(claim: _Claim, mention: _Mention, response: Response) -> bool:
    if mention.twins and claim.kind in ("text", "number"):
        return True  # rows of one name are a category, of which sums and shares are told
    rows = (mention.record, *mention.twins)
    is_of_it = any(entry.record == row.index for entry in claim.entries for row in rows)
    return is_of_it or any(_counterpart(claim, row, response) is None for row in rows)


def _counterpart(claim: _Claim, record: Record, response: Response) -> str | None:
    """What the named row has under the key of the value; None where it has nothing to compare."""
    keys = {entry.key for entry in claim.entries}
    if claim.kind == "text":
        return next((text for key, text in record.texts if key in keys and text), None)
    for quantity in record.numbers:
        if quantity.key in keys and quantity.is_member:
            return f"{quantity.value:.10g}"
    for moment in response.ledger.moments[:MOST_MOMENTS]:
        is_kind = (moment.minutes is not None) == (claim.kind == "time")
        if moment.record == record.index and moment.key in keys and is_kind:
            return (
                f"{moment.minutes // 60:02d}:{moment.minutes % 60:02d}"
                if moment.minutes is not None
                else "another date"
            )
    return None
