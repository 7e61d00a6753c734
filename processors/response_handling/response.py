"""One agent's answer with the calls behind it, taken apart once: what every rule reads."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from operator import itemgetter
from typing import Final, NamedTuple

from processors.model import JsonObject, JsonValue, OverLimitError, json_text, late
from processors.response_handling.failures import ToolFailure
from processors.response_handling.ledger import FROM_USER, PLAIN_NUMBER, Leaf, Ledger, folded
from processors.response_handling.lexicon import Lexicon, detect
from processors.response_handling.lexicons import keys, units
from processors.response_handling.lexicons.units import key_words
from processors.response_handling.reading import Reader, Token, moment_of_number, reader

MAX_CALLS: Final = 200
"""Calls of one run; with more, nothing is checked."""
MAX_OUTPUT_CHARACTERS: Final = 8_192
"""Answers that are longer are not checked."""
MAX_CLAIMS: Final = 100
"""Tokens of an answer that are looked up; later ones are not checked."""
MAX_TEXT_TOKENS: Final = 1_000
"""Numbers, dates and identifiers inside texts of the evidence; with more, nothing is checked."""
_MOST_WRITTEN: Final = 1 << 18
"""Characters of evidence as it is written that are searched."""
MAX_SHOWN: Final = 80
"""Characters that a finding shows of one text."""

_SENTENCE_END = re.compile(
    r"(?:(?<=[^\W\d]{3})|(?<=[\d)%\"'»”*`°€])|(?<=\d\s[^\W\d_]{2})|(?<=\d\s[^\W\d_])|(?<=/[^\W\d_]))\.(?=\s|$)|[!?](?=\s|$)|[。！？;\n]|(?<=\s)[–—](?=\s)"
)
_CLAUSE_END = re.compile(r",(?!\d)|[，、]|\s(?:and|und|et|y|e|en|i)\s")
_WORD = re.compile(r"[^\W_]{1,40}")
_WRITTEN = re.compile(r"\d[\d.,]{0,30}")
_RUN = re.compile(r"\d(?:[.,:/'’–-]?\d|[ \u00a0\u202f](?=\d{3})){0,60}")
_INSIDE_NUMBER = re.compile(r"\d[.,]?\||\|[.,]?\d")
_HAS_DIGIT = re.compile(r"\d")
_AMBIGUOUS = re.compile(r"\s?(?:\d{1,3}\.\d{3}|00\d{0,15})\s?")
_LONGEST_RUN: Final = 30
_start_of = itemgetter(0)


class Settings(NamedTuple):
    """What a user may change about the rules."""

    require_retry: bool = False
    retryable_attempts: int = 4
    acknowledgements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """A call as the rules see it: `arguments` None where not known, `result` only if `result_known`.

    `was_answered`: the agent answered after it and the user went on, so that a later answer owes no account
    of how it ended.
    """

    name: str
    arguments: JsonObject | None
    result: JsonValue
    result_known: bool
    result_text: str | None
    failure: ToolFailure | None
    was_answered: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was handled wrongly: the claim of the answer, the evidence against it, and its path.

    `call` is the position of the call that it is about, None where no single call is meant; `secret` is
    what no finding may repeat, in whole or in part.
    """

    rule: str
    claim: str
    evidence: str
    path: str = ""
    call: int | None = None
    secret: str = ""


@dataclass(slots=True)
class Quantity:
    """A number of the evidence. `is_whole`: it is the value of its member, not a number inside a text."""

    value: float
    key: str
    path: str
    call: int
    record: int
    is_share: bool = False
    is_minor: bool = False
    is_operand: bool = True
    is_whole: bool = True


@lru_cache(maxsize=4096)
def _read_key(key: str) -> tuple[float, bool, bool, bool]:
    """What the key of a number says of it: its scale, and whether it is a share, in cents, or a name."""
    words = key_words(key)
    scales = units.SCALES if units.YEN.isdisjoint(words) else units.SCALES | units.MYRIADS
    is_name = not keys.NO_OPERANDS.isdisjoint(words[-1:]) or key.lower() in ("month", "day", "room")
    is_share, is_minor = not units.PERCENT_WORDS.isdisjoint(words), not units.MINOR.isdisjoint(words)
    return prod(scales.get(word, 1.0) for word in words), is_share, is_minor, is_name


