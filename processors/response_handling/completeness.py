"""Rules RH12 and RH13: less came about, or less or more is known, than the answer says.

A part that failed, a first page, a dry run, a value that was replaced since, an empty result, a null, told of
all what holds for some, and a value told as not known.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from processors.response_handling.errors import acts, bare, is_dry
from processors.response_handling.ledger import Leaf, Moment, Quantity, folded
from processors.response_handling.lexicon import lexicon
from processors.response_handling.lexicons import keys, patterns
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers
from processors.response_handling.reading import agree
from processors.response_handling.response import (
    TROUBLE,
    Finding,
    Response,
    Sentence,
    around,
    shown,
    target_of,
    words_of,
)

_ASIDE = re.compile(r"\([^()]{1,200}\)")
_LETTERS = re.compile(r"[a-z]{1,30}|[^\W\d_a-z]{1,30}")
_NAME_BEHIND = re.compile(r"\w{1,30}[\s:,]{1,2}(?:\w{1,5}\s){0,2}([A-ZÀ-Ž]\w{2,30})")
_STEM: Final = 5
_SMALL: Final = 9
_LONGEST_VALUE: Final = 40
_MOST_ROWS: Final = 60
_MOST_RECORDS: Final = 300
_MOST_DENIALS: Final = 4
_CONTENT: Final = 20_000
_OPEN: Final = TROUBLE | {"pending"}
"""Kinds of words by which an answer tells that something is not done, or not yet."""
_DRY_TEXTS: Final = tuple(map(folded, keys.DRY_TEXTS))
_MARK = re.compile(r"\b[A-Z]{4,20}\b|(?<=[=:])\s?[a-z]{4,20}\b")
_PARTICIPLE = re.compile(r"(?:ed|en|et|iert|ing|[ai]d[oa]s?|[aiu]t[oaie]|ée?s?|[ao]n[eoy]|ready|able)$")


def partial_failures(response: Response) -> Iterator[Finding]:
    """RH12.1: a part of the result failed, or its counts are fewer than all, and the answer tells of all."""
    whole = [
        one for one in response.sentences if "all" in one.kinds and not one.kinds & {*TROUBLE, "contrast"}
    ]
    for count in _smaller_counts(response) if whole else ():
        stem = key_words(count.key)[-1][:_STEM]
        about = next((one for one in whole if any(word.startswith(stem) for word in one.words)), None)
        if about is not None and not response.once(Told).has_number(count):
            what = f"{count.key}: {count.value:.10g}"
            yield Finding("RH12.1", shown(about.text), what, count.path, count.call)
            return
    if response.told & TROUBLE or "contrast" in response.told or not response.told & {"done", "all"}:
        return
    counted = [(one.key, float(one.length), one.path, one.call) for one in response.ledger.lists]
    whole_numbers = (one for one in response.ledger.quantities if one.is_whole and one.unit is None)
    counted += [(q.key, q.value, q.path, q.call) for q in whole_numbers if q.value == int(q.value)]
    texts = [leaf for leaf in response.current if "all" in response.told and isinstance(leaf.value, str)]
    for leaf in texts:
        marks = (word.lower() for word in _MARK.findall(str(leaf.value)[:_CONTENT]))
        counted += [(word, 1, leaf.path, leaf.call) for word in marks if word in keys.FAILED]
    said = {value for support in response.once(Numbers).supports for value in support.token.values}
    for key, value, path, call in counted:
        words = {*key_words(key)}
        is_failed = (keys.FAILED_LISTS | keys.FAILED) & words or keys.NEGATING_WORDS & {*key_words(key)[:-1]}
        if call in response.last_calls and is_failed and value >= 1 and value not in said and len(words) < 3:
            yield Finding("RH12.1", shown(response.output), f"{key}: {value:.10g}", path, call)
            return


def failed_rows(response: Response) -> Iterator[Finding]:
    """RH12.1: an action says why it left a row out (`renewed: false`), and only success is told."""
    if response.told & {*_OPEN, "contrast"} or "done" not in response.told:
        return
    for leaf in response.current[:_MOST_RECORDS]:
        if leaf.value is False and "[" in leaf.path and acts(response.calls[leaf.call].name):
            beside = response.ledger.records[leaf.record].leaves[:_MOST_ROWS]
            if any(other.value and keys.REASON_KEYS & {*key_words(other.key)} for other in beside):
                yield Finding("RH12.1", shown(response.output), f"{leaf.key}: false", leaf.path, leaf.call)
                return


def _smaller_counts(response: Response) -> Iterator[Quantity]:
    """Counts of what was done, beside a larger count in their record."""
    for record in response.ledger.records[:_MOST_RECORDS] if response.words.is_spaced else ():
        is_tally = all(number.value == int(number.value) for number in record.numbers)
        if record.call in response.last_calls and len(record.numbers) > 1 and is_tally:
            counts = [number for number in record.numbers[:12] if _is_count(number)]
            most = max((count.value for count in counts), default=0.0)
            for count in counts:
                word = "".join(key_words(count.key)[-1:])
                is_done = len(word) >= _STEM and _PARTICIPLE.search(word) is not None
                if count.value < most and is_done and word not in keys.FAILED_LISTS:
                    yield count


def _is_count(number: Quantity) -> bool:
    is_bare = number.is_whole and number.is_operand and not (number.unit or number.currencies)
    return is_bare and number.value == int(number.value) and not 1900 <= number.value <= 2100


def first_pages(response: Response) -> Iterator[Finding]:
    """RH12.2: there are more rows than were read, and the answer tells of those as if they were all."""
    low, supports = response.output.lower(), response.once(Numbers).supports
    if any(word in low for word in keys.FIRST_PAGE) or keys.FIRST_OF.search(low):
        return
    words, is_asked = words_of(low), "all" in response.words.categories(response.question)
    says_more = any(word.startswith(keys.SAYS_MORE) for word in words)
    says_more |= any(sign in low for sign in keys.SAYS_MORE if not sign.isascii())
    is_all = "all" in response.told or (is_asked and not says_more)
    is_all &= "approx" not in response.kinds and not any(map(_tells_of_some, words))
    said = {value for support in supports for value in support.token.values}
    of_some = {s for s in response.clauses if any(map(_tells_of_some, words_of(low[slice(*s)])))}
    exact = (s.token for s in supports if not s.token.is_approximate)
    counts = {one.value for one in exact if around(response.clauses, one.start) not in of_some}
    plain = (leaf for leaf in response.current if leaf.path.count(".") < 2)
    tops = [leaf for leaf in plain if "[" not in leaf.path or leaf.path.endswith("[0]")]
    for entry in response.ledger.lists:
        is_first = entry.call in response.last_calls and entry.length and entry.path.count(".") < 2
        again = {call.name for call in response.calls[entry.call + 1 :]} if is_first else set()
        for leaf in tops if is_first and response.calls[entry.call].name not in again else ():
            value = leaf.value
            is_more = leaf.key.lower() in keys.MORE_KEYS and value not in (None, False, "", 0)
            is_more |= isinstance(value, int) and value > 1 and leaf.key.lower() in keys.PAGES_KEYS
            is_total = not keys.TOTAL_KEYS.isdisjoint((leaf.key.lower(), *key_words(leaf.key)))
            is_total = is_total and isinstance(value, int) and value > entry.length
            is_told = isinstance(value, int) and not isinstance(value, bool) and value in said
            is_claimed = leaf.call == entry.call and (is_all or entry.length in counts)
            if is_claimed and (is_more or is_total) and not is_told:
                what = f"{leaf.key}: {shown(value)}"
                yield Finding("RH12.2", shown(response.output), what, leaf.path, entry.call)
                return


def _tells_of_some(word: str) -> bool:
    return word.startswith(keys.OF_SOME)


def dry_runs(response: Response) -> Iterator[Finding]:
    """RH12.3: calls or results say that nothing was done yet, and the answer has no word of that.

    Who asks a question gets an answer; who wants something done is told what was done, in whatever words.
    """
    is_asked = response.question.rstrip().endswith(("?", "？")) and "done" not in response.told
    is_claimed = any("done" in one.kinds and one.kinds.isdisjoint(_OPEN) for one in response.sentences)
    is_open = not is_claimed and bool(response.told & _OPEN - {"failure"})
    if is_asked or is_open or len(response.sentences) < len(response.spans):
        return
    is_written = any(text in response.ledger.text for text in _DRY_TEXTS)
    planned = (leaf for leaf in response.ledger.leaves if _is_plan(leaf, is_written=is_written))
    leaf = next((leaf for leaf in planned if max(leaf.call, leaf.made_for) in response.last_calls), None)
    low = response.output.lower() if leaf is not None else ""
    is_told = any(text in low for text in keys.DRY_TEXTS) or patterns.CONDITIONAL.search(low) is not None
    if leaf is not None and not is_told:
        call, what = max(leaf.call, leaf.made_for), f"{leaf.key}: {shown(leaf.value)}"
        yield Finding("RH12.3", shown(response.output), what, leaf.path, call)


def _is_plan(leaf: Leaf, *, is_written: bool) -> bool:
    """Whether a value says that nothing was done: by its key, as a mode, or, if any does, in words."""
    value = leaf.value
    if isinstance(value, str):
        low, is_mode = value[:_CONTENT].lower(), leaf.key.lower() in keys.MODE_KEYS
        is_mode = is_mode and (low in keys.DRY_MODES or is_dry(low[:_LONGEST_VALUE]))
        return is_mode or (is_written and any(text in low for text in keys.DRY_TEXTS))
    is_left = (
        value is False and not set(".[") & {*leaf.path} and not keys.DO_WORDS.isdisjoint(key_words(leaf.key))
    )
    return is_left or (bool(value) and is_dry(leaf.key))


class Told:
    """Which values of the evidence the answer tells: as they stand, in its numbers, dates and times."""

    def __init__(self, response: Response) -> None:
        supports = response.once(Numbers).supports
        self._numbers = {_place(quantity) for support in supports for quantity in support.direct}
        self._moments: dict[tuple[int, int, str], list[Moment]] = {}
        for moment in response.ledger.moments:
            self._moments.setdefault(_place(moment), []).append(moment)
        self._minutes = {token.minutes for token in response.tokens if token.kind == "time"}
        self._days = [day for token in response.tokens for day in token.dates]
        self._text, self._words = folded(response.output), sorted(words_of(response.output))

    def has(self, leaf: Leaf) -> bool:
        """Whether the answer tells a value."""
        text = folded(str(leaf.value))
        moments = self._moments.get(_place(leaf), [])
        if times := {moment.minutes for moment in moments} - {None}:
            return not self._minutes.isdisjoint(times)
        if days := [day for moment in moments for day in moment.dates]:
            return any(agree(day, other) for day in days for other in self._days)
        if _place(leaf) in self._numbers or leaf.value is None or not isinstance(leaf.value, str):
            return _place(leaf) in self._numbers
        stem = text[: max(4, len(text) - 3)] if text.isalpha() else text
        place = bisect_left(self._words, stem)
        near = self._words[place : place + 1]
        return any(word.startswith(stem) for word in near) or (len(text) > 3 and stem in self._text)

    def has_number(self, number: Quantity) -> bool:
        """Whether the answer tells a number of the evidence."""
        return _place(number) in self._numbers

    def is_moment(self, leaf: Leaf) -> bool:
        """Whether a value is a date or a time."""
        return _place(leaf) in self._moments


def _place(value: Leaf | Quantity | Moment) -> tuple[int, int, str]:
    return value.call, value.made_for, value.path


def replaced_values(response: Response) -> Iterator[Finding]:
    """RH12.4: told is what a later call replaced, or was asked for and not given, and not the new value."""
    told, current = response.once(Told), {(leaf.call, leaf.path): leaf for leaf in response.current}
    later = _later(response)
    for old in response.ledger.leaves:
        asked = [] if old.made_for < 0 or set(".[") & {*old.path} else [old.made_for]
        places = later.get(old.call, asked)
        news = [current[call, old.path] for call in places if (call, old.path) in current]
        if not news or old.value in (None, True, False) or not keys.CHANGING.isdisjoint(key_words(old.key)):
            continue
        is_act = old.call >= 0 and acts(response.calls[max(places)].name)
        if is_act and not keys.STATE_KEYS.isdisjoint(key_words(old.key)):
            continue
        for new in news if told.has(old) else ():
            if _is_alike(old, new) and not told.has(new):
                what = f"{new.key} is {shown(new.value)}"
                yield Finding("RH12.4", shown(str(old.value)), what, new.path, new.call)
                return


def _later(response: Response) -> dict[int, list[int]]:
    """The calls whose results replace those of a call: the last for the same, and what was done since."""
    made = [(call, n) for n, call in enumerate(response.calls) if call.failure is None]
    last = {(call.name, target_of(call)): n for call, n in made}
    names: dict[int, set[str]] = defaultdict(set)
    for leaf in response.ledger.leaves:
        if leaf.made_for >= 0 and not set(".[") & {*leaf.path}:
            names[leaf.made_for].add(str(leaf.value))
    actions = [n for call, n in made if acts(call.name)][-_MOST_ROWS:]
    found: dict[int, list[int]] = {}
    for call, n in made:
        again = last[call.name, target_of(call)]
        others = [a for a in actions if a > n and response.calls[a].name != call.name and names[a] & names[n]]
        found[n] = [again] * (again > n) + others
    return found


def _is_alike(old: Leaf, new: Leaf) -> bool:
    """Whether two values differ and are of one kind, as a seat and a seat; what was asked in words is not."""
    one, other = folded(str(old.value)), folded(str(new.value))
    if type(old.value) is not type(new.value) or one in other or other in one:
        return isinstance(old.value, (int, float)) and old.value != new.value
    return old.made_for < 0 or any(map(str.isdigit, one))


def empty_results(response: Response) -> Iterator[Finding]:
    """RH12.8: nothing was found, and the answer tells of something without any word of negation."""
    lists = [entry for entry in response.ledger.lists if entry.call in response.last_calls]
    filled = {entry.call for entry in lists if entry.length}
    written = {leaf.call for leaf in response.current}
    for entry in lists:
        if entry.call in filled or (not entry.path and entry.call in written):
            continue
        stems = tuple(word[:_STEM] for word in key_words(entry.key) if len(word) > 4)
        is_asked = any(word.startswith(stems) for word in response.asked)
        heard = response.sentences if is_asked else []
        about = [one for one in heard if any(word.startswith(stems) for word in one.words)]
        is_told = about and not any(one.kinds & {*TROUBLE, "all", "pending"} for one in about)
        is_lone = not response.told & TROUBLE and entry.call == max(response.last_calls)
        is_counted = is_lone and any(
            leaf.value == 0 and leaf.key.lower() in keys.TOTAL_KEYS and leaf.call == entry.call
            for leaf in response.current
        )
        is_claimed = response.starts_with_yes and len(response.last_calls) == 1
        is_new = is_counted and any(not s.direct for s in response.once(Numbers).supports)
        if is_told or (is_lone and (is_claimed or is_new)):
            what = f"{entry.key or 'the result'} is empty"
            yield Finding("RH12.8", shown(response.output), what, entry.path, entry.call)
            return


def null_values(response: Response) -> Iterator[Finding]:
    """RH12.5: beside the word of a member or of a row that is null something that no evidence has.

    That is a number, a time, or a name behind that word.
    """
    nulls = [leaf for leaf in response.current if leaf.value is None][:_MOST_ROWS]
    if not nulls:
        return
    made = {
        s.token.start
        for s in response.once(Numbers).supports
        if s.direct or (s.how and s.token.value > _SMALL)
    }
    new = [t for t in response.tokens if t.kind == "number" and t.start not in made]
    said = [(match[0], match.start()) for match in _LETTERS.finditer(bare(response.output))]
    for leaf in nulls:
        words = [bare(word)[:6] for word in key_words(leaf.key) if len(word) > 2]
        words = [word for word in words if word not in keys.VALUE_KEYS]
        places = [start for word, start in said if words and word.startswith(tuple(words))]
        record = response.ledger.records[leaf.record]
        for start in places[:_MOST_ROWS]:
            one = next((one for one in response.sentences if one.start <= start < one.end), None)
            if (
                one is None
                or one.kinds & _OPEN
                or ("[" in leaf.path and not response.names(record, one.text))
            ):
                continue
            name = _NAME_BEHIND.match(response.output, start) if response.words.language != "de" else None
            is_name = name is not None and folded(name[1]) not in response.ledger.text
            if is_name or any(-4 < t.start - start < 30 and t.start < one.end for t in new):
                yield Finding("RH12.5", shown(one.text), f"{leaf.key} is null", leaf.path, leaf.call)
                return


def all_for_some(response: Response) -> Iterator[Finding]:
    """RH12.7: what holds for some rows of a group told of all."""
    for records in response.ledger.groups:
        size = len(records)
        if size > _MOST_ROWS or any(record.call not in response.last_calls for record in records):
            continue
        values: dict[str, Counter[str]] = defaultdict(Counter)
        for leaf in (leaf for record in records for leaf in record.leaves):
            if isinstance(leaf.value, (bool, str)) and len(str(leaf.value)) <= _LONGEST_VALUE:
                values[leaf.key][str(leaf.value)] += 1
        mixed = [(key, spread) for key, spread in values.items() if 1 < len(spread) < size == spread.total()]
        for one in response.sentences if mixed else ():
            inside = {s.token.value for s in response.once(Numbers).within(one.start, one.end)}
            is_all = "all" in one.kinds and not one.kinds & {*TROUBLE, "contrast", "approx"}
            is_both = size != 2 and any(
                word in one.words or (not word.isascii() and word in one.text) for word in keys.BOTH
            )
            if not is_all or is_both or any(value < size and value == int(value) for value in inside):
                continue
            hits = [(k, v, spread) for k, spread in mixed for v in spread if _is_said(k, v, one.text)]
            key, value, spread = hits[0] if len(hits) == 1 else ("", "", Counter[str]())
            others = [other for other in spread if other != value]
            if spread[value] * 2 >= size and not any(_is_said(key, o, response.output) for o in others):
                what = f"{key} of {size - spread[value]} is {shown(others[0])}"
                yield Finding("RH12.7", shown(one.text), what, records[0].path, records[0].call)
                return


def _is_said(key: str, value: str, text: str) -> bool:
    low = folded(text)
    if value in ("True", "False"):
        return value == "True" and len(folded(key)) > 3 and folded(key)[:6] in low
    whole = folded(value)
    start = whole[: max(5, len(whole) - 2)] if len(whole) > 5 and " " not in value else whole
    return len(whole) > 1 and not whole.isdigit() and start in low


def ignored_results(response: Response) -> Iterator[Finding]:
    """RH8: a result of which the answer tells no value and no word, and of which nothing can be reckoned."""
    told, supports = response.once(Told), response.once(Numbers).supports
    if "negation" in response.kinds or any(support.how or not support.is_supported for support in supports):
        return
    for position in sorted(response.last_calls):
        leaves = [leaf for leaf in response.current if leaf.call == position]
        telling = [leaf for leaf in leaves if leaf.value not in (None, "", True, False)]
        telling = [
            one for one in telling if not isinstance(one.value, str) or _LETTERS.search(one.value.lower())
        ]
        numbers = [leaf for leaf in telling if not isinstance(leaf.value, str)]
        is_open = len(telling) > _MOST_RECORDS or bool(numbers[1:] and supports)
        is_open |= acts(response.calls[position].name)
        is_open |= any(isinstance(leaf.value, bool) or told.is_moment(leaf) for leaf in leaves)
        is_open |= any(not keys.STATE_KEYS.isdisjoint(key_words(leaf.key)[-1:]) for leaf in leaves)
        if telling and not is_open and not any(told.has(leaf) for leaf in telling):
            arguments = " ".join(shown(call.arguments) for call in response.calls if call.arguments)
            said = _stems(f"{response.output} {arguments}") - _stems(response.user_text)
            texts = [str(leaf.value) for leaf in telling]
            stems = {stem for text in texts for stem in _stems(text) if len(stem) > 2}
            pairs = set[str]().union(*map(_pairs, texts)) if not response.words.is_spaced else set[str]()
            if not _meet(said, stems | pairs):
                what = (
                    f"nothing of {response.calls[position].name}: {telling[0].key} {shown(telling[0].value)}"
                )
                yield Finding("RH8", shown(response.output), what, telling[0].path, position)


def denied_results(response: Response) -> Iterator[Finding]:
    """RH13: told as not known, though a result has a value under that name, a row or a text about it."""
    denials = [one for one in response.sentences if _is_denial(one, response)][:_MOST_DENIALS]
    told, asked = response.once(Told), _topics(response.question, response) if denials else set()
    for one in denials:
        own = _topics(one.text, response)
        both = own & asked if asked else own
        for leaf in response.current if own else ():
            names, value = _stems(" ".join(key_words(leaf.key))), leaf.value
            above = names | _stems(leaf.path.rpartition(".")[0].rpartition(".")[2])
            wanted = []
            if names and _meet(both, above):
                wanted = [leaf]
            elif isinstance(value, str) and _meet(both, _stems(value[:2000])):
                row = [one for one in response.ledger.records[leaf.record].leaves if one is not leaf]
                wanted = [leaf] if len(value) > _LONGEST_VALUE else row
            wanted = [other for other in wanted if not _is_nothing(other.value)]
            if wanted and not any(told.has(other) for other in wanted):
                what = f"{wanted[0].key}: {shown(wanted[0].value)}"
                yield Finding("RH13", shown(one.text), what, wanted[0].path, leaf.call)
                return


def _is_denial(one: Sentence, response: Response) -> bool:
    kinds = response.words.said(_ASIDE.sub(" ", one.text)) if "(" in one.text else one.kinds
    if kinds.isdisjoint({"negation", "no", "failure"}):
        return False
    return "absent" in kinds or any(word in one.text.lower() for word in keys.IN_SYSTEM)


def _is_nothing(value: object) -> bool:
    """Whether a value says itself that there is none."""
    if value in (None, False, "", 0) or str(value).lower() in keys.NO_VALUES:
        return True
    is_short = isinstance(value, str) and len(value) <= _LONGEST_VALUE
    return is_short and not lexicon("en").categories(str(value)).isdisjoint({"negation", "no", "absent"})


def _topics(text: str, response: Response) -> set[str]:
    """The beginnings of the words that say what a text is about."""
    if not response.words.is_spaced:
        return _pairs(text) | _stems(text)
    known = response.words.known | lexicon("en").known
    words = (word for word in words_of(text) if len(word) > 2 and word not in known)
    return {bare(word)[:_STEM] for word in words if not response.words.categories(word)}


def _pairs(text: str) -> set[str]:
    return {text[n : n + 2] for n in range(len(text) - 1) if not text[n : n + 2].isascii()}


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in words_of(bare(text))}


def _meet(some: set[str], others: set[str]) -> bool:
    """Whether two stems are alike but for two letters at the end of one."""
    return not (some.isdisjoint(_cut(others)) and others.isdisjoint(_cut(some)))


def _cut(stems: set[str]) -> set[str]:
    least = {stem: 3 if stem.isascii() else 1 for stem in stems}
    return {stem[:n] for stem in stems for n in range(max(least[stem], len(stem) - 2), len(stem) + 1)}
