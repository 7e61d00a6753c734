"""Rules RH9.b to RH9.e: what results say of states, flags and trends, told the other way round.

A state counts as it stands after the last call of its tool and target. Words tell something in the sentence
in which they stand; questions to the user and set phrases ("no further action") tell nothing.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise, permutations
from typing import Final

from processors.response_handling.errors import acts, is_dry
from processors.response_handling.ledger import Leaf, Quantity, folded, unaccented
from processors.response_handling.lexicon import lexicon
from processors.response_handling.lexicons import keys
from processors.response_handling.lexicons.concepts import concepts_of
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers
from processors.response_handling.reading import Token
from processors.response_handling.response import TROUBLE, Finding, Response, shown, words_of

_MOST_LEAVES: Final = 400
_MOST_FLAGS: Final = 60
_LONGEST_STATE: Final = 40
_STEM: Final = 5
_STATES: Final = keys.FAILED | keys.PENDING | keys.GOOD_STATES
_OF_TIMES: Final = keys.PREVIOUS | keys.PERIODS | keys.PRESENT
_CLAIM: Final = frozenset({"done", "yes", "all"})
_MOST_SERIES: Final = 24
_SIGNS = re.compile(r"(?:(?![不没未无否])[\u4e00-\u9fff\u30a1-\u30fc]){2,40}")
_CLAUSE_MARK = re.compile(r"[。、，,；;：:\n()|]|[.!?](?=\s)")
_DIGITS = re.compile(r"\d{1,20}")
_FEWEST_PIECES, _FEWEST_SIGNS = 3, 6
_INDEX = re.compile(r"\[\d{1,6}\]")
_PERIOD = re.compile(r"(?:((?:19|20)\d\d)[-/ ]?)?([QWTKHSMP]W?)?-?(\d{1,2})?(?:-\d\d)?", re.IGNORECASE)


def state_of(value: str, *, is_spaced: bool = True) -> str:
    """The kind of a state: `failed`, `pending`, `good`, or nothing known."""
    words = {*key_words(value)}
    if words & keys.NEGATING_WORDS:
        return "failed"
    for kind, names in (("failed", keys.FAILED), ("pending", keys.PENDING), ("good", keys.GOOD_STATES)):
        if words & names or (not is_spaced and any(name in value for name in names if not name.isascii())):
            return kind
    low = value.lower()
    for kind, stems in (("failed", keys.FAILED_STEMS), ("pending", keys.PENDING_STEMS)):
        if any(
            low.startswith(stem) or (stem in low and not stem.isascii()) or f"_{stem}" in low
            for stem in stems
        ):
            return kind
    return ""


def _state_leaves(response: Response) -> Iterator[tuple[Leaf, str, str]]:
    """The values that are states now, by their key or by their words, with their text and kind."""
    for leaf in response.current[:_MOST_LEAVES]:
        key = key_words(leaf.key)
        is_short = isinstance(leaf.value, str) and len(leaf.value) < _LONGEST_STATE
        if not isinstance(leaf.value, str) or not is_short or keys.PREVIOUS & {*key}:
            continue
        words, low = {*key_words(leaf.value)}, leaf.value.lower()
        is_known = bool(words) and words <= _STATES and not keys.VAGUE_STATES & words
        is_failure = len(words) == 1 and low.isalpha() and low.startswith(keys.FAILED_STEMS)
        if is_known or is_failure or not keys.STATE_KEYS.isdisjoint(key[-1:]):
            yield leaf, leaf.value, state_of(leaf.value, is_spaced=response.words.is_spaced)


def reversed_states(response: Response) -> Iterator[Finding]:
    """RH9.b: a state that is not done told as done, or as its opposite; RH12.1: of some, as if all were."""
    said, low = folded(response.output), response.output.lower()
    states = [*_state_leaves(response)]
    asks_failed = "failure" in response.words.categories(response.question)
    sizes = Counter(leaf.key for leaf, _, _ in states)
    for leaf, value, kind in states:
        is_said = any(
            word[: _STEM + 1] in said for word in (folded(value), *key_words(value)) if len(word) > 3
        )
        is_said |= all(any(stem in text for stem in keys.CANCELLED) for text in (value.lower(), low))
        if kind == "failed" and asks_failed:
            continue  # who asks what failed is told so by its name
        is_vague = value.lower() in keys.VAGUE_STATES
        trouble = TROUBLE if kind in ("failed", "pending") else response.told
        is_made = is_vague and acts(response.calls[leaf.call].name)
        if is_said or response.told & trouble or is_made or (kind == "pending" and _waits(response)):
            continue
        if not trouble or not response.told & (_CLAIM - {"all"} if is_vague and kind != "failed" else _CLAIM):
            continue
        record = response.ledger.records[leaf.record]
        about = [one for one in response.sentences if response.names(record, one.text)]
        is_whole = sizes[leaf.key] == 1 or any(one.kinds & _CLAIM for one in about)
        if is_whole or "all" in response.told:
            what = f"{leaf.key}: {shown(value)}"
            claim = (about or response.sentences)[0].text
            yield Finding("RH9.b" if is_whole else "RH12.1", shown(claim), what, leaf.path, leaf.call)
            return
    yield from _opposites(response)


def _waits(response: Response) -> bool:
    """Whether the answer says that something is yet to come, in words that do not also say that it came.

    What will be since it was done, as it is told, is not waited for.
    """
    return any(
        "pending" in one.kinds
        and "pending" in response.words.categories(keys.FUTURE.sub(" ", one.text.lower()))
        and (
            "done" not in one.kinds
            or any(
                "pending" in own and "done" not in own for own in map(response.words.categories, one.words)
            )
        )
        for one in response.sentences
    )


def _opposites(response: Response) -> Iterator[Finding]:
    """The one state that the results have, told as its opposite and never as it is."""
    values: dict[str, list[Leaf]] = defaultdict(list)
    for leaf in response.current[:_MOST_LEAVES]:
        for word in words_of(leaf.value[:4000]) if isinstance(leaf.value, str) else ():
            values[word].append(leaf)
    pairs = [(one, other) for pair in keys.OPPOSITES for one, other in (pair, pair[::-1]) if one in values]
    pairs = [
        (one, other) for one, other in pairs if len(values[one]) == 1 and len(str(values[one][0].value)) < 16
    ]
    for word in values:
        bare = (word.removeprefix(prefix) for prefix in keys.NEGATING_PREFIXES if word.startswith(prefix))
        pairs += [(word, other) for other in bare if len(other) > _STEM + 1]
    said = frozenset(words_of(response.output))
    for word, other in pairs:
        if (
            other in said
            and word not in said
            and other not in values
            and _is_about(values[word][0], other, response)
        ):
            place = response.output.lower().find(other)
            before = response.words.categories(response.output[max(0, place - 24) : place])
            if not before & {"negation", "no"}:
                leaf = values[word][0]
                yield Finding("RH9.b", other, f"{leaf.key}: {word}", leaf.path, leaf.call)
                return


def _is_about(leaf: Leaf, told: str, response: Response) -> bool:
    """Whether a word may be told of a member; in a list of things by name only beside its name, unnegated."""
    key, record = key_words(leaf.key), response.ledger.records[leaf.record]
    others = [one for one in record.leaves if isinstance(one.value, str) and one.key[:1].isupper()]
    if not leaf.key[:1].isupper() or len(others) < 3:
        return True
    plain = (one for one in response.sentences if told in one.words and "negation" not in one.kinds)
    return any(all(any(word.startswith(part) for word in one.words) for part in key) for one in plain)


def reversed_flags(response: Response) -> Iterator[Finding]:
    """RH9.c: a false flag, a count of nothing or a moment that never was, told as if it were so."""
    is_yes, is_clean = response.starts_with_yes, response.told.isdisjoint(TROUBLE)
    is_claimed = any(one.kinds.isdisjoint(TROUBLE) for one in response.sentences[:1])
    if not is_clean and (not is_claimed or response.told & {"unable", "failure"}):
        return
    leaves = [leaf for leaf in response.current[:_MOST_LEAVES] if not is_dry(leaf.key)]
    sizes = Counter(leaf.key for leaf in leaves)
    true = {word for leaf in leaves if leaf.value is True for word in key_words(leaf.key)}
    affirmed = [one for one in response.sentences if "negation" not in response.words.categories(one.text)]
    heard = response.sentences if is_clean else affirmed
    told = {word for one in heard for word in one.words}
    is_good_told = any(word.startswith(keys.GOOD_STEMS) for word in told)
    is_lone = is_clean and is_good_told and sum(isinstance(leaf.value, bool) for leaf in leaves) == 1
    said = {word[:_STEM] for word in told}
    asked = {word[:_STEM] for word in response.asked}
    plain = {word[:_STEM] for one in affirmed for word in one.words}
    is_done = any("done" in one.kinds for one in heard) and (is_yes or not _waits(response))
    for leaf in leaves:
        if sizes[leaf.key] > 1 or leaf.value not in (None, False, 0):
            continue
        words, is_top = key_words(leaf.key), not set(".[") & {*leaf.path}
        is_good = bool(keys.GOOD_FLAGS & {*words}) or _is_done((*words[:1], *words[-1:]), response)
        if keys.BAD_FLAGS & {*words} and not is_good:
            continue
        stems = {word[:_STEM] for word in words if len(word) > 3 and word not in true}
        if leaf.value is False and is_good:
            is_said = words[-1][:_STEM] in said and words[-1] not in true
            is_told = (is_done or is_yes) and not stems.isdisjoint(said | asked if is_yes else said)
            is_own = is_top and acts(response.calls[leaf.call].name) and bool(keys.ACTIONS & {*words})
            is_hit = is_said or is_told or is_own or is_lone
            is_hit |= is_done and len(words) == 1
        elif leaf.value is False or (leaf.value is None and is_yes and stems <= asked):
            is_hit = is_yes and bool(stems) and stems <= plain
        else:
            is_moment = leaf.value is None and len(words) > 1 and words[-1] in keys.MOMENT_ENDS
            is_none = leaf.value == 0 and isinstance(leaf.value, int) and len(words) == 1
            is_hit = (is_moment or is_none) and is_good and is_done and words[0][:_STEM] in said & stems
        if is_hit and (is_clean or (leaf.value is False and is_good and is_top)):
            what = f"{leaf.key}: {'null' if leaf.value is None else str(leaf.value).lower()}"
            yield Finding("RH9.c", shown(response.output), what, leaf.path, leaf.call)
            return


def undone_counts(response: Response) -> Iterator[Finding]:
    """RH9.c: an action counts nothing that it did (`deleted: 0`, `applied: []`), told as done."""
    done = [one for one in response.sentences if "done" in one.kinds][:1]
    if not done or not done[0].kinds.isdisjoint({*TROUBLE, "pending", "contrast"}):
        return
    counts = [
        (leaf.call, leaf.key, leaf.value, leaf.path) for leaf in response.current[:_MOST_LEAVES]
        if type(leaf.value) is int and not set(".[") & {*leaf.path}
    ]  # fmt: skip
    lists = [entry for entry in response.ledger.lists[:_MOST_LEAVES] if entry.call in response.last_calls]
    counts += [(entry.call, entry.key, entry.length, entry.path) for entry in lists if "." not in entry.path]
    made = [
        count for count in counts if acts(response.calls[count[0]].name) and _counts_done(count[1], response)
    ]
    for call, key, _, path in made:
        if not any(size for other, _, size, _ in made if other == call):
            yield Finding("RH9.c", shown(done[0].text), f"{key}: 0", path, call)
            return


def _counts_done(key: str, response: Response) -> bool:
    """Whether a key counts what was done: its first word says so, and no more than one word goes with it."""
    words = key_words(key)
    return 0 < len(words) < 3 and _is_done(words[:1], response) and words[0] not in keys.FAILED_LISTS


def _is_done(words: tuple[str, ...], response: Response) -> bool:
    """Whether the first word of a key says that something is done or holds."""
    languages = (response.words, lexicon("en"))
    return any(
        w.startswith(keys.GOOD_STEMS) or any("done" in one.categories(w) for one in languages) for w in words
    )


def undone_actions(response: Response) -> Iterator[Finding]:
    """RH9.c: an action says by its own flag that it was not done, and the answer says that it was."""
    for leaf in response.current if "unable" not in response.told else ():
        words, call = key_words(leaf.key), response.calls[leaf.call]
        if leaf.value is not False or len(words) != 1 or set(".[") & {*leaf.path} or not acts(call.name):
            continue
        done = unaccented(words[0])
        is_own = any(unaccented(word)[:_STEM] == done[:_STEM] for word in key_words(call.name))
        for start, end in response.clauses if is_own and len(done) > _STEM else ():
            clause = response.output[start:end]
            is_said = any(unaccented(word).startswith(done[:-1]) for word in words_of(clause))
            if is_said and response.words.categories(clause).isdisjoint({"negation", "no", "pending"}):
                yield Finding("RH9.c", shown(clause), f"{leaf.key}: false", leaf.path, leaf.call)
                return


def denied_things(response: Response) -> Iterator[Finding]:
    """RH9.c: a yes to a question about a thing that a flag denies, by the words for it in any language.

    No other flag says that there is such a thing, and no sentence of the answer denies it.
    """
    first = response.sentences[0].kinds if response.sentences else TROUBLE
    is_turned = keys.FORBIDDEN.search(response.question.lower()) is not None
    if not response.starts_with_yes or is_turned or first & {*TROUBLE, "contrast"}:
        return
    flags = [(leaf, key_words(leaf.key)) for leaf in response.current if isinstance(leaf.value, bool)][
        :_MOST_FLAGS
    ]
    denied = [word for one in response.sentences if one.kinds & {*TROUBLE, "contrast"} for word in one.words]
    true = [word for leaf, words in flags if leaf.value for word in words]
    things = concepts_of(response.asked) - concepts_of([*denied, *true]) if flags else set[int]()
    for leaf, words in flags if things else ():
        is_plain = not leaf.value and not is_dry(leaf.key) and keys.OPEN_FLAGS.isdisjoint(words)
        if is_plain and not things.isdisjoint(concepts_of((*words, "".join(words)))):
            yield Finding(
                "RH9.c", shown(response.sentences[0].text), f"{leaf.key}: false", leaf.path, leaf.call
            )
            return


def reversed_trends(response: Response) -> Iterator[Finding]:
    """RH9.d: a change told with the other direction than its sign, or than two values have in time."""
    found = response.once(Numbers)
    told = {id(quantity) for support in found.supports for quantity in support.direct}
    for one in response.sentences:
        if ("up" in one.kinds) == ("down" in one.kinds) or "negation" in one.kinds:
            continue
        sign, inside = (1 if "up" in one.kinds else -1), found.within(one.start, one.end)
        changes = [
            (quantity, quantity.value)
            for support in inside
            for quantity in (support.direct if not support.token.is_negative else ())
            if not keys.CHANGE_KEYS.isdisjoint(key_words(quantity.key)) and quantity.call >= 0
        ]
        for before, after in response.once(_in_time) if inside else ():
            change = after.value - before.value
            if id(after) in told and any(
                _is_change(s.token, change, before.value) for s in inside if not s.direct
            ):
                changes.append((after, change))
        for former, latter in pairwise(support for support in inside if support.direct):
            before, after, text = former.direct[0], latter.direct[0], response.output
            behind = text[former.token.end : former.token.end + 4]
            is_from = text[: former.token.start].lower().endswith(keys.FROM) or "から" in behind
            if is_from and _DIGITS.sub("", before.key) == _DIGITS.sub("", after.key):
                changes.append((after, after.value - before.value))
        if changes and all(change * sign < 0 for _, change in changes):
            quantity, change = changes[0]
            what = f"{quantity.key} is {quantity.value:.10g}, a change of {change:.10g}"
            yield Finding("RH9.d", shown(one.text), what, quantity.path, quantity.call)
            return


def _is_change(token: Token, change: float, before: float) -> bool:
    """Whether a number is a change, in the measure of the values or as a share of the first."""
    is_share = token.unit is not None and token.unit.dimension == "percent" and before
    wanted = abs(change / before * 100 if is_share else change)
    return bool(token.value) and abs(token.value - wanted) <= token.tolerance(token.value)


def _in_time(response: Response) -> list[tuple[Quantity, Quantity]]:
    """Numbers of one thing in two periods, the earlier first: by their keys or what stands beside them."""
    series: dict[object, list[tuple[tuple[int, int], Quantity]]] = defaultdict(list)
    records = response.ledger.records
    for quantity in response.ledger.quantities[:_MOST_LEAVES]:
        if quantity.call not in response.last_calls:
            continue
        beside = [leaf for leaf in records[quantity.record].leaves if leaf.key != quantity.key][:8]
        parts = [_INDEX.sub("", part) for part in quantity.path.split(".")]
        words = [word for part in parts if not _period(part) for word in key_words(part)]
        is_before = not keys.PREVIOUS.isdisjoint(words)
        when = [*map(_period, parts), *(_period_of(leaf, response) for leaf in beside)]
        period = (0, 0) if is_before else next(filter(None, when), (9999, 0))
        rows = [leaf for leaf in beside if isinstance(leaf.value, str) and "[" in leaf.path]
        others = {folded(str(leaf.value)) for leaf in rows if not _period_of(leaf, response)}
        what = tuple(word for word in words if word not in _OF_TIMES)
        series[response.calls[quantity.call].name, what, frozenset(others)].append((period, quantity))
    return [
        (before, after)
        for entries in series.values()
        for (earlier, before), (later, after) in permutations(entries[:_MOST_SERIES], 2)
        if earlier < later
    ][:_MOST_LEAVES]


def _period_of(leaf: Leaf, response: Response) -> tuple[int, int] | None:
    """The same of a value, which may be the name of a month."""
    text = str(leaf.value)
    month = response.words.months.get(text.lower()) if keys.PERIODS & {*key_words(leaf.key)} else None
    return _period(text, leaf.key) if month is None else (0, month)


def _period(text: str, key: str = "") -> tuple[int, int] | None:
    """The year and the number of a month, quarter or week that a text names, if it names nothing else."""
    match = _PERIOD.fullmatch(text)
    if match is None or not (match[1] or match[2] or keys.PERIODS & {*key_words(key)}):
        return None
    return int(match[1] or 0), int(match[3] or 0)


def unheard_negations(response: Response) -> Iterator[Finding]:
    """RH9.e: what a text of a result forbids or denies, told in a sentence without any negation.

    Most of the words of its clause stand in that sentence, and it makes no exception.
    """
    plain = [one for one in response.sentences if not one.kinds & {*TROUBLE, "contrast"}]
    told = [(one, _pieces(one.text, response)) for one in plain]
    for leaf in response.current[:_MOST_LEAVES] if plain else ():
        text = leaf.value[:4000] if isinstance(leaf.value, str) and len(leaf.value) > _FEWEST_SIGNS else ""
        for clause in _CLAUSE_MARK.split(text):
            if len(clause) < _FEWEST_SIGNS or not _is_negated(clause, response):
                continue
            own = _pieces(clause, response)
            for one, said in told:
                if len(own & said) >= _FEWEST_PIECES and len(own & said) * 5 >= len(own) * 3:
                    what = f"{leaf.key}: {shown(clause)}"
                    yield Finding("RH9.e", shown(one.text), what, leaf.path, leaf.call)
                    return


def _is_negated(clause: str, response: Response) -> bool:
    """Whether a clause has a negation, in the language of the answer or in English, and no exception."""
    languages = (response.words, lexicon("en")) if response.words.is_spaced else (response.words,)
    is_open = any(word in clause.lower() for word in keys.EXCEPTIONS)
    return not is_open and any("negation" in language.categories(clause) for language in languages)


def _pieces(text: str, response: Response) -> set[str]:
    """What carries the meaning of a text: stems of its longer words, or pairs of signs; no negations."""
    if not response.words.is_spaced:
        return {run[n : n + 2] for run in _SIGNS.findall(text) for n in range(len(run) - 1)}
    words = (word for word in words_of(text) if len(word) > 3)
    return {word[:_STEM] for word in words if "negation" not in response.words.categories(word)}
