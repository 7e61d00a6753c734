"""Rules RH9, RH12 and RH13: what results say of states, flags and completeness, against what the answer says.

A state counts as it stands after the last call of its tool and target. Words tell something in the sentence
in which they stand: questions to the user and set phrases ("no further action") tell nothing.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from processors.response_handling.ledger import Leaf, Quantity, Record, folded
from processors.response_handling.lexicon import lexicon
from processors.response_handling.lexicons.keys import (
    ACTIONS,
    BAD_FLAGS,
    BOTH,
    BOTH_CJK,
    CANCELLED,
    CHANGE_KEYS,
    DRY_KEYS,
    DRY_MODES,
    DRY_TEXTS,
    FAILED,
    FAILED_LISTS,
    FIRST_PAGE,
    FROM_TO,
    GOOD_FLAGS,
    GOOD_STATES,
    LABEL_KEYS,
    MORE_KEYS,
    NAME_KEYS,
    NEGATING_PREFIXES,
    OPPOSITES,
    PENDING,
    PERIODS,
    SAYS_MORE,
    STATE_KEYS,
    TOTAL_KEYS,
    VAGUE_STATES,
)
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Support
from processors.response_handling.outcomes import acts
from processors.response_handling.response import Finding, Response, Sentence, shown

_STEM_WORD = re.compile(r"[^\W\d_]{4,40}")
_ANY_WORD = re.compile(r"[^\W\d_]{1,40}(?:['’][^\W\d_]{1,4})?")
_DATED = re.compile(r"\d{4}-\d{2}")
_TROUBLE = frozenset({"negation", "failure", "no", "absent"})
_CLAIM = frozenset({"done", "yes", "all"})
_PAGES = re.compile(
    r"\b(?:page|seite|página|pagina|strona|ページ|第)\s?(\d{1,4})\s?(?:of|von|de|di|van|z|sur|/|页/)\s?(\d{1,4})",
    re.IGNORECASE,
)
_MOST_LEAVES = 400
_MOST_SAME = 60
_STATES = FAILED | PENDING | GOOD_STATES


def reversed_states(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    """RH9.b: a state that is not done told as done; RH12.1: of some, as if all were.

    RH9.c: a false flag told as true; RH9.d: a trend turned round; RH12.3: a dry run told as done;
    RH12.7: of all what holds for some.
    """
    yield from _states(response, known)
    yield from _opposites(response)
    if not response.overall & {"negation", "failure", "no"}:
        yield from _flags(response)
    yield from _dry_runs(response)
    yield from _failed_lists(response)
    yield from _all_for_some(response, known)
    yield from _trends(response, known)


def state_of(value: str, *, is_spaced: bool = True) -> str:
    """The kind of a state: `failed`, `pending`, `good`, or nothing known."""
    words = {*key_words(value)}
    if words & {"not", "un", "no", "nicht", "non", "nie"}:
        return "failed"
    for kind, names in (("failed", FAILED), ("pending", PENDING), ("good", GOOD_STATES)):
        if words & names or (not is_spaced and any(name in value for name in names if not name.isascii())):
            return kind
    return ""


def _state_leaves(response: Response) -> list[tuple[Leaf, str]]:
    found = []
    for leaf in response.current[:_MOST_LEAVES]:
        if isinstance(leaf.value, str) and len(leaf.value) < 40 and leaf.call >= 0:
            words = key_words(leaf.value)
            is_state = not STATE_KEYS.isdisjoint(key_words(leaf.key)[-1:])
            if is_state or (words and not VAGUE_STATES & {*words} and {*words} <= _STATES):
                found.append((leaf, state_of(leaf.value, is_spaced=response.words.is_spaced)))
    return found


def _tells(sentence: Sentence, kind: str) -> bool:
    return bool(sentence.categories & _TROUBLE) or (kind == "pending" and "pending" in sentence.categories)


def _states(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    states = _state_leaves(response)
    said, low = folded(response.output), response.output.lower()
    sentences = [sentence for sentence in response.told if not sentence.is_question]
    by_key: dict[str, list[tuple[Leaf, str]]] = defaultdict(list)
    for leaf, kind in states:
        by_key[leaf.key].append((leaf, kind))
    for key, entries in by_key.items():
        labels = _names([response.ledger.records[leaf.record] for leaf, _ in entries], response)
        for leaf, kind in entries:
            value = str(leaf.value)
            is_said = folded(value) in said or any(
                word[:6] in said for word in key_words(value) if len(word) > 4
            )
            is_said = is_said or (
                any(stem in value.lower() for stem in CANCELLED) and any(stem in low for stem in CANCELLED)
            )
            if kind not in ("failed", "pending") or is_said:
                continue
            if value.lower() in VAGUE_STATES and acts(response.calls[leaf.call].name):
                continue
            about = [one for one in sentences if not labels[leaf.record].isdisjoint(one.words)]
            others = [one for one in sentences if one not in about]
            if len(entries) == 1 or not about:
                about, others = sentences, []
            is_weak = kind == "pending" and (value.lower() in VAGUE_STATES)
            claims = {"done"} if is_weak else _CLAIM
            if any(_tells(one, kind) for one in about) or not any(one.categories & claims for one in about):
                continue
            if any(_tells(one, kind) and not _is_of_another(one, leaf, labels) for one in others):
                continue
            is_whole = len(entries) == 1 or about is not sentences
            of_all = [one for one in about if "all" in one.categories]
            if any(
                one.start <= s.token.start < one.end and s.token.value < len(entries)
                for one in of_all
                for s in known
            ):
                of_all = []
            if is_whole or of_all:
                rule = "RH9.b" if is_whole else "RH12.1"
                yield Finding(rule, shown(about[0].text), f"{key}: {shown(value)}", leaf.path, leaf.call)
                return


def _is_of_another(sentence: Sentence, leaf: Leaf, labels: dict[int, set[str]]) -> bool:
    return any(
        not words.isdisjoint(sentence.words) for index, words in labels.items() if index != leaf.record
    )


def _names(records: Sequence[Record], response: Response) -> dict[int, set[str]]:
    """The words that name each record and no other one of `records`."""
    labels = {record.index: response.ledger.labels(record) for record in records[:60]}
    counts = Counter(word for words in labels.values() for word in words)
    return defaultdict(set, {
        index: {w for w in words if counts[w] == 1 and (len(w) > 2 or not w.isascii() or w.isdigit())}
        for index, words in labels.items()
    })  # fmt: skip


def _opposites(response: Response) -> Iterator[Finding]:
    """RH9.b as well: the one state that the results have, told as its opposite."""
    said = {word.lower() for word in _STEM_WORD.findall(response.output)}
    values: dict[str, list[Leaf]] = defaultdict(list)
    for leaf in response.current[:_MOST_LEAVES]:
        if isinstance(leaf.value, str) and leaf.call >= 0:
            if len(leaf.value) < 16:
                values[leaf.value.lower()].append(leaf)
            for word in _STEM_WORD.findall(leaf.value.lower()) if len(leaf.value) < 4000 else ():
                bare = next(
                    (
                        word[len(p) :]
                        for p in NEGATING_PREFIXES
                        if word.startswith(p) and len(word) > len(p) + 6
                    ),
                    "",
                )
                if bare in said and word not in said and bare not in response.result_words:
                    if not _is_negated(bare, response):
                        yield Finding("RH9.b", bare, f"{leaf.key}: {word}", leaf.path, leaf.call)
                        return
    for pair in OPPOSITES:
        for value, other in (pair, pair[::-1]):
            leaves = values.get(value, [])
            if (
                other not in said
                or value in said
                or len(leaves) != 1
                or other in values
                or other in response.result_words
            ):
                continue
            if not _is_negated(other, response):
                yield Finding("RH9.b", other, f"{leaves[0].key}: {value}", leaves[0].path, leaves[0].call)
                return


def _is_negated(word: str, response: Response) -> bool:
    place = response.output.lower().find(word)
    return bool(response.words.categories(response.output[max(0, place - 24) : place]) & {"negation", "no"})


def _flags(response: Response) -> Iterator[Finding]:
    categories = response.overall
    flags = [leaf for leaf in response.current if isinstance(leaf.value, bool)]
    said = {word[:5] for word in _STEM_WORD.findall(response.output.lower())}
    words = said | {word[:5] for word in _STEM_WORD.findall(response.question.lower())}
    is_lone = all(not other.value for other in flags if other.key.lower() not in DRY_KEYS)
    for leaf in flags:
        parts = key_words(leaf.key)
        if (
            leaf.value
            or len([other for other in flags if other.key == leaf.key]) > 1
            or leaf.key.lower() in DRY_KEYS
        ):
            continue
        is_yes = response.starts_with_yes
        if "pending" in categories and not is_yes:
            continue
        stems = [part[:5] for part in parts if len(part) > 3]
        is_bad = not BAD_FLAGS.isdisjoint(parts)
        is_good = not GOOD_FLAGS.isdisjoint(parts)
        is_told = is_yes and is_lone and all(stem in said for stem in stems) and not is_bad
        is_done = "done" in categories and len(parts) == 1
        is_hit = is_done or is_yes or any(stem in said for stem in ("avail", *stems)) or ACTIONS & {*parts}
        if is_told or (
            is_good and ((is_lone and is_hit) or (is_yes and any(stem in words for stem in stems)))
        ):
            yield Finding("RH9.c", shown(response.output), f"{leaf.key}: false", leaf.path, leaf.call)
            return


def _dry_runs(response: Response) -> Iterator[Finding]:
    """RH12.3: the calls or their results say that nothing was done yet."""
    low = response.output.lower()
    if any(text.strip() in low for text in DRY_TEXTS) or "plan" in low:
        return
    if not any(
        "done" in one.categories and not one.categories & {"failure", "pending", "no"} and not one.is_question
        for one in response.told
    ) or any("pending" in one.categories and "negation" in one.categories for one in response.told):
        return
    for position in sorted(response.last_calls):
        call = response.calls[position]
        for leaf in response.ledger.leaves:
            if leaf.call != position and leaf.made_for != position:
                continue
            key, value = leaf.key.lower(), leaf.value
            is_dry = key in DRY_KEYS and value not in (False, None, 0, "", "false", "no")
            is_dry = is_dry or (
                key in ("mode", "action", "phase") and isinstance(value, str) and value.lower() in DRY_MODES
            )
            text = value[:20_000].lower() if isinstance(value, str) else ""
            if is_dry or any(mark in text for mark in DRY_TEXTS):
                what = f"{leaf.key}: {shown(value)}"
                yield Finding("RH12.3", shown(response.output), what, leaf.path, position)
                return
            if call.failure is not None:
                break


def _failed_lists(response: Response) -> Iterator[Finding]:
    """RH12.1: a part of the result counts or lists what failed, and the answer tells of no trouble."""
    claims = [one for one in response.told if not one.is_question]
    if any(one.categories & {*_TROUBLE, "contrast"} for one in claims):
        return
    if not any(one.categories & {"done", "all"} for one in claims):
        return
    for entry in response.ledger.result_lists:
        if (
            entry.length
            and entry.call in response.last_calls
            and not FAILED_LISTS.isdisjoint(key_words(entry.key))
        ):
            what = f"{entry.key}: {entry.length}"
            yield Finding("RH12.1", shown(response.output), what, entry.path, entry.call)
            return
    for quantity in response.ledger.quantities:
        is_part = quantity.is_member and quantity.call in response.last_calls and quantity.value >= 1
        if is_part and FAILED_LISTS & {*key_words(quantity.key)} and quantity.value == int(quantity.value):
            if quantity.unit is None and len(key_words(quantity.key)) < 3:
                what = f"{quantity.key}: {quantity.value:.10g}"
                yield Finding("RH12.1", shown(response.output), what, quantity.path, quantity.call)
                return


def _all_for_some(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    """RH12.7: what holds for some rows of a group told of all."""
    for records in response.ledger.groups.values():
        if not 2 <= len(records) <= 60 or any(record.call not in response.last_calls for record in records):
            continue
        counts = {support.token.start for support in known if len(records) in support.token.values}
        if len(records) < 3:
            counts = set()
        sentences = [
            one for one in response.told
            if not one.categories & {*_TROUBLE, "contrast", "approx"} and not one.is_question
            and ("all" in one.categories or any(one.start <= start < one.end for start in counts))
            and not any(one.start <= s.token.start < one.end and s.token.value < len(records) for s in known)
        ]  # fmt: skip
        if len(records) != 2:
            sentences = [
                one
                for one in sentences
                if BOTH.isdisjoint(one.words) and not any(w in one.text for w in BOTH_CJK)
            ]
        if not sentences:
            continue
        values: dict[str, Counter[str]] = defaultdict(Counter)
        paths: dict[tuple[str, str], Leaf] = {}
        for record in records:
            for key, text in record.texts:
                if len(text) <= 40 and "\n" not in text:
                    values[key][text] += 1
            for key, flag in record.flags:
                values[key][str(flag)] += 1
        rows = {record.index for record in records}
        for leaf in response.ledger.leaves:
            if leaf.record in rows:
                paths.setdefault((leaf.key, str(leaf.value)), leaf)
        for one in sentences:
            low = folded(one.text)
            partly = [
                (key, value, count, spread) for key, spread in values.items() if len(spread) > 1
                for value, count in spread.items() if _is_said(key, value, low)
            ]  # fmt: skip
            if len({key for key, _, _, _ in partly}) != 1 or len(partly) != 1:
                continue
            key, value, count, spread = partly[0]
            others = [other for other in spread if other != value]
            if count < 2 or count * 2 < len(records) or sum(spread.values()) < len(records):
                continue
            if any(_is_said(key, other, folded(response.output)) for other in others) or value == "False":
                continue
            row = paths.get((key, others[0]))
            if row is not None:
                what = f"{key} of {len(records) - count} is {shown(others[0])}"
                yield Finding("RH12.7", shown(one.text), what, row.path, row.call)
                return


def _is_said(key: str, value: str, low: str) -> bool:
    if value in ("True", "False"):
        stem = folded(key)
        return len(stem) > 3 and stem in low
    whole = folded(value)
    if len(whole) < 2 or whole.isdigit():
        return False
    return whole in low or (len(whole) > 5 and " " not in value and whole[: max(5, len(whole) - 2)] in low)


def _trends(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    for one in response.told:
        inside = [support for support in known if one.start <= support.token.start < one.end]
        if (
            not inside
            or ("up" in one.categories) == ("down" in one.categories)
            or "negation" in one.categories
        ):
            continue
        sign = 1 if "up" in one.categories else -1
        for support in inside:
            for quantity in support.direct:
                is_change = (
                    not CHANGE_KEYS.isdisjoint(key_words(quantity.key)) and not support.token.is_negative
                )
                if quantity.call >= 0 and quantity.value * sign < 0 and is_change:
                    what = f"{quantity.key} is {quantity.value:.10g}"
                    yield Finding("RH9.d", shown(one.text), what, quantity.path, quantity.call)
                    return
        yield from _turned_difference(response, inside, sign, shown(one.text))
        plain = [s for s in inside if s.direct and not (s.token.unit and s.token.unit.dimension == "percent")]
        for first, second in pairwise(plain):
            between = response.output[first.token.end : second.token.start].strip().lower()
            a, b = first.token.value, second.token.value
            if len(between) <= 16 and between in FROM_TO and a != b and (b - a) * sign < 0:
                what = f"from {first.token.text} to {second.token.text}"
                yield Finding("RH9.d", shown(one.text), what, second.direct[0].path, second.direct[0].call)
                return


def _turned_difference(
    response: Response, inside: Sequence[Support], sign: int, claim: str
) -> Iterator[Finding]:
    """A difference of two rows in order of time, told with the wrong direction."""
    for records in response.ledger.groups.values():
        if len(records) != 2:
            continue
        first, second = ({q.key: q for q in record.numbers if q.is_member} for record in records)
        shared = [key for key in first if key in second]
        orders = [
            first[key].value < second[key].value
            for key in shared
            if not first[key].is_operand or key in PERIODS
        ]
        dated = [text for record in records for _, text in record.texts if _DATED.match(text)]
        if not (orders and all(orders)) and not (len(dated) == 2 and dated[0] < dated[1]):
            continue
        for key in shared:
            change = second[key].value - first[key].value
            for support in inside:
                is_it = support.how and abs(abs(change) - support.token.value) < 1e-9 * abs(change) + 1e-9
                if is_it and change * sign < 0:
                    what = f"{key} went from {first[key].value:.10g} to {second[key].value:.10g}"
                    yield Finding("RH9.d", claim, what, second[key].path, second[key].call)
                    return


def unheard_negations(response: Response) -> Iterator[Finding]:
    """RH9.e: what a text of a result forbids or denies, told without any negation."""
    if response.categories & {"negation", "no", "failure"} or not response.words.is_spaced:
        return
    said = {word[:5] for word in _STEM_WORD.findall(response.output.lower())}
    negations = (response.words, lexicon("en"))
    for leaf in response.ledger.leaves[:200]:
        if leaf.call < 0 or not isinstance(leaf.value, str) or len(leaf.value) < 12 or " " not in leaf.value:
            continue
        words = _ANY_WORD.findall(leaf.value[:4000].lower())
        for place, word in enumerate(words):
            if any("negation" in one.categories(word) for one in negations):
                following = [other for other in words[place + 1 : place + 7] if len(other) > 3][:3]
                if len(following) >= 2 and all(other[:5] in said for other in following):
                    what = f"{leaf.key}: {shown(' '.join((word, *following)))}"
                    yield Finding("RH9.e", shown(response.output), what, leaf.path, leaf.call)
                    return


def denied_results(response: Response) -> Iterator[Finding]:
    """RH13: told as not known, though a result has it."""
    given = {word[:5] for word in _ANY_WORD.findall(response.user_args.lower())}
    for one in response.told:
        if "absent" not in one.categories or not one.categories & {"negation", "no", "failure"}:
            continue
        asked = {word for text in (one.text, response.question) for word in _topics(text, response)}
        topics = {word for word in _topics(one.text, response) if word[:5] not in given} & asked
        topics = topics or {word for word in asked if word[:5] not in given}
        said = folded(response.output)
        for leaf in response.current[:_MOST_LEAVES]:
            whole = folded(str(leaf.value))
            if leaf.call < 0 or leaf.value in (None, False, "", 0) or (len(whole) > 5 and whole in said):
                continue
            if NAME_KEYS & {*key_words(leaf.key)}:
                continue
            names = {*key_words(leaf.key), *key_words(leaf.path.rpartition(".")[0].rpartition(".")[2])}
            if isinstance(leaf.value, str) and len(leaf.value) >= 40:
                names = {word.lower() for word in _STEM_WORD.findall(leaf.value[:2000])}
                if any(
                    _alike(t, n) for t in asked & _topics(one.text, response) for n in names if len(t) > 3
                ):
                    yield Finding(
                        "RH13", shown(one.text), f"{leaf.key}: {shown(leaf.value)}", leaf.path, leaf.call
                    )
                    return
                continue
            if isinstance(leaf.value, str):
                names |= {word for word in key_words(leaf.value) if word[:5] not in given}
            hit = next((t for t in topics for n in names if _alike(t, n)), None)
            if hit is not None:
                yield Finding(
                    "RH13", shown(one.text), f"{leaf.key}: {shown(leaf.value)}", leaf.path, leaf.call
                )
                return


def _topics(text: str, response: Response) -> set[str]:
    if not response.words.is_spaced:
        return {
            text[i : i + n] for n in (2, 3) for i in range(len(text) - n + 1) if not text[i : i + n].isascii()
        }
    known = response.words.known | lexicon("en").known
    words = {word.lower() for word in _ANY_WORD.findall(text)}
    return {w for w in words if len(w) > 2 and w not in known and not response.words.categories(w)}


def _alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if not short.isascii() and len(short) < 3:
        return short == long
    return len(short) > 2 and long.startswith(short[: max(3, len(short) - 1)]) and len(long) - len(short) <= 3


def incomplete_results(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    """RH12.2: the first page taken for all; RH12.4: a value that was replaced, or asked for in vain."""
    yield from _first_pages(response, known)
    yield from _replaced(response, known)


def _first_pages(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    low = response.output.lower()
    if any(word in low for word in FIRST_PAGE) or "approx" in response.categories:
        return
    is_all = any("all" in one.categories and not one.is_question for one in response.told)
    # Who was asked for everything and tells that there is more has told enough.
    is_asked = "all" in response.words.categories(response.question)
    is_all = is_all or (is_asked and not any(word in low for word in SAYS_MORE))
    for leaf in response.current[:40] if is_all else ():
        if isinstance(leaf.value, str) and leaf.call >= 0 and (found := _PAGES.search(leaf.value[:4000])):
            if int(found[1]) < int(found[2]) and not _later_page(response, leaf.call):
                yield Finding("RH12.2", shown(response.output), found[0], leaf.path, leaf.call)
                return
    tops = [
        leaf
        for leaf in response.ledger.leaves
        if leaf.call >= 0 and leaf.path.count(".") < 2 and "[" not in leaf.path
    ]
    for entry in response.ledger.result_lists:
        if entry.length < 1 or entry.path.count(".") > 1:
            continue
        near = [leaf for leaf in tops if leaf.call == entry.call]
        more = [
            leaf for leaf in near if leaf.key.lower() in MORE_KEYS and leaf.value not in (None, False, "")
        ]
        totals = [
            leaf for leaf in near
            if leaf.key.lower() in TOTAL_KEYS and isinstance(leaf.value, int) and leaf.value > entry.length
        ]  # fmt: skip
        told = any(leaf.value in support.token.values for leaf in totals for support in known)
        counted = next((s for s in known if entry.length in s.token.values and not s.token.currencies), None)
        if (
            (more or totals)
            and not told
            and (counted is not None or is_all)
            and not _later_page(response, entry.call)
        ):
            leaf = (totals or more)[0]
            start = counted.token.start if counted is not None else 0
            yield Finding(
                "RH12.2", shown(response.output[start:]), f"{leaf.key}: {leaf.value}", leaf.path, entry.call
            )
            return


def _later_page(response: Response, call: int) -> bool:
    return any(other.name == response.calls[call].name for other in response.calls[call + 1 :])


def _replaced(response: Response, known: Sequence[Support]) -> Iterator[Finding]:
    said = {value for support in known for value in support.token.values}
    said_texts = folded(response.output)
    last = response.last_calls
    members: dict[str, list[Quantity]] = defaultdict(list)
    for quantity in response.ledger.quantities:
        if quantity.is_member and quantity.call in last and len(members[quantity.key]) < _MOST_SAME:
            members[quantity.key].append(quantity)
    ids = _ids_of_calls(response)
    for support in known:
        olds = [q for q in support.direct if q.is_member]
        if not olds or len(olds) != len(support.direct):
            continue
        for old in olds:
            is_alone = old.call not in last and all(q.call not in last for q in olds)
            for new in members[old.key] if is_alone or all(q.call >= 0 for q in olds) else ():
                if not is_alone and not (new.call > old.call and acts(response.calls[new.call].name)):
                    continue
                is_later = new.call in last and new.key == old.key and new.value != old.value
                if is_later and new.value not in said and _is_same(old, new, response, ids):
                    what = f"{new.key} is {new.value:.10g}" + (" since" if old.call >= 0 else "")
                    yield Finding("RH12.4", support.token.text, what, new.path, new.call)
                    return
    yield from _replaced_moments(response)
    for leaf in response.current[:_MOST_LEAVES]:
        if (
            leaf.call < 0
            or leaf.call not in last
            or not isinstance(leaf.value, str)
            or folded(leaf.value) in said_texts
        ):
            continue
        for before in response.older.get((leaf.key, leaf.path), ()):
            was, is_same = before.value, response.calls[before.call].name == response.calls[leaf.call].name
            if is_same and before.call not in last and isinstance(was, str) and was != leaf.value:
                stem = folded(was)[:6]
                is_new_said = folded(leaf.value)[: max(4, len(leaf.value) - 3)] in said_texts
                if (
                    len(stem) > 3
                    and stem in said_texts
                    and not is_new_said
                    and state_of(was) != state_of(leaf.value)
                ):
                    yield Finding(
                        "RH12.4",
                        shown(response.output),
                        f"{leaf.key}: {leaf.value} since",
                        leaf.path,
                        leaf.call,
                    )
                    return


def _replaced_moments(response: Response) -> Iterator[Finding]:
    """RH12.4: a time of day that an action has since moved, and whose new one is not told."""
    said = {token.minutes for token in response.tokens if token.kind == "time"}
    moments = [m for m in response.ledger.moments[:150] if m.minutes is not None]
    for minutes in said:
        olds = [m for m in moments if m.minutes == minutes]
        for old in olds if olds and all(m.call >= 0 and m.is_whole for m in olds) else ():
            asked = {str(value) for value in (response.calls[old.call].arguments or {}).values()}
            for new in moments:
                if (
                    new.call <= old.call
                    or new.path != old.path
                    or new.minutes in said
                    or new.zone != old.zone
                ):
                    continue
                call = response.calls[new.call]
                if acts(call.name) and asked & {str(value) for value in (call.arguments or {}).values()}:
                    what = f"{new.key} is {(new.minutes or 0) // 60:02d}:{(new.minutes or 0) % 60:02d} since"
                    yield Finding(
                        "RH12.4", f"{minutes // 60:02d}:{minutes % 60:02d}", what, new.path, new.call
                    )
                    return


def _is_same(old: Quantity, new: Quantity, response: Response, ids: list[set[str]]) -> bool:
    """Whether two values of one key are of one thing: asked and returned, or before and after."""
    if old.call < 0:
        return old.made_for == new.call and "[" not in new.path and "." not in new.path
    before, after = response.calls[old.call], response.calls[new.call]
    if before.name == after.name:
        return old.path == new.path and old.call not in response.last_calls
    return old.path == new.path and old.call < new.call and bool(ids[old.call] & ids[new.call])


def _ids_of_calls(response: Response) -> list[set[str]]:
    found: list[set[str]] = [set() for _ in response.calls]
    for leaf in response.ledger.leaves:
        if leaf.call >= 0 and leaf.path.count(".") == 0 and "[" not in leaf.path:
            words = key_words(leaf.key)
            if LABEL_KEYS & {*words[-1:]} or words[:1] == ("id",):
                found[leaf.call].add(f"{leaf.key}={leaf.value}")
    return found
