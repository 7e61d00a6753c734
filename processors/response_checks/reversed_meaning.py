"""Check RH9: an answer that says the opposite of what a tool returned."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from processors.response_checks.agent_response import AgentResponse
from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult, applied, not_applicable, violation
from processors.response_checks.settings import CheckSettings
from processors.texts.english import Acknowledgement
from processors.texts.folded_text import key_words
from processors.texts.state_words import (
    BAD_STATES,
    FALLING_WORDS,
    GOOD_FLAGS,
    RISING_WORDS,
    STATE_FAMILIES,
    state_stem,
)
from processors.texts.word_list import words

FALSE_SUCCESS = "RH9.a"
REVERSED_STATE = "RH9.b"
REVERSED_FLAG = "RH9.c"
REVERSED_TREND = "RH9.d"

_PARTICIPLE = r"(?:\w{2,}ed|sent|done|made|set|put|paid|built|bought|sold|written|given|taken|reset)"
_ACTION = (
    "sent|updated|deleted|removed|created|added|booked|cancel(?:l?)ed|scheduled|rescheduled|transferred|refunded|"
    "uploaded|saved|changed|moved|placed|ordered|paid|submitted|posted|published|deployed|restarted|reset|set|"
    "installed|invited|shared|approved|closed|merged|renamed|reserved|registered|enabled|disabled|activated|turned|"
    "switched|started|stopped|fixed|resolved|completed|finished|processed|applied|issued|emailed|messaged|notified|"
    "forwarded|subscribed|unsubscribed|bought|purchased|confirmed|assigned|archived|recorded|made"
)
_SUCCESS = re.compile(
    r"\b(?:success\w*|completed?|done|all set|good news|great news|(?:went|gone) through"
    rf"|(?:has|have|is|are|was|were)(?: been| now| being)+ (?:\w+ly )?{_PARTICIPLE}"
    rf"|I(?: have|['\u2019]ve)?(?: just| now| already)? (?:{_ACTION}))\b(?! (?:no|none|nothing|nobody)\b)",
    re.IGNORECASE,
)
_UNSUCCESSFUL = re.compile(r"\b(?:unsuccess\w*|incomplete|not \w+|n['\u2019]t \w+)\b", re.IGNORECASE)
_STATE_KEYS = frozenset({"status", "state", "health", "outcome"})
_TREND_KEYS = frozenset({"change", "delta", "diff", "difference", "growth", "return", "returns"})
_QUESTION_STOP = words("is has have was are can may the been and for not")
_YES = re.compile(r"\s*(?:yes|yep|yeah)\b", re.IGNORECASE)
_NO = re.compile(r"\s*(?:no|nope)\b", re.IGNORECASE)
_MINUS = re.compile(r"(?<!\w)[-\u2212]\s?[$\u20ac\u00a3]?\d")
_SHORTEST_FLAG_WORD = 4


def false_success(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """RH9.a: the last call failed, and the answer claims success without a word of trouble."""
    response = facts.response
    output = facts.output
    if not facts.is_english:
        return not_applicable(FALSE_SUCCESS)
    failure = response.calls[-1].failure if response.calls else None
    if failure is None:
        return applied(FALSE_SUCCESS)
    claim = _SUCCESS.search(_UNSUCCESSFUL.sub(" ", output))
    if claim is None or Acknowledgement(settings.acknowledgements).found_in(output):
        return applied(FALSE_SUCCESS)
    last = len(response.calls) - 1
    return applied(FALSE_SUCCESS, [violation(FALSE_SUCCESS, last, f'"{claim[0]}" after: {failure.summary}')])


def reversed_state(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """RH9.b: a bad state told with good words only, or a state told as another of its kind."""
    return _if_english(facts, REVERSED_STATE, _reversed_states)


def reversed_flag(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """RH9.c: what a flag denies is told as true, or the reverse."""
    return _if_english(facts, REVERSED_FLAG, _reversed_flags)


def reversed_trend(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """RH9.d: a fall told as a rise, or the reverse."""
    return _if_english(facts, REVERSED_TREND, _reversed_trends)


def _if_english(
    facts: AnswerFacts, check: str, find: Callable[[AnswerFacts], Iterable[tuple[int, str]]]
) -> CheckResult:
    if not facts.is_english:
        return not_applicable(check)
    return applied(check, [violation(check, call, text) for call, text in find(facts)])


def _reversed_states(facts: AnswerFacts) -> Iterable[tuple[int, str]]:
    for path, call, values in _values_by_path(facts.response, str):
        words = key_words(path[-1]) if path else []
        if not words or words[-1] not in _STATE_KEYS:
            continue
        states = {str(value).strip().lower().replace("_", " ").replace("-", " ") for value in values}
        if any(len(state) > 40 for state in states):
            continue
        shown = ", ".join(sorted(states))
        stems = facts.stems
        spaced = facts.output.lower().replace("-", " ")
        told = any(state in spaced for state in states) or any(
            state_stem(word) in stems for state in states for word in state.split()
        )
        if told or facts.is_negated:
            continue
        if states <= BAD_STATES and facts.has_good_words and not facts.has_bad_words:
            yield call, f"{path[-1]}: {shown}, told with good words"
        elif len(states) == 1:
            (state,) = states
            for family in STATE_FAMILIES:
                if state_stem(state) in family and not family[state_stem(state)].isdisjoint(stems):
                    other = ", ".join(sorted(family[state_stem(state)] & stems))
                    yield call, f"{path[-1]}: {shown}, told as: {other}"
                    break


def _reversed_flags(facts: AnswerFacts) -> Iterable[tuple[int, str]]:
    response, output = facts.response, facts.output
    flags = list(_values_by_path(response, bool))
    asked = set(map(state_stem, key_words(response.input or ""))) if len(flags) == 1 else set()
    for path, call, values in flags:
        if not path or len(values) != 1:
            continue
        (value,) = values
        words = [word for word in key_words(path[-1]) if word not in _QUESTION_STOP]
        named = {state_stem(word) for word in words if len(word) >= _SHORTEST_FLAG_WORD}
        is_asked = not named.isdisjoint(asked)
        if value is False:
            if facts.is_negated or facts.has_bad_words:
                continue
            is_good = not GOOD_FLAGS.isdisjoint(words) or " ".join(words) in GOOD_FLAGS
            if (
                (is_good and facts.has_good_words)
                or (named and named <= facts.stems)
                or (is_asked and _YES.match(output))
            ):
                yield call, f"{path[-1]}: false, told as true"
        elif is_asked and _NO.match(output) and not _is_negative(words):
            yield call, f"{path[-1]}: true, told as false"


def _is_negative(words: Sequence[str]) -> bool:
    return any(word in ("not", "no") or word.startswith(("un", "in", "dis", "non")) for word in words)


def _reversed_trends(facts: AnswerFacts) -> Iterable[tuple[int, str]]:
    response, output = facts.response, facts.output
    if not any(not _TREND_KEYS.isdisjoint(key_words(key)) for key in response.keys):
        return
    rises = RISING_WORDS.search(output) is not None
    falls = FALLING_WORDS.search(output) is not None
    if rises == falls or facts.is_negated or _MINUS.search(output):
        return
    signs: dict[bool, tuple[int, str]] = {}
    for leaf in response.result_leaves():
        value = leaf.value
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value == 0:
            continue
        if not _TREND_KEYS.isdisjoint(key_words(leaf.key)):
            signs.setdefault(value > 0, (leaf.call, f"{leaf.key}: {value:g}"))
    if len(signs) == 1:
        ((is_rise, (call, text)),) = signs.items()
        if is_rise != rises:
            yield call, f"{text}, told as {'a rise' if rises else 'a fall'}"


def _values_by_path(
    response: AgentResponse, kind: type
) -> Iterable[tuple[tuple[str, ...], int, "set[str | int | float | bool]"]]:
    """For each path in the results its distinct values of one type, and the first call that has it."""
    values: dict[tuple[str, ...], set[str | int | float | bool]] = defaultdict(set)
    calls: dict[tuple[str, ...], int] = {}
    for value, _, path, call, _ in response.leaves:
        if call >= 0 and type(value) is kind and response.calls[call].failure is None:
            values[path].add(value)
            calls.setdefault(path, call)
    return [(path, calls[path], found) for path, found in values.items()]
