"""Parts of rules RH9 and RH12: less came about than the answer says.

A moment that is null, a count of nothing, a part smaller than its whole, a line of a log that failed, a row
that is not the largest.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from processors.response_handling.ledger import Quantity, Record
from processors.response_handling.lexicon import lexicon
from processors.response_handling.lexicons.keys import (
    BAD_FLAGS,
    GOOD_STEMS,
    LARGEST,
    MOMENT_ENDS,
    NEGATING_WORDS,
    PART_STEMS,
    WHOLE_WORDS,
)
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Support
from processors.response_handling.response import Finding, Response, Sentence, shown

_TROUBLE: Final = frozenset({"negation", "failure", "no", "absent"})
_STEM = 4
_FAILED = ("FAIL", "REJECTED", "DENIED")
_MOST_LEAVES = 400
_SHOUTED = re.compile(r"(?<![\w-])[A-Z_]{4,20}(?![\w-])")
_NAME = re.compile(r"[^\W_]{2,40}")


def shortfalls(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    """RH9.c, RH9.f, RH12.1: what did not happen, or only in part, told as if it had."""
    told = [one for one in response.told if not one.is_question]
    sure = [one for one in told if not one.categories & _TROUBLE]
    if not sure:
        return
    yield from _undone(response, sure)
    yield from _parts(response, sure, known)
    if not response.overall & {*_TROUBLE, "contrast"}:
        yield from _failed_lines(response, sure)
    yield from _not_the_largest(response, sure, known)


def _undone(response: Response, sure: Sequence[Sentence]) -> Iterator[Finding]:
    """RH9.c: a false flag, a count of nothing or a moment that never was, of what is told as done."""
    leaves = [leaf for leaf in response.current[:_MOST_LEAVES] if leaf.call >= 0]
    keys = Counter(leaf.key for leaf in leaves)
    for leaf in leaves if any("done" in one.categories for one in sure) else ():
        if leaf.value not in (None, False, 0) or keys[leaf.key] > 1:
            continue
        words = key_words(leaf.key)
        if not words or BAD_FLAGS & {*words}:
            continue
        is_moment = leaf.value is None and len(words) > 1 and words[-1] in MOMENT_ENDS
        is_none = (leaf.value is False or (leaf.value == 0 and isinstance(leaf.value, int))) and len(
            words
        ) == 1
        stem = words[0]
        if not (is_moment or is_none) or len(stem) < _STEM or not _is_done(stem, response):
            continue
        start = stem[: max(_STEM, min(len(stem) - 3, _STEM + 1))]
        for one in sure:
            if "done" in one.categories and any(word.startswith(start) for word in one.words):
                what = f"{leaf.key}: {'null' if is_moment else leaf.value}".lower()
                yield Finding("RH9.c", shown(one.text), what, leaf.path, leaf.call)
                return


def _is_done(stem: str, response: Response) -> bool:
    """Whether a word of a key says that something is done or holds."""
    return stem.startswith(GOOD_STEMS) or any(
        "done" in words.categories(stem) for words in (response.words, lexicon("en"))
    )


def _parts(response: Response, sure: Sequence[Sentence], known: Sequence[Support]) -> Iterator[Finding]:
    """RH12.1: a part of a whole is told as the whole, or what was left is not told."""
    said = {value for support in known for value in support.token.values}
    whole_sentences = [one for one in sure if "all" in one.categories]
    for record in response.ledger.records:
        if record.call not in response.last_calls:
            continue
        left = next((q for q in record.numbers if _is_left(q)), None)
        if (
            left is not None
            and left.value not in said
            and whole_sentences
            and not response.overall & _TROUBLE
        ):
            what = f"{left.key}: {left.value:.10g}"
            yield Finding("RH12.1", shown(whole_sentences[0].text), what, left.path, left.call)
            return
        for part in record.numbers:
            words = key_words(part.key)
            if (
                not part.is_member
                or not any(word.startswith(PART_STEMS) for word in words)
                or part.value in said
            ):
                continue
            for whole in record.numbers:
                names = {*key_words(whole.key)}
                is_whole = whole.is_member and names & WHOLE_WORDS and whole.value > part.value >= 0
                if is_whole and whole.value in said and whole.value - part.value not in said:
                    about = next((one for one in whole_sentences if _holds(one, whole, known)), None)
                    if about is not None:
                        what = f"{part.key}: {part.value:.10g} of {whole.key} {whole.value:.10g}"
                        yield Finding("RH12.1", shown(about.text), what, part.path, part.call)
                        return


def _is_left(quantity: Quantity) -> bool:
    words = key_words(quantity.key)
    return quantity.is_member and quantity.value > 0 and len(words) > 1 and words[0] in NEGATING_WORDS


def _holds(sentence: Sentence, quantity: Quantity, known: Sequence[Support]) -> bool:
    return any(
        sentence.start <= support.token.start < sentence.end and quantity.value in support.token.values
        for support in known
    )


def _failed_lines(response: Response, sure: Sequence[Sentence]) -> Iterator[Finding]:
    """RH12.1: a text of the results shouts of a failure, and the answer tells that all went well."""
    claims = [one for one in sure if "all" in one.categories and "done" in one.categories]
    for leaf in response.current[:_MOST_LEAVES] if claims else ():
        if leaf.call >= 0 and isinstance(leaf.value, str):
            bad = next((w for w in _SHOUTED.findall(leaf.value[:4000]) if w.startswith(_FAILED)), None)
            if bad is not None and bad.lower() not in response.user_text.lower():
                yield Finding("RH12.1", shown(claims[0].text), f"{leaf.key}: {bad}", leaf.path, leaf.call)
                return


def _not_the_largest(
    response: Response, sure: Sequence[Sentence], known: Sequence[Support]
) -> Iterator[Finding]:
    """RH9.f: a row told as the first, largest or leading one that is neither the most nor the least."""
    for records in response.ledger.groups.values():
        rows = {record.index for record in records}
        if not 3 <= len(records) <= 60 or any(
            m.record in rows for m in response.ledger.moments[:_MOST_LEAVES]
        ):
            continue
        if not _tells_apart(records):
            continue
        names = {
            row.index: {w.lower() for _, text in row.texts for w in _NAME.findall(text)} for row in records
        }
        for one in sure:
            low = one.text.lower()
            places = [low.find(word) for word in LARGEST.get(response.words.language, ()) if word in low]
            if not places:
                continue
            for support in known:
                token, own = support.token, [q for q in support.direct if q.record in names and q.is_member]
                if not own or not one.start <= token.start < one.end or len({q.record for q in own}) > 1:
                    continue
                row = next(record for record in records if record.index == own[0].record)
                if not names[row.index] & one.words and response.words.is_spaced:
                    continue
                columns = [
                    sorted(
                        q.value
                        for other in records
                        for q in other.numbers
                        if q.key == mine.key and q.is_member
                    )
                    for mine in row.numbers
                    if mine.is_member
                ]
                values = [mine.value for mine in row.numbers if mine.is_member]
                if all(column[0] < value < column[-1] for column, value in zip(columns, values, strict=True)):
                    most = max(
                        (q for other in records for q in other.numbers if q.key == own[0].key),
                        key=lambda q: q.value,
                    )
                    what = f"{own[0].key} is at most {most.value:.10g}"
                    yield Finding("RH9.f", shown(one.text), what, most.path, most.call)
                    return
                break


def _tells_apart(records: Sequence[Record]) -> bool:
    """Whether no text stands in two rows, so that nothing but all of them can be meant."""
    texts = [pair for record in records for pair in record.texts]
    return bool(texts) and len({*texts}) == len(texts) and all(record.numbers for record in records)