class Quantities:
    """What can be read of a ledger: `numbers`, also `by_record`, and `ids`.

    Raises:
        OverLimitError: there is more than can be checked in bounded time.
    """

    def __init__(self, ledger: Ledger, reader: Reader) -> None:
        self.numbers: list[Quantity] = []
        self.by_record: list[list[Quantity]] = []
        self.ids: list[str] = []
        self._reader, self._read_tokens = reader, 0
        for record in ledger.records:
            self.by_record.append([])
            for leaf in record.leaves:
                if isinstance(leaf.value, str):
                    self._read_text(leaf.value, leaf)
                elif leaf.value is not None and not isinstance(leaf.value, bool) and abs(leaf.value) < 1e18:
                    self._read_number(float(leaf.value), leaf)

    def _read_number(self, value: float, leaf: Leaf) -> None:
        scale, is_share, is_minor, is_name = _read_key(leaf.key)
        is_moment = value == int(value) and moment_of_number(value) is not None
        self._add(Quantity(value * scale, *leaf[1:], is_share, is_minor, not (is_moment or is_name)))

    def _add(self, quantity: Quantity) -> None:
        self.numbers.append(quantity)
        self.by_record[quantity.record].append(quantity)

    def _read_text(self, text: str, leaf: Leaf) -> None:
        is_spelled = leaf.call == FROM_USER
        if not is_spelled and not _HAS_DIGIT.search(text):
            return
        if len(text) < 20 and PLAIN_NUMBER.fullmatch(text) and not _AMBIGUOUS.fullmatch(text):
            self.ids.append(text.strip())
            self._read_number(float(text), leaf)
        else:
            tokens = self._reader.read(text, is_spelled=is_spelled)
            self._read_tokens += len(tokens)
            if self._read_tokens > MAX_TEXT_TOKENS:
                raise OverLimitError(f"evidence of more than {MAX_TEXT_TOKENS} numbers and dates in texts")
            for token in tokens:
                self._note(token, leaf, is_whole=len(token.text) * 2 > len(text))

    def _note(self, token: Token, leaf: Leaf, *, is_whole: bool) -> None:
        if token.kind == "id":
            self.ids.append(token.text)
        elif token.kind == "number":
            is_operand = keys.NO_OPERANDS.isdisjoint(key_words(leaf.key)[-1:])
            is_share = token.unit == units.PERCENT
            for value in token.values:
                value = -value if token.is_negative else value
                self._add(Quantity(value, *leaf[1:], is_share, token.is_minor, is_operand, is_whole))


