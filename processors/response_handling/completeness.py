"""Rules RH12: less came about, or less is known, than the answer says.

A part that failed, a first page, a dry run, a value that was replaced since, an empty result, and told of
all what holds for some.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from processors.response_handling.errors import acts
from processors.response_handling.ledger import Leaf, Moment, Quantity, folded
from processors.response_handling.lexicons.keys import (
    BOTH,
    DRY_KEYS,
    DRY_MODES,
    DRY_TEXTS,
    FAILED_LISTS,
    FIRST_PAGE,
    LABEL_KEYS,
    MORE_KEYS,
    NEGATING_WORDS,
    PART_STEMS,
    SAYS_MORE,
    TOTAL_KEYS,
    WHOLE_WORDS,
)
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.response import TROUBLE, Finding, Response, Sentence, shown
from processors.response_handling.states import state_of
from processors.response_handling.timeline import clock_text

_MOST_LEAVES: Final = 400
_LONGEST_VALUE: Final = 40
_CONTENT: Final = 20_000
_SHOUTED = re.compile(r"(?<![\w-])(?:FAIL|REJECTED|DENIED)[A-Z_]{0,20}(?![\w-])")
_PAGES = re.compile(
    r"\b(?:page|seite|página|pagina|strona|ページ|第)\s?(\d{1,4})\s?(?:of|von|de|di|van|z|sur|/|页/)\s?(\d{1,4})",
    re.IGNORECASE,
)


def partial_failures(response: Response) -> Iterator[Finding]:
    """RH12.1: a part of the result counts or lists what failed, and the answer tells of no trouble."""
    if not response.is_sure or "contrast" in response.told or not response.told & {"done", "all"}:
        return
    said = {value for support in response.numbers.supports for value in support.token.values}
    for entry in response.ledger.lists:
        if entry.length and entry.call in response.last_calls and FAILED_LISTS & {*key_words(entry.key)}:
            yield Finding(
                "RH12.1", shown(response.output), f"{entry.key}: {entry.length}", entry.path, entry.call
            )
            return
    for record in response.ledger.records:
        numbers = [
            q for q in record.numbers if q.is_whole and q.unit is None and q.call in response.last_calls
        ]
        for part in numbers:
            words = key_words(part.key)
            is_failed = FAILED_LISTS & {*words} or (len(words) > 1 and words[0] in NEGATING_WORDS)
            what = f"{part.key}: {part.value:.10g}"
            if (
                not is_failed
                and any(word.startswith(PART_STEMS) for word in words)
                and "all" in response.told
            ):
                wholes = [
                    q for q in numbers if WHOLE_WORDS & {*key_words(q.key)} and q.value > part.value >= 0
                ]
                is_failed = bool(wholes) and not said & {part.value, wholes[0].value - part.value}
                what += f" of {wholes[0].value:.10g}" if wholes else ""
            if is_failed and part.value not in said - {0.0} and (part.value >= 1 or " of " in what):
                if part.value == int(part.value) and len(words) < 4:
                    yield Finding("RH12.1", shown(response.output), what, part.path, part.call)
                    return
    for leaf in response.current[:_MOST_LEAVES] if {"all", "done"} <= response.told else ():
        if isinstance(leaf.value, str) and (bad := _SHOUTED.search(leaf.value[:4000])):
            if bad[0].lower() not in response.user_text:
                yield Finding("RH12.1", shown(response.output), f"{leaf.key}: {bad[0]}", leaf.path, leaf.call)
                return


def first_pages(response: Response) -> Iterator[Finding]:
    """RH12.2: there are more rows than were read, and the answer tells of those as if they were all."""
    low = response.output.lower()
    if any(word in low for word in FIRST_PAGE) or "approx" in response.kinds:
        return
    is_asked = "all" in response.words.categories(response.question) and not any(
        word in low for word in SAYS_MORE
    )
    is_all = is_asked or "all" in response.told
    for leaf in response.current[:_MOST_LEAVES] if is_all else ():
        if isinstance(leaf.value, str) and (found := _PAGES.search(leaf.value[:4000])):
            if int(found[1]) < int(found[2]) and not _has_later(response, leaf.call):
                yield Finding("RH12.2", shown(response.output), found[0], leaf.path, leaf.call)
                return
    supports = response.numbers.supports
    tops = [leaf for leaf in response.current if leaf.path.count(".") < 2 and "[" not in leaf.path]
    for entry in response.ledger.lists:
        if (
            entry.call < 0
            or not entry.length
            or entry.path.count(".") > 1
            or _has_later(response, entry.call)
        ):
            continue
        more = [
            leaf for leaf in tops if leaf.call == entry.call and (
                (leaf.key.lower() in MORE_KEYS and leaf.value not in (None, False, "", 0))
                or (leaf.key.lower() in TOTAL_KEYS and isinstance(leaf.value, int) and leaf.value > entry.length)
            )
        ]  # fmt: skip
        is_told = any(
            float(leaf.value) in s.token.values for leaf in more for s in supports if type(leaf.value) is int
        )
        is_counted = any(entry.length in s.token.values and not s.token.currencies for s in supports)
        if more and not is_told and (is_counted or is_all):
            what = f"{more[0].key}: {shown(more[0].value)}"
            yield Finding("RH12.2", shown(response.output), what, more[0].path, entry.call)
            return


def _has_later(response: Response, call: int) -> bool:
    return any(other.name == response.calls[call].name for other in response.calls[call + 1 :])


def dry_runs(response: Response) -> Iterator[Finding]:
    """RH12.3: the calls or their results say that nothing was done yet, and the answer that it was."""
    low = response.output.lower()
    done = [
        one
        for one in response.sentences
        if "done" in one.kinds and not one.kinds & {"failure", "pending", "no"}
    ]
    if not done or any(text.strip() in low for text in DRY_TEXTS) or {"pending", "negation"} <= response.told:
        return
    for leaf in response.ledger.leaves:
        if leaf.call not in response.last_calls and leaf.made_for not in response.last_calls:
            continue
        key, value = leaf.key.lower(), leaf.value
        is_dry = key in DRY_KEYS and value not in (False, None, 0, "", "false", "no")
        if isinstance(value, str):
            is_mode = (
                key in ("mode", "action", "phase", "modo", "modus", "tryb") and value.lower() in DRY_MODES
            )
            is_dry = is_dry or is_mode or any(mark in value[:_CONTENT].lower() for mark in DRY_TEXTS)
        if is_dry:
            call = leaf.call if leaf.call >= 0 else leaf.made_for
            yield Finding("RH12.3", shown(done[0].text), f"{leaf.key}: {shown(value)}", leaf.path, call)
            return


def replaced_values(response: Response) -> Iterator[Finding]:
    """RH12.4: a value that a later call replaced, or that was asked for and not given, and not the new one."""
    said = {value for support in response.numbers.supports for value in support.token.values}
    clocks = {token.minutes for token in response.tokens if token.kind == "time"}
    texts = folded(response.output)
    for support in response.numbers.supports:
        olds = [quantity for quantity in support.direct if quantity.is_whole]
        news = [q for q in response.ledger.quantities if q.is_whole and q.call in response.last_calls]
        for old in olds if olds and len(olds) == len(support.direct) else ():
            for new in news:
                if new.key == old.key and new.value not in said and _replaces(new, old, response):
                    what = f"{new.key} is {new.value:.10g}"
                    yield Finding("RH12.4", shown(response.around(support.token)), what, new.path, new.call)
                    return
    whole = [moment for moment in response.ledger.moments if moment.minutes is not None and moment.is_whole]
    for old_time in whole:
        if old_time.minutes in clocks and all(m.call >= 0 for m in whole if m.minutes == old_time.minutes):
            for new_time in whole:
                if new_time.minutes not in clocks and _replaces(new_time, old_time, response):
                    what = f"{new_time.key} is {clock_text(new_time.minutes or 0)}"
                    claim = clock_text(old_time.minutes or 0)
                    yield Finding("RH12.4", claim, what, new_time.path, new_time.call)
                    return
    older = {
        (leaf.key, leaf.path): leaf
        for leaf in response.ledger.leaves
        if leaf.call >= 0 and leaf not in response.current
    }
    for leaf in response.current[:_MOST_LEAVES] if older else ():
        before = older.get((leaf.key, leaf.path))
        if (
            before
            and isinstance(before.value, str)
            and isinstance(leaf.value, str)
            and leaf.value != before.value
        ):
            was, now = folded(before.value)[:6], folded(leaf.value)
            is_same = response.calls[before.call].name == response.calls[leaf.call].name
            if is_same and len(was) > 3 and was in texts and now[: max(4, len(now) - 3)] not in texts:
                if state_of(before.value) != state_of(leaf.value):
                    what = f"{leaf.key}: {leaf.value} since"
                    yield Finding("RH12.4", shown(response.output), what, leaf.path, leaf.call)
                    return


def _replaces(new: Quantity | Moment, old: Quantity | Moment, response: Response) -> bool:
    """Whether a value of a later call stands for the same as one of an earlier call, or as one asked for."""
    if new.key != old.key or (
        isinstance(new, Quantity) and isinstance(old, Quantity) and new.value == old.value
    ):
        return False
    if old.call < 0:
        arguments = response.ledger.records[old.record].leaves
        return any(leaf.made_for == new.call for leaf in arguments) and not set(".[") & {*new.path}
    if new.path != old.path or new.call <= old.call or old.call not in range(len(response.calls)):
        return False
    before, after = response.calls[old.call], response.calls[new.call]
    if before.name == after.name:
        return old.call not in response.last_calls and new.call in response.last_calls
    return acts(after.name) and bool(_names_of(old.call, response) & _names_of(new.call, response))


def _names_of(call: int, response: Response) -> set[str]:
    """What a call was for, by its arguments and by the identifiers at the top of its result."""
    found = {str(value) for value in (response.calls[call].arguments or {}).values()}
    for leaf in response.ledger.leaves:
        if leaf.call == call and not set(".[") & {*leaf.path} and LABEL_KEYS & {*key_words(leaf.key)[-1:]}:
            found.add(str(leaf.value))
    return found


def empty_results(response: Response) -> Iterator[Finding]:
    """RH12.8: nothing was found, and the answer tells of something without any word of negation."""
    if not response.is_sure or not response.sentences:
        return
    found = [call for call in response.last_calls if response.calls[call].result_known]
    lists = [entry for entry in response.ledger.lists if entry.call in response.last_calls]
    empty = next((entry for entry in lists if not entry.length), None)
    if empty is None or any(entry.length for entry in lists) or len(found) != 1:
        return
    is_counted = any(leaf.value == 0 and leaf.key.lower() in TOTAL_KEYS for leaf in response.current)
    if response.starts_with_yes or (
        is_counted and any(not s.is_supported for s in response.numbers.supports)
    ):
        yield Finding(
            "RH12.8", shown(response.output), f"{empty.key or 'the result'} is empty", empty.path, empty.call
        )


def all_for_some(response: Response) -> Iterator[Finding]:
    """RH12.7: what holds for some rows of a group told of all."""
    supports = response.numbers.supports
    for records in response.ledger.groups:
        size = len(records)
        if not 2 <= size <= 60 or any(record.call not in response.last_calls for record in records):
            continue
        values: dict[str, Counter[str]] = defaultdict(Counter)
        leaves: dict[tuple[str, str], Leaf] = {}
        for record in records:
            for leaf in record.leaves:
                if isinstance(leaf.value, (bool, str)) and len(str(leaf.value)) <= _LONGEST_VALUE:
                    values[leaf.key][str(leaf.value)] += 1
                    leaves.setdefault((leaf.key, str(leaf.value)), leaf)
        for one in response.sentences:
            inside = [s.token.value for s in supports if one.start <= s.token.start < one.end]
            is_all = "all" in one.kinds or (size > 2 and float(size) in inside)
            is_all = (
                is_all
                and not one.kinds & {*TROUBLE, "contrast", "approx"}
                and (size == 2 or BOTH.isdisjoint(one.words))
            )
            if not is_all or any(value < size and value == int(value) for value in inside):
                continue
            hits = [
                (key, value) for key, spread in values.items() if 1 < len(spread) < size == sum(spread.values())
                for value in spread if _is_said(key, value, one)
            ]  # fmt: skip
            if len(hits) == 1:
                key, value = hits[0]
                others = [other for other in values[key] if other != value]
                if values[key][value] * 2 >= size and not any(
                    _is_said(key, other, response) for other in others
                ):
                    leaf = leaves[key, others[0]]
                    what = f"{key} of {size - values[key][value]} is {shown(others[0])}"
                    yield Finding("RH12.7", shown(one.text), what, leaf.path, leaf.call)
                    return


def _is_said(key: str, value: str, where: Sentence | Response) -> bool:
    low = folded(where.text if isinstance(where, Sentence) else where.output)
    if value in ("True", "False"):
        return value == "True" and len(folded(key)) > 3 and folded(key)[:6] in low
    whole = folded(value)
    is_word = len(whole) > 5 and " " not in value
    return (
        len(whole) > 1
        and not whole.isdigit()
        and (whole in low or (is_word and whole[: max(5, len(whole) - 2)] in low))
    )
