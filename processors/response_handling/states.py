"""Rules RH9.b to RH9.f: what results say of states, flags, trends and ranks, told the other way round.

A state counts as it stands after the last call of its tool and target. Words tell something in the sentence
in which they stand; questions to the user and set phrases ("no further action") tell nothing.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from processors.response_handling.errors import acts
from processors.response_handling.ledger import Leaf, folded
from processors.response_handling.lexicon import lexicon
from processors.response_handling.lexicons.keys import (
    BAD_FLAGS,
    CANCELLED,
    CHANGE_KEYS,
    DRY_KEYS,
    FAILED,
    FROM_TO,
    GOOD_FLAGS,
    GOOD_STATES,
    GOOD_STEMS,
    LARGEST,
    MOMENT_ENDS,
    NEGATING_PREFIXES,
    OPPOSITES,
    PENDING,
    STATE_KEYS,
    VAGUE_STATES,
)
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.response import TROUBLE, Finding, Response, shown, words_of

_MOST_LEAVES: Final = 400
_LONGEST_STATE: Final = 40
_STEM: Final = 5
_STATES: Final = FAILED | PENDING | GOOD_STATES
_NOT: Final = frozenset(["not", "un", "no", "nicht", "non", "nie", "não", "niet"])
_CLAIM: Final = frozenset({"done", "yes", "all"})
_WORD = re.compile(r"[^\W\d_]{1,40}(?:['’][^\W\d_]{1,4})?")


def state_of(value: str, *, is_spaced: bool = True) -> str:
    """The kind of a state: `failed`, `pending`, `good`, or nothing known."""
    words = {*key_words(value)}
    if words & _NOT:
        return "failed"
    for kind, names in (("failed", FAILED), ("pending", PENDING), ("good", GOOD_STATES)):
        if words & names or (not is_spaced and any(name in value for name in names if not name.isascii())):
            return kind
    return ""


def state_leaves(response: Response) -> list[tuple[Leaf, str]]:
    """The values that are states, by their key or by their words, with their kind."""
    found = []
    for leaf in response.current[:_MOST_LEAVES]:
        if isinstance(leaf.value, str) and len(leaf.value) < _LONGEST_STATE:
            words = {*key_words(leaf.value)}
            is_state = not STATE_KEYS.isdisjoint(key_words(leaf.key)[-1:])
            if is_state or (words and not VAGUE_STATES & words and words <= _STATES):
                found.append((leaf, state_of(leaf.value, is_spaced=response.words.is_spaced)))
    return found


def reversed_states(response: Response) -> Iterator[Finding]:
    """RH9.b: a state that is not done told as done, or as its opposite; RH12.1: of some, as if all were."""
    said, low = folded(response.output), response.output.lower()
    by_key: dict[str, list[tuple[Leaf, str]]] = defaultdict(list)
    for leaf, kind in state_leaves(response):
        by_key[leaf.key].append((leaf, kind))
    for key, entries in by_key.items():
        for leaf, kind in entries:
            value = str(leaf.value)
            is_said = any(
                word[: _STEM + 1] in said for word in (folded(value), *key_words(value)) if len(word) > 3
            )
            is_said |= any(stem in value.lower() for stem in CANCELLED) and any(
                stem in low for stem in CANCELLED
            )
            is_vague = value.lower() in VAGUE_STATES
            if (
                kind not in ("failed", "pending")
                or is_said
                or (is_vague and acts(response.calls[leaf.call].name))
            ):
                continue
            trouble = TROUBLE | ({"pending"} if kind == "pending" else set())
            if response.told & trouble or not response.told & (_CLAIM - {"all"} if is_vague else _CLAIM):
                continue
            about = [
                one
                for one in response.sentences
                if response.names(response.ledger.records[leaf.record], one.text)
            ]
            is_whole = len(entries) == 1 or any(one.kinds & _CLAIM for one in about)
            of_all = [one for one in response.sentences if "all" in one.kinds]
            if is_whole or of_all:
                one = (about or of_all or response.sentences)[0]
                rule = "RH9.b" if is_whole else "RH12.1"
                yield Finding(rule, shown(one.text), f"{key}: {shown(value)}", leaf.path, leaf.call)
                return
    yield from _opposites(response)


def _opposites(response: Response) -> Iterator[Finding]:
    """The one state that the results have, told as its opposite and never as it is."""
    said = frozenset(words_of(response.output))
    values: dict[str, list[Leaf]] = defaultdict(list)
    known = {
        word for leaf in response.current if isinstance(leaf.value, str) for word in words_of(leaf.value)
    }
    for leaf in response.current[:_MOST_LEAVES]:
        for word in words_of(leaf.value[:4000]) if isinstance(leaf.value, str) else ():
            values[word].append(leaf)
            for prefix in NEGATING_PREFIXES:
                bare = word.removeprefix(prefix)
                if bare != word and len(bare) > 6 and bare in said and word not in said and bare not in known:
                    if not _is_negated(bare, response):
                        yield Finding("RH9.b", bare, f"{leaf.key}: {word}", leaf.path, leaf.call)
                        return
    for pair in OPPOSITES:
        for value, other in (pair, pair[::-1]):
            leaves = [leaf for leaf in values.get(value, []) if folded(str(leaf.value)) == value]
            if len(leaves) == 1 and other in said and value not in said and other not in known:
                if not _is_negated(other, response):
                    leaf = leaves[0]
                    yield Finding("RH9.b", other, f"{leaf.key}: {value}", leaf.path, leaf.call)
                    return


def _is_negated(word: str, response: Response) -> bool:
    place = response.output.lower().find(word)
    return bool(response.words.categories(response.output[max(0, place - 24) : place]) & {"negation", "no"})


def reversed_flags(response: Response) -> Iterator[Finding]:
    """RH9.c: a false flag, a count of nothing or a moment that never was, told as if it were so."""
    if not response.is_sure:
        return
    leaves = [leaf for leaf in response.current[:_MOST_LEAVES] if leaf.key.lower() not in DRY_KEYS]
    keys = [leaf.key for leaf in leaves]
    said = {word[:_STEM] for one in response.sentences for word in one.words}
    asked = said | {word[:_STEM] for word in response.asked}
    for leaf in leaves:
        words = key_words(leaf.key)
        is_bad = BAD_FLAGS & {*words} and not GOOD_FLAGS & {*words}
        if keys.count(leaf.key) > 1 or is_bad or not words:
            continue
        stems = [word[:_STEM] for word in words if len(word) > 3]
        is_moment = leaf.value is None and len(words) > 1 and words[-1] in MOMENT_ENDS and stems[:1]
        is_none = leaf.value == 0 and isinstance(leaf.value, int) and len(words) == 1
        is_good = not GOOD_FLAGS.isdisjoint(words) or _is_done(words[0], response)
        is_told = any(stem in (asked if response.starts_with_yes else said) for stem in stems)
        is_done = "done" in response.told and ("pending" not in response.told or response.starts_with_yes)
        is_literal = any(
            word[: len(words[-1])] == words[-1] for one in response.sentences for word in one.words
        )
        if leaf.value is False and is_good:
            is_hit = (
                (is_literal and len(words[-1]) > 4)
                or (is_told and (is_done or response.starts_with_yes))
                or (is_done and len(words) == 1)
            )
        elif leaf.value is False:
            is_hit = response.starts_with_yes and bool(stems) and all(stem in said for stem in stems)
        else:
            is_hit = bool(is_moment or is_none) and is_good and is_done and bool(stems) and stems[0] in said
        if is_hit:
            what = f"{leaf.key}: {'null' if leaf.value is None else str(leaf.value).lower()}"
            yield Finding("RH9.c", shown(response.output), what, leaf.path, leaf.call)
            return


def _is_done(word: str, response: Response) -> bool:
    """Whether a word of a key says that something is done or holds."""
    languages = (response.words, lexicon("en"))
    return word.startswith(GOOD_STEMS) or any("done" in words.categories(word) for words in languages)


def reversed_trends(response: Response) -> Iterator[Finding]:
    """RH9.d: a change told with the other direction, by its sign or by the two values between which it lies."""
    for one in response.sentences:
        inside = [s for s in response.numbers.supports if one.start <= s.token.start < one.end]
        if not inside or ("up" in one.kinds) == ("down" in one.kinds) or "negation" in one.kinds:
            continue
        sign = 1 if "up" in one.kinds else -1
        for support in inside:
            for quantity in support.direct:
                is_change = (
                    not CHANGE_KEYS.isdisjoint(key_words(quantity.key)) and not support.token.is_negative
                )
                if quantity.call >= 0 and quantity.value * sign < 0 and is_change:
                    what = f"{quantity.key} is {quantity.value:.10g}"
                    yield Finding("RH9.d", shown(one.text), what, quantity.path, quantity.call)
                    return
        plain = [s for s in inside if s.direct and not (s.token.unit and s.token.unit.dimension == "percent")]
        for first, second in pairwise(plain):
            between = response.output[first.token.end : second.token.start].strip().lower()
            change = second.token.value - first.token.value
            if len(between) <= 16 and between in FROM_TO and change * sign < 0:
                what = f"from {first.token.text} to {second.token.text}"
                yield Finding("RH9.d", shown(one.text), what, second.direct[0].path, second.direct[0].call)
                return


def unheard_negations(response: Response) -> Iterator[Finding]:
    """RH9.e: what a text of a result forbids or denies, told without any negation."""
    if response.kinds & {"negation", "no", "failure"} or not response.words.is_spaced:
        return
    said = {word[:_STEM] for word in words_of(response.output)}
    languages = {response.words, lexicon("en")}
    for leaf in response.current[:_MOST_LEAVES]:
        words = _WORD.findall(leaf.value[:4000].lower()) if isinstance(leaf.value, str) else []
        for place, word in enumerate(words if len(words) > 2 else ()):
            if any("negation" in language.categories(word) for language in languages):
                following = [other for other in words[place + 1 : place + 7] if len(other) > 3][:3]
                if len(following) >= 2 and all(other[:_STEM] in said for other in following):
                    what = f"{leaf.key}: {shown(' '.join((word, *following)))}"
                    yield Finding("RH9.e", shown(response.output), what, leaf.path, leaf.call)
                    return


def wrong_ranks(response: Response) -> Iterator[Finding]:
    """RH9.f: a row told as the largest one that is neither the most nor the least under any key."""
    for one in response.sentences if response.words.language else ():
        low = one.text.lower()
        if one.kinds & TROUBLE or not any(word in low for word in LARGEST[response.words.language]):
            continue
        for records in response.ledger.groups:
            rows = {record.index: record for record in records}
            labels = [
                str(leaf.value) for row in records for leaf in row.leaves if isinstance(leaf.value, str)
            ]
            if len({*labels}) != len(labels):
                continue  # some rows have something in common, so that they alone may be meant
            inside = [
                s for s in response.numbers.supports if one.start <= s.token.start < one.end and s.direct
            ]
            for support in inside if 3 <= len(records) <= 60 else ():
                owners = {quantity.record for quantity in support.direct}
                if len(owners) != 1 or not owners <= rows.keys():
                    continue
                row = rows[owners.pop()]
                columns = [
                    (mine, sorted(q.value for other in records for q in other.numbers if q.key == mine.key))
                    for mine in row.numbers if mine.is_whole
                ]  # fmt: skip
                is_inner = columns and all(column[0] < mine.value < column[-1] for mine, column in columns)
                if is_inner and response.names(row, one.text):
                    mine, column = columns[0]
                    what = f"{mine.key} is at most {column[-1]:.10g}"
                    yield Finding("RH9.f", shown(one.text), what, mine.path, mine.call)
                    return
