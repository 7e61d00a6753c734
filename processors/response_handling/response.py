"""One agent's answer with the calls behind it, taken apart once: what every rule reads."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Final, TypeVar, cast

from processors.comparison import equality_key
from processors.model import JsonObject, JsonValue, json_text
from processors.response_handling import ledger
from processors.response_handling.failures import ToolFailure
from processors.response_handling.ledger import FROM_USER, Leaf, Ledger, Record, folded
from processors.response_handling.lexicon import detect
from processors.response_handling.reading import Token, reader

MAX_CLAIMS: Final = 100
"""Tokens of an answer that are looked up; later ones are not checked."""
MAX_SHOWN: Final = 80
"""Characters that a finding shows of one text."""
TROUBLE: Final = frozenset({"negation", "failure", "no", "absent"})
"""Kinds of words by which an answer tells that something is not as it was wanted."""

_Made = TypeVar("_Made")
_SENTENCE_END = re.compile(
    r"(?:(?<=[^\W\d]{3})|(?<=[\d)%\"'»”*`°€])|(?<=\d\s[^\W\d_]{2})|(?<=\d\s[^\W\d_])|(?<=/[^\W\d_]))\.(?=\s|$)|[!?](?=\s|$)|[。！？;\n]|(?<=\s)[–—](?=\s)"
)
_CLAUSE_END = re.compile(r",(?!\d)|[，、]|\s(?:and|und|et|y|e|en|i)\s")
_WORD = re.compile(r"[^\W_]{1,40}")
UNSPACED: Final = re.compile(r"[\u3040-\u9fff]")
"""A letter of scripts that have no blanks between words."""
_start_of = itemgetter(0)
_QUESTION_ENDS = ("?", "？", "か。", "吗。")
_RETRY_KEYS = frozenset(
    {"force", "cache", "cached", "from_cache", "stale", "retry", "attempt", "nocache", "refresh"}
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user may change about the rules."""

    require_retry: bool = False
    retryable_attempts: int = 4
    acknowledgements: tuple[str, ...] = ()
    personal_data: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """A call as the rules see it: `arguments` None where not known, `result` only if `result_known`."""

    name: str
    arguments: JsonObject | None
    result: JsonValue
    result_known: bool
    failure: ToolFailure | None


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


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the answer: where it stands, its words, and their kinds, set phrases aside."""

    start: int
    end: int
    text: str
    words: frozenset[str]
    kinds: frozenset[str]


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
    ) -> None:
        if len(calls) > ledger.MAX_CALLS:
            raise ledger.OverLimitError(f"more than {ledger.MAX_CALLS} calls")
        if len(output or "") > ledger.MAX_OUTPUT_CHARACTERS:
            raise ledger.OverLimitError(f"answer of more than {ledger.MAX_OUTPUT_CHARACTERS} characters")
        self.question, self.output, self.calls = question or "", output or "", calls
        self.is_answered = output is not None
        known = all(call.result_known or call.failure is not None for call in calls)
        self.is_captured = question is not None and output is not None and known
        self.words = detect(self.output, self.question)
        self.reader = reader(self.words.language)
        self.ledger = Ledger(self.reader)
        self._made: dict[object, object] = {}
        self._words_at: dict[int, frozenset[str]] = {}
        for text in (self.question, *texts):
            self.ledger.add(text, FROM_USER)
        for position, call in enumerate(calls):
            self.ledger.add_arguments(call.arguments or {}, position)
            if call.failure is not None:
                self.ledger.add(call.failure.text, position, call.name)
            if call.result_known and call.result is not None:
                self.ledger.add(call.result, position, call.name, call.arguments)
        found = self.reader.read(self.output, is_answer=True)
        self.tokens = sorted(found, key=lambda token: token.start)[:MAX_CLAIMS]
        """What the answer states, in its order."""

    def once(self, make: "Callable[[Response], _Made]") -> _Made:
        """What `make` makes of the response, made once for all rules."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("_Made", self._made[make])

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of words in the answer, set phrases aside."""
        return self.words.said(self.output)

    @cached_property
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

    @cached_property
    def clauses(self) -> list[tuple[int, int]]:
        """Where the parts of the sentences stand that commas and words for `and` part."""
        found = list[tuple[int, int]]()
        for start, end in self.spans:
            cuts = [match.end() for match in _CLAUSE_END.finditer(self.output, start, end)]
            found += zip([start, *cuts], [*cuts, end], strict=True)
        return found

    @cached_property
    def sentences(self) -> list[Sentence]:
        """What the answer says, its questions aside."""
        found = []
        for start, end in self.spans:
            text = self.output[start:end]
            if not self.output[start : end + 1].rstrip().endswith(_QUESTION_ENDS):
                kinds = self.words.said(text)
                found.append(Sentence(start, end, text, words_of(text), kinds))
        return found

    def tells(self, place: int) -> bool:
        """Whether a place of the answer is in a sentence that is no question."""
        return around(self.spans, place)[0] in self._starts

    @cached_property
    def _starts(self) -> frozenset[int]:
        return frozenset(one.start for one in self.sentences)

    @cached_property
    def told(self) -> frozenset[str]:
        """The kinds of words in what the answer says, its questions aside."""
        return frozenset().union(*(one.kinds for one in self.sentences))

    def span_of(self, token: Token) -> tuple[int, int]:
        """Where the sentence stands that has a token of the answer."""
        return around(self.spans, token.start)

    def around(self, token: Token) -> str:
        """The sentence in which a token of the answer stands."""
        start, end = self.span_of(token)
        return self.output[start:end].strip()

    def words_around(self, token: Token) -> frozenset[str]:
        """The words of the sentence in which a token of the answer stands."""
        start, end = self.span_of(token)
        if start not in self._words_at:
            self._words_at[start] = words_of(self.output[start:end])
        return self._words_at[start]

    def names(self, record: Record, text: str) -> bool:
        """Whether a text names a record by a label of it."""
        labels = [label for _, label in record.labels]
        labels += [leaf.value for leaf in record.leaves if isinstance(leaf.value, str)]
        low = folded(text)
        return any(2 < len(label) < 60 and folded(label) in low for label in labels)

    @cached_property
    def starts_with_yes(self) -> bool:
        """Whether the answer begins with a yes."""
        head = self.output.lstrip("*_ ¡")
        return "yes" in self.words.categories(head[: 12 if self.words.is_spaced else 3])

    @cached_property
    def last_calls(self) -> frozenset[int]:
        """The calls that succeeded and that no later call of the same tool and target replaced."""
        made = [(call, position) for position, call in enumerate(self.calls) if call.failure is None]
        return frozenset({(call.name, target_of(call)): position for call, position in made}.values())

    @cached_property
    def current(self) -> list[Leaf]:
        """The values of the last calls."""
        return [leaf for leaf in self.ledger.leaves if leaf.call in self.last_calls]

    @cached_property
    def user_text(self) -> str:
        """What the user and the arguments say, folded."""
        return folded("\0".join(str(leaf.value) for leaf in self.ledger.leaves if leaf.call == FROM_USER))

    @cached_property
    def asked(self) -> frozenset[str]:
        """The words of the question."""
        return words_of(self.question)


def target_of(call: ObservedCall) -> object:
    """What a call was for: its arguments without those that only say how."""
    arguments = (call.arguments or {}).items()
    return equality_key(
        {key: value for key, value in arguments if type(value) is not bool and key not in _RETRY_KEYS}
    )


def words_of(text: str) -> frozenset[str]:
    """The words and numbers of a text, in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def around(spans: Sequence[tuple[int, int]], place: int) -> tuple[int, int]:
    """The one of `spans`, which are in order, in which a place of the text is, or the one before it."""
    return spans[max(0, bisect_right(spans, place, key=_start_of) - 1)]


def alike(one: str, other: str) -> bool:
    """Whether two words may be forms or parts of one."""
    short, long = sorted((one, other), key=len)
    if short[:3] != long[:3]:
        return False
    return (
        short[:5] == long[:5]
        if len(short) > 4
        else long.startswith(short) and (len(short) > 3 or len(long) - len(short) < 2)
    )


def shown(value: JsonValue) -> str:
    """A value for people, in one line and cut."""
    text = " ".join((value if isinstance(value, str) else json_text(value)).split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
