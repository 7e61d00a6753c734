"""Check RH8: results of which nothing came to the answer or to a later call."""

import re
from collections.abc import Sequence

from processors.model import JsonValue
from processors.response_checks.agent_response import AgentResponse, Leaf
from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult, applied, violation
from processors.response_checks.known_names import NAMES_OF_CODES
from processors.response_checks.settings import CheckSettings
from processors.response_checks.unsupported_date import known_moments
from processors.texts.english import STOP_WORDS
from processors.texts.folded_text import folded, folded_all, key_words
from processors.texts.spelled_numbers import spelled_numbers
from processors.texts.word_list import word_pattern, words

CHECK = "RH8"
_WORD = re.compile(r"[^\W\d_]{4,}")
_STEM = 5
_DIGITS = re.compile(r"\d{1,18}")
_NOT_DIGIT = re.compile(r"\D+")
_FEWEST_DIGITS = 4
_MOST_LOOSE_WORDS = 3
_ELSEWHERE = word_pattern(
    r"""
    check|contact|visit|consult|ask|refer to|open|see|look|log ?in|go to|call|would you like|
    do you want|shall i|should i|let me know|can help|recommend|suggest
    """
)
_YES_OR_NO = re.compile(r"\s*(?:yes|no|yep|nope|yeah)\b", re.IGNORECASE)
_CHOICE = word_pattern(
    r"""
    which|who|whichever|compare\w*|cheap\w*|
    (?:best|most|least|more|less|better|worse|faster|slower|larger|smaller|bigger|higher|lower|older|newer|longer|shorter|earlier|later|nearest|closest)|
    \w{3,}est
    """
)
_ACKNOWLEDGING_WORDS = words(
    """
    ok okay success successful succeeded done complete completed accepted acknowledged created
    updated deleted sent saved queued received true yes 200 201 202 204
    """
)
_ID_WORDS = frozenset({"id", "uuid", "guid", "ref", "reference", "etag", "version", "revision", "cursor"})
_BOOKKEEPING_WORDS = frozenset({"timestamp", "created", "updated", "modified", "at"})


def ignored_results(facts: AnswerFacts, settings: CheckSettings) -> CheckResult:
    """A violation for each result that holds something and was used nowhere.

    A result is used if the answer states one of its numbers, dates, texts or telling words, or if one of
    its values is in the arguments of a later call. Results that only acknowledge hold nothing. Answers that
    begin with yes or no, or state a date or time of the evidence, are not judged. Where the user asks for a
    choice among the results of one tool, using one of them is using all. A result of flags and a few words
    may be told in words that no list relates to it, so it is judged only where the answer sends the user
    elsewhere or asks back.
    """
    response = facts.response
    if _YES_OR_NO.match(facts.output) or any(is_known for _, is_known in known_moments(facts)):
        return applied(CHECK)
    by_call: dict[int, list[Leaf]] = {}
    places: dict[int, list[int]] = {}
    for place, leaf in enumerate(response.leaves):
        if leaf.call >= 0:
            by_call.setdefault(leaf.call, []).append(leaf)
            places.setdefault(leaf.call, []).append(place)
    judged = [
        position
        for position, call in enumerate(response.calls)
        if call.failure is None and call.result_known and _holds_something(by_call.get(position, ()))
    ]
    if not judged:
        return applied(CHECK)
    answer = _Answer(facts)
    last_uses: dict[str, int] | None = None
    unused: list[int] = []
    for position in judged:
        texts = [response.folded_leaves[place] for place in places[position]]
        if not answer.uses(position, by_call[position], texts):
            if last_uses is None:
                last_uses = _last_uses(response)
            if not _is_fed(last_uses, position, by_call[position], texts):
                unused.append(position)
    if unused and _CHOICE.search(response.input or ""):
        used = {response.calls[position].name for position in judged if position not in unused}
        unused = [position for position in unused if response.calls[position].name not in used]
    return applied(
        CHECK,
        [
            violation(CHECK, position, f"nothing of {response.calls[position].name} used")
            for position in unused
        ],
    )