class Response:
    """One answer with its evidence. `texts` are further texts of the conversation that the agent could see.

    Raises:
        OverLimitError: there is more than can be checked in bounded time.
    """

    def __init__(
        self,
        *,
        question: str | None,
        output: str | None,
        calls: Sequence[ObservedCall],
        texts: Sequence[str] = (),
        settings: Settings,
        is_handed_over: bool = False,
    ) -> None:
        if len(output or "") > MAX_OUTPUT_CHARACTERS:
            raise OverLimitError(f"answer of more than {MAX_OUTPUT_CHARACTERS} characters")
        self.question, self.output, self.calls = question or "", output or "", calls
        self.is_answered = output is not None
        self.is_handed_over, self.settings = is_handed_over, settings
        known = all(call.result_known or call.failure is not None for call in calls)
        self.is_captured = question is not None and output is not None and known
        self._texts = (self.question, *texts)

    @late
    def words(self) -> Lexicon:
        """The words of the answer's language."""
        return detect(self.output, self.question)

    @late
    def reader(self) -> Reader:
        """What reads texts in the answer's language."""
        return reader(self.words.language)

    @late
    def tokens(self) -> list[Token]:
        """What the answer states, in its order."""
        tokens = self.reader.read(self.output, is_answer=True)
        return sorted(tokens, key=lambda token: token.start)[:MAX_CLAIMS]

    @late
    def ledger(self) -> Ledger:
        """The evidence: what the user wrote, then the arguments and the outcome of each call.

        Raises:
            OverLimitError: there is more than can be checked in bounded time.
        """
        ledger = Ledger()
        for text in self._texts:
            ledger.add(text, FROM_USER)
        for position, call in enumerate(self.calls):
            ledger.add(call.arguments or {}, FROM_USER)
            if call.failure is not None:
                ledger.add(call.failure.text, position, call.name)
            if call.result_known and call.result is not None:
                ledger.add(call.result, position, call.name)
        return ledger

    @late
    def results_as_written(self) -> str:
        """All results in one text, as telemetry carries them."""
        return "\n".join(
            [call.result_text or json_text(call.result) for call in self.calls if call.result_known]
        )

    @late
    def low_results(self) -> str:
        """The same in lower case."""
        return self.results_as_written.lower()

    @late
    def _as_written(self) -> str:
        """All evidence in one text: enough for most of what answers repeat, without taking it apart."""
        arguments = (json_text(call.arguments) for call in self.calls if call.arguments)
        failures = (call.failure.text for call in self.calls if call.failure is not None)
        text = "\n".join((*self._texts, *arguments, *failures, self.results_as_written))
        return text if len(text) <= _MOST_WRITTEN else ""

    @late
    def _folded_as_written(self) -> str:
        return folded(self._as_written)

    @late
    def plain_numbers(self) -> frozenset[float]:
        """The numbers of the evidence as they are written, by value, whatever they are of."""
        runs = {run.strip(".,").replace(",", "") for run in _WRITTEN.findall(self._as_written)}
        return frozenset(float(run) for run in runs if run.count(".") < 2)

    def has_evidence_of(self, text: str) -> bool:
        """Whether a text occurs in the evidence, however it is written there."""
        if text in self._as_written:
            return True
        whole = folded(text)
        return whole in self._folded_as_written or whole in self.ledger.text

    @late
    def invents_no_digits(self) -> bool:
        """Whether every run of digits in the answer stands in the evidence as it is written.

        Then it has no number, identifier or date that is not there, so that it need not be read for them.
        """
        runs = {*_RUN.findall(self.output)}
        return len(runs) <= MAX_CLAIMS and all(map(self._has_written, runs))

    def _has_written(self, run: str) -> bool:
        """Whether a run of digits stands in the evidence as it is written, or the number that it is."""
        bare = run.replace(",", "")
        if len(bare) < _LONGEST_RUN and bare.replace(".", "", 1).isdigit():
            return float(bare) in self.plain_numbers
        return _stands_alone(run, self._as_written)

    @late
    def quantities(self) -> Quantities:
        """The numbers, dates and identifiers of the evidence.

        Raises:
            OverLimitError: there are more than can be checked in bounded time.
        """
        return Quantities(self.ledger, self.reader)

    @late
    def kinds(self) -> frozenset[str]:
        """The kinds of words in the answer, set phrases aside."""
        return self.words.kinds_in(self.output)

    @late
    def spans(self) -> list[tuple[int, int]]:
        """Where the sentences of the answer stand."""
        inside = {
            place for one in self.tokens
            for place in range(one.start, one.end - self.output[one.end + 1 : one.end + 2].isupper())
        }  # fmt: skip
        marks = _SENTENCE_END.finditer(self.output)
        ends = [mark.span() for mark in marks if mark.start() not in inside]
        starts = [0, *(after for _, after in ends)]
        stops = [*(end for end, _ in ends), len(self.output)]
        return [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]

    @late
    def clauses(self) -> list[tuple[int, int]]:
        """Where the parts of the sentences stand that commas and words for `and` part."""
        parts = list[tuple[int, int]]()
        for start, end in self.spans:
            cuts = [match.end() for match in _CLAUSE_END.finditer(self.output, start, end)]
            parts += zip([start, *cuts], [*cuts, end], strict=True)
        return parts

    def span_of(self, token: Token) -> tuple[int, int]:
        """Where the sentence stands that has a token of the answer."""
        return self.spans[max(0, bisect_right(self.spans, token.start, key=_start_of) - 1)]

    def around(self, token: Token) -> str:
        """The sentence in which a token of the answer stands."""
        start, end = self.span_of(token)
        return self.output[start:end].strip()

    @late
    def user_text(self) -> str:
        """What the user and the arguments say, folded."""
        return folded("\0".join(str(leaf.value) for leaf in self.ledger.leaves if leaf.call == FROM_USER))

    @late
    def question_words(self) -> frozenset[str]:
        """The words of the question."""
        return words_of(self.question)


def words_of(text: str) -> frozenset[str]:
    """The words and numbers of a text, in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def is_slip(one: str, other: str) -> bool:
    """Whether two texts of one length differ in one sign, or in two that changed places."""
    if len(one) != len(other):
        return False
    places = [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    return len(places) == 1 or (
        len(places) == 2 and places[1] - places[0] <= 2 and sorted(one) == sorted(other)
    )


def _stands_alone(number: str, text: str) -> bool:
    """Whether a number occurs in a text as it is written, and not as a part of another one."""
    place = text.find(number)
    while place >= 0:
        end = place + len(number)
        if _INSIDE_NUMBER.search(text[max(0, place - 2) : place] + "|" + text[end : end + 2]) is None:
            return True
        place = text.find(number, end)
    return False


def shown(value: JsonValue) -> str:
    """A value for people, in one line and cut."""
    text = " ".join((value if isinstance(value, str) else json_text(value)).split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
