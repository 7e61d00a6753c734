"""Rules RH9.b to RH9.e: what results say of states, flags and trends, told the other way round.

A state counts as it stands after the last call of its tool and target. Words tell something in the sentence
in which they stand; questions to the user and set phrases ("no further action") tell nothing.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations
from typing import Final

from processors.response_handling.errors import acts, is_dry
from processors.response_handling.ledger import Leaf, Quantity, folded
from processors.response_handling.lexicon import lexicon
from processors.response_handling.lexicons import keys
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.numbers import Numbers
from processors.response_handling.reading import Token
from processors.response_handling.response import TROUBLE, Finding, Response, Sentence, shown, words_of

_MOST_LEAVES: Final = 400
_LONGEST_STATE: Final = 40
_STEM: Final = 5
_STATES: Final = keys.FAILED | keys.PENDING | keys.GOOD_STATES
_OF_TIMES: Final = keys.PREVIOUS | keys.PERIODS | keys.PRESENT
_CLAIM: Final = frozenset({"done", "yes", "all"})
_MOST_SERIES: Final = 24
_WORD = re.compile(r"[^\W\d_]{1,40}(?:['’][^\W\d_]{1,4})?")
_SIGNS = re.compile(r"(?:(?![不没未无否])[\u4e00-\u9fff\u30a1-\u30fc]){2,40}")
_CLAUSE_MARK = re.compile(r"[。、，,；;：:\n]")
_DIGITS = re.compile(r"\d{1,20}")
_FEWEST_PAIRS: Final = 4
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
    """The values that are states, by their key or by their words, with their text and kind."""
    last = {leaf.path: leaf.call for leaf in response.current if acts(response.calls[leaf.call].name)}
    for leaf in response.current[:_MOST_LEAVES]:
        is_short = isinstance(leaf.value, str) and len(leaf.value) < _LONGEST_STATE
        if isinstance(leaf.value, str) and is_short and last.get(leaf.path, -1) <= leaf.call:
            words = {*key_words(leaf.value)}
            is_state = not keys.STATE_KEYS.isdisjoint(key_words(leaf.key)[-1:])
            if is_state or (words and not keys.VAGUE_STATES & words and words <= _STATES):
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
        if (
            kind == "failed"
            and asks_failed
            and response.names(response.ledger.records[leaf.record], response.output)
        ):
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
    """Whether the answer says that something is yet to come, in words that do not also say that it came."""
    for one in response.sentences:
        if "pending" in one.kinds:
            kinds = [response.words.categories(word) for word in one.words] if "done" in one.kinds else []
            if not kinds or any("pending" in own and "done" not in own for own in kinds):
                return True
    return False


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
        if other in said and word not in said and other not in values:
            place = response.output.lower().find(other)
            before = response.words.categories(response.output[max(0, place - 24) : place])
            if not before & {"negation", "no"}:
                leaf = values[word][0]
                yield Finding("RH9.b", other, f"{leaf.key}: {word}", leaf.path, leaf.call)
                return


def reversed_flags(response: Response) -> Iterator[Finding]:
    """RH9.c: a false flag, a count of nothing or a moment that never was, told as if it were so."""
    is_clean = response.told.isdisjoint(TROUBLE)
    claimed = any(
        one.kinds & {"done", "yes"} and one.kinds.isdisjoint(TROUBLE) for one in response.sentences[:1]
    )
    if not is_clean and (not claimed or response.told & {"unable", "failure"}):
        return
    leaves = [leaf for leaf in response.current[:_MOST_LEAVES] if not is_dry(leaf.key)]
    sizes, flags = (
        Counter(leaf.key for leaf in leaves),
        [leaf.value for leaf in leaves if isinstance(leaf.value, bool)],
    )
    true = {word for leaf in leaves if leaf.value is True for word in key_words(leaf.key)}
    told = {word for one in response.sentences for word in one.words}
    said = {word[:_STEM] for word in told}
    asked = said | {word[:_STEM] for word in response.asked} if response.starts_with_yes else said
    told_and_asked = said & {word[:_STEM] for word in response.asked}
    is_done = "done" in response.told and (not _waits(response) or response.starts_with_yes)
    for leaf in leaves:
        words = key_words(leaf.key)
        if sizes[leaf.key] > 1 or leaf.value not in (None, False, 0):
            continue
        is_good = bool(keys.GOOD_FLAGS & {*words}) or _is_done((*words[:1], *words[-1:]), response)
        if keys.BAD_FLAGS & {*words} and not is_good:
            continue
        stems = [word[:_STEM] for word in words if len(word) > 3 and word not in true]
        if leaf.value is False and is_good:
            is_literal = (
                len(words[-1]) > 4
                and words[-1] not in true
                and any(word.startswith(words[-1]) for word in told)
            )
            is_told = (is_done or response.starts_with_yes) and any(stem in asked for stem in stems)
            is_lone = len(flags) == 1 and any(word.startswith(keys.GOOD_STEMS) for word in told)
            is_own = (
                not set(".[") & {*leaf.path}
                and bool(keys.ACTIONS & {*words})
                and acts(response.calls[leaf.call].name)
            )
            is_denied = response.starts_with_yes and True not in flags
            is_hit = is_literal or is_told or is_lone or is_own or is_denied or (is_done and len(words) == 1)
        elif leaf.value is False:
            is_hit = response.starts_with_yes and bool(stems) and said.issuperset(stems)
        else:
            is_moment = leaf.value is None and len(words) > 1 and words[-1] in keys.MOMENT_ENDS
            is_none = leaf.value == 0 and isinstance(leaf.value, int) and len(words) == 1
            is_hit = (is_moment or is_none) and is_good and is_done and stems[:1] != [] and stems[0] in said
            is_hit |= (
                leaf.value is None and response.starts_with_yes and {*stems} <= told_and_asked and stems != []
            )
        if is_hit and (is_clean or (leaf.value is False and is_good and not set(".[") & {*leaf.path})):
            what = f"{leaf.key}: {'null' if leaf.value is None else str(leaf.value).lower()}"
            yield Finding("RH9.c", shown(response.output), what, leaf.path, leaf.call)
            return


def _is_done(words: tuple[str, ...], response: Response) -> bool:
    """Whether the first word of a key says that something is done or holds."""
    languages = (response.words, lexicon("en"))
    return any(
        w.startswith(keys.GOOD_STEMS) or any("done" in one.categories(w) for one in languages) for w in words
    )


def reversed_trends(response: Response) -> Iterator[Finding]:
    """RH9.d: a change told with the other direction than its sign, or than two values have in time."""
    found = response.once(Numbers)
    told = {id(quantity): s.token.start for s in reversed(found.supports) for quantity in s.direct}
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
            first, last = told.get(id(before), len(response.output)), told.get(id(after))
            is_from = response.output[:first].lower().endswith(keys.FROM)
            if last is not None and (last < first or is_from or _moves(one, response)):
                change = abs(after.value - before.value)
                if any(_is_change(s.token, change, before.value) for s in inside if not s.direct):
                    changes.append((after, after.value - before.value))
        for one_end, other_end in pairwise(s for s in inside if s.direct):
            before, after = one_end.direct[0], other_end.direct[0]
            start, end = one_end.token.start, one_end.token.end
            is_from = (
                response.output[:start].lower().endswith(keys.FROM)
                or "から" in response.output[end : end + 4]
            )
            if is_from and _DIGITS.sub("", before.key) == _DIGITS.sub("", after.key):
                changes.append((after, after.value - before.value))
        for larger, gap, smaller in zip(inside, inside[1:], inside[2:], strict=False):
            said = response.words.categories(response.output[gap.token.end : smaller.token.start])
            change, wanted = larger.token.value - smaller.token.value, gap.token.value
            is_gap = wanted > 0 and abs(abs(change) - wanted) <= gap.token.tolerance(wanted)
            if is_gap and larger.direct and smaller.direct and ("up" in said) != ("down" in said):
                changes.append((larger.direct[0], change))
        if changes and all(change * sign < 0 for _, change in changes):
            quantity, change = changes[0]
            what = f"{quantity.key} is {quantity.value:.10g}, a change of {change:.10g}"
            yield Finding("RH9.d", shown(one.text), what, quantity.path, quantity.call)
            return


def reversed_extremes(response: Response) -> Iterator[Finding]:
    """RH9.d: the least told as the most that was asked for, or the most as the least."""
    asked = {sign for sign, words in keys.EXTREMES.items() if words.search(response.question.lower())}
    if len(asked) != 1:
        return
    numbers = response.once(Numbers)
    said = {abs(quantity.value) for support in numbers.supports for quantity in support.direct}
    for one in response.sentences:
        signs = {sign for sign, words in keys.EXTREMES.items() if words.search(one.text.lower())}
        inside = [support.direct for support in numbers.within(one.start, one.end) if support.direct]
        is_asked = signs == asked or (not signs and one is response.sentences[0])
        for records in response.ledger.groups if is_asked and "negation" not in one.kinds else ():
            (sign,), rows = asked, {record.index for record in records}
            found: dict[str, list[float]] = defaultdict(list)
            for quantity in (number for record in records for number in record.numbers if number.is_operand):
                found[quantity.key].append(quantity.value)
            for own in inside:
                quantity, values = own[0], sorted(found.get(own[0].key, ()))
                is_sole = len(found) == 1 or any(
                    word[:_STEM] in response.question.lower() for word in key_words(quantity.key)
                )
                is_all = {each.record for each in own} <= rows and len({each.key for each in own}) == 1
                if is_sole and is_all and len(values) > 2 and values[0] < values[-1]:
                    most, least = (values[-1], values[0]) if sign > 0 else (values[0], values[-1])
                    if quantity.value == least and abs(most) not in said:
                        what = f"{quantity.key} goes to {most:.10g}"
                        yield Finding("RH9.d", shown(one.text), what, quantity.path, quantity.call)
                        return


def _moves(one: Sentence, response: Response) -> bool:
    """Whether a sentence tells of a change by a verb, and does not compare in either direction."""
    bare = keys.COMPARATIVES.sub("", one.text.lower())
    return not response.words.categories(bare).isdisjoint({"up", "down"})


def _is_change(token: Token, change: float, before: float) -> bool:
    is_share = token.unit is not None and token.unit.dimension == "percent"
    wanted = change / abs(before) * 100 if is_share and before else change
    return bool(token.value) and abs(token.value - wanted) <= token.tolerance(token.value)


def _in_time(response: Response) -> list[tuple[Quantity, Quantity]]:
    """Numbers of one thing in two periods, the earlier first: by their keys or what stands beside them."""
    series: dict[object, list[tuple[tuple[int, int], Quantity]]] = defaultdict(list)
    records = response.ledger.records
    for quantity in response.ledger.quantities[:_MOST_LEAVES]:
        if quantity.call not in response.last_calls or not quantity.is_whole:
            continue
        beside = [leaf for leaf in records[quantity.record].leaves if leaf.key != quantity.key][:8]
        parts = [_INDEX.sub("", part) for part in quantity.path.split(".")]
        words = [word for part in parts if not _period(part) for word in key_words(part)]
        is_before = not keys.PREVIOUS.isdisjoint(words)
        when = [*map(_period, parts), *(_period(str(leaf.value), leaf.key) for leaf in beside)]
        period = (0, 0) if is_before else next(filter(None, when), (9999, 0))
        rows = [leaf.value for leaf in beside if isinstance(leaf.value, str) and "[" in leaf.path]
        others = {folded(value) for value in rows if not _period(value)}
        what = tuple(word for word in words if word not in _OF_TIMES)
        series[response.calls[quantity.call].name, what, frozenset(others)].append((period, quantity))
    return [
        (before, after)
        for entries in series.values()
        for (earlier, before), (later, after) in permutations(entries[:_MOST_SERIES], 2)
        if earlier < later
    ][:_MOST_LEAVES]


def _period(text: str, key: str = "") -> tuple[int, int] | None:
    """The year and the number of a month, quarter or week that a text names, if it names nothing else."""
    match = _PERIOD.fullmatch(text)
    if match is None or not (match[1] or match[2] or keys.PERIODS & {*key_words(key)}):
        return None
    return int(match[1] or 0), int(match[3] or 0)


def unheard_negations(response: Response) -> Iterator[Finding]:
    """RH9.e: what a text of a result forbids or denies, told in a sentence without any negation."""
    plain = [one for one in response.sentences if not one.kinds & {*TROUBLE, "contrast"}]
    told = [{word[:_STEM] for word in one.words if len(word) > 3} for one in plain]
    languages = {response.words, lexicon("en")}
    if not response.words.is_spaced:
        yield from _unheard_in_signs(response, plain)
        return
    for leaf in response.current[:_MOST_LEAVES] if plain else ():
        words = _WORD.findall(leaf.value[:4000].lower()) if isinstance(leaf.value, str) else []
        for place, word in enumerate(words if len(words) > 2 else ()):
            if not any("negation" in language.categories(word) for language in languages):
                continue
            after = [other[:_STEM] for other in words[place + 1 : place + 7] if len(other) > 3][:3]
            sentence = next(
                (one for one, said in zip(plain, told, strict=True) if said.issuperset(after)), None
            )
            if sentence is None:
                more = {other[:_STEM] for other in words[place + 1 : place + 13] if len(other) > 3}
                near = ((len(more & said), one) for one, said in zip(plain, told, strict=True))
                sentence = next((one for size, one in near if size >= 3 and size * 5 >= len(more) * 3), None)
            if sentence is not None and len(after) > 1:
                what = f"{leaf.key}: {shown(' '.join(words[place : place + 7]))}"
                yield Finding("RH9.e", shown(sentence.text), what, leaf.path, leaf.call)
                return


def _unheard_in_signs(response: Response, plain: Sequence[Sentence]) -> Iterator[Finding]:
    """The same where no blanks part words: all pairs of signs of a clause but one stand in a sentence."""
    for leaf in response.current[:_MOST_LEAVES] if plain else ():
        for clause in _CLAUSE_MARK.split(leaf.value[:4000]) if isinstance(leaf.value, str) else ():
            pairs = _pairs_of(clause) if "negation" in response.words.categories(clause) else set[str]()
            for one in plain if len(pairs) >= _FEWEST_PAIRS else ():
                if len(pairs - _pairs_of(one.text)) < 2:
                    yield Finding(
                        "RH9.e", shown(one.text), f"{leaf.key}: {shown(clause)}", leaf.path, leaf.call
                    )
                    return


def _pairs_of(text: str) -> set[str]:
    """The pairs of signs that carry meaning, without negations."""
    return {run[n : n + 2] for run in _SIGNS.findall(text) for n in range(len(run) - 1)}