def _holds_something(leaves: Sequence[Leaf]) -> bool:
    """Whether a result says more than that it came: more than flags, ids, zeros and empty texts."""
    for leaf in leaves:
        value = leaf.value
        words = key_words(leaf.key)
        if isinstance(value, bool):
            if words and not _ACKNOWLEDGING_WORDS.issuperset(words):
                return True
        elif (
            value == 0
            or value == ""
            or (words and (words[-1] in _ID_WORDS or _BOOKKEEPING_WORDS.issuperset(words)))
            or (isinstance(value, str) and set(key_words(value)) <= _ACKNOWLEDGING_WORDS)
            or (words in (("status", "code"), ("code",)) and value in (200, 201, 202, 204))
        ):
            continue
        else:
            return True
    return False


class _Answer:
    """What the answer says, in the forms that results are looked up in."""

    def __init__(self, facts: AnswerFacts) -> None:
        self._folded = folded(facts.output)
        self._stems = {word[:_STEM].lower() for word in _WORD.findall(facts.output)}
        self._folded_input = folded(facts.response.input or "")
        self._asked = {word[:_STEM].lower() for word in _WORD.findall(facts.response.input or "")}
        self._numbers = {float(value) for value in spelled_numbers(facts.output)}
        self._numbers.update(float(digits) for digits in _DIGITS.findall(facts.output))
        self._phone_numbers = [digits for _, _, digits in facts.phone_numbers]
        self._digits = _NOT_DIGIT.sub("", facts.output)
        self._sends_elsewhere = _ELSEWHERE.search(facts.output) is not None
        for token in facts.numbers:
            self._numbers.update(reading.magnitude for reading in token.readings)
        self._calls: set[int] = set()
        for _, calls in facts.number_calls:
            self._calls |= calls or set()

    def uses(self, position: int, leaves: list[Leaf], texts: list[str]) -> bool:
        """Whether the answer has anything of a result: of its leaves, whose folded `texts` stand beside."""
        if position in self._calls or any(map(self._states, leaves, texts)):
            return True
        return not self._sends_elsewhere and all(map(_is_loose, leaves))

    def _states(self, leaf: Leaf, text: str) -> bool:
        value = leaf.value
        if isinstance(value, bool):
            return any(word[:_STEM] in self._stems for word in key_words(leaf.key) if len(word) > 2)
        if isinstance(value, (int, float)):
            return abs(value) in self._numbers
        digits = _NOT_DIGIT.sub("", value)
        if len(digits) >= _FEWEST_DIGITS and (
            digits in self._digits or any(phone in digits for phone in self._phone_numbers)
        ):
            return True
        names = NAMES_OF_CODES.get(value, ())
        if any(word[:_STEM] in self._stems for name in names for word in name.split()):
            return True
        if len(text) > 1 and text in self._folded and text not in self._folded_input:
            return True
        return any(
            word[:_STEM].lower() in self._stems
            for word in _WORD.findall(value)
            if word.lower() not in STOP_WORDS and word[:_STEM].lower() not in self._asked
        )


def _is_loose(leaf: Leaf) -> bool:
    """Whether a value can be said in quite other words: a flag, or a few words in lower case."""
    value = leaf.value
    if isinstance(value, bool) or value == "":
        return True
    if not isinstance(value, str) or not value.islower() or not value.isascii():
        return False
    return len(key_words(value)) <= _MOST_LOOSE_WORDS and not any(map(str.isdigit, value))


def _last_uses(response: AgentResponse) -> dict[str, int]:
    """For each text in arguments, folded, the last call that has it; also for the words of longer texts."""
    last: dict[str, int] = {}
    for position, call in enumerate(response.calls):
        stack: list[JsonValue] = [call.arguments]
        texts: list[str] = []
        while stack:
            item = stack.pop()
            if isinstance(item, dict):
                stack.extend(item.values())
            elif isinstance(item, list):
                stack.extend(item)
            elif item is not None and not isinstance(item, bool):
                text = str(item)
                texts.append(text)
                texts.extend(text.split())
        last.update(dict.fromkeys(folded_all(texts), position))
    return last


def _is_fed(last_uses: dict[str, int], position: int, leaves: list[Leaf], texts: list[str]) -> bool:
    """Whether a value of the result, also in its folded texts, stands in the arguments of a later call."""
    return any(
        len(text) > 1 and last_uses.get(text, -1) > position and not isinstance(leaf.value, bool)
        for leaf, text in zip(leaves, texts, strict=True)
    )
