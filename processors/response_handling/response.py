"""One agent's answer with the calls behind it, taken apart once: what every rule reads."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from processors.comparison import equality_key
from processors.model import JsonObject, JsonValue, json_text
from processors.response_handling.arithmetic import Arithmetic
from processors.response_handling.failures import ToolFailure
from processors.response_handling.ledger import (
    FROM_USER,
    MAX_CALLS,
    MAX_OUTPUT_CHARACTERS,
    Leaf,
    Ledger,
    OverLimitError,
)
from processors.response_handling.lexicon import detect
from processors.response_handling.lexicons.keys import CACHED_KEYS
from processors.response_handling.reading import Token, reader
from processors.response_handling.timeline import Timeline

MAX_CLAIMS: Final = 100
"""Tokens of an answer that are looked up; later ones are not checked."""

_SENTENCE_END = re.compile(r"(?:(?<=[^\W\d]{2})|(?<=[\d)%\"'»”]))[.!?](?=\s|$)|[。！？;\n]|(?<=\s)[–—](?=\s)")
_WORD = re.compile(r"[^\W_]{1,40}")
_QUESTION_ENDS = ("?", "？", "か。", "吗。")
_DIGITS = re.compile(r"\d{1,30}")
MAX_SHOWN: Final = 80
"""Characters that a finding shows of one text."""


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

    `call` is the position of the call that it is about, None where no single call is meant.
    """

    rule: str
    claim: str
    evidence: str
    path: str = ""
    call: int | None = None
    secret: str = ""
    """What no finding may repeat, in whole or in part."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the answer: where it stands, its words, and their kinds, set phrases aside."""

    start: int
    end: int
    text: str
    words: frozenset[str]
    categories: frozenset[str]
    is_question: bool


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
        if len(calls) > MAX_CALLS:
            raise OverLimitError(f"more than {MAX_CALLS} calls")
        if output is not None and len(output) > MAX_OUTPUT_CHARACTERS:
            raise OverLimitError(f"answer of more than {MAX_OUTPUT_CHARACTERS} characters")
        self.question = question or ""
        self.output = output or ""
        self.calls = calls
        self.is_answered = output is not None
        self.is_captured = (
            question is not None
            and output is not None
            and all(call.result_known or call.failure is not None for call in calls)
        )
        self.words = detect(self.output, self.question)
        self.reader = reader(self.words.language)
        self.ledger = Ledger(self.reader)
        for text in (self.question, *texts):
            self.ledger.add(text, FROM_USER)
        for position, call in enumerate(calls):
            if call.arguments:
                self.ledger.add(call.arguments, FROM_USER, made_for=position)
            if call.failure is not None:
                self.ledger.add(call.failure.text, position, call.name)
            if call.result_known and call.result is not None:
                self.ledger.add(call.result, position, call.name, call.arguments)
        self.ledger.finish()
        named = [str(leaf.value) for leaf in self.ledger.leaves if isinstance(leaf.value, str)]
        self.timeline = Timeline(self.ledger, (self.question, self.output, *named))
        self.arithmetic = Arithmetic(self.ledger, self.timeline)

    @cached_property
    def tokens(self) -> list[Token]:
        """What the answer states, in its order."""
        return sorted(self.reader.read(self.output, is_answer=True), key=lambda token: token.start)[
            :MAX_CLAIMS
        ]

    @cached_property
    def categories(self) -> frozenset[str]:
        """The kinds of words in the answer, set phrases aside."""
        return self.words.said(self.output)

    @cached_property
    def told(self) -> list[Sentence]:
        """The sentences of the answer."""
        found = []
        for start, end in self.sentences:
            text = self.output[start:end]
            words = frozenset(word.lower() for word in _WORD.findall(text))
            is_question = self.output[start : end + 1].rstrip().endswith(_QUESTION_ENDS)
            found.append(Sentence(start, end, text, words, self.words.said(text), is_question))
        return found

    @cached_property
    def overall(self) -> frozenset[str]:
        """The kinds of words in what the answer says, its questions aside."""
        return frozenset().union(*(one.categories for one in self.told if not one.is_question))

    @cached_property
    def starts_with_yes(self) -> bool:
        """Whether the answer begins with a yes."""
        head = self.output.lstrip("*_ ")[:12]
        return "yes" in self.words.categories(head if self.words.is_spaced else head[:3])

    @cached_property
    def last_calls(self) -> frozenset[int]:
        """The calls that succeeded and that no later call of the same tool and target replaced."""
        last: dict[object, int] = {}
        for position, call in enumerate(self.calls):
            if call.failure is None:
                target = {
                    k: v
                    for k, v in (call.arguments or {}).items()
                    if not isinstance(v, bool) and k.lower() not in CACHED_KEYS
                }
                last[call.name, equality_key(target)] = position
        return frozenset(last.values())

    @cached_property
    def current(self) -> list[Leaf]:
        """The values of the last calls."""
        return [leaf for leaf in self.ledger.leaves if leaf.call in self.last_calls]

    @cached_property
    def result_words(self) -> frozenset[str]:
        """The words of all results, in lower case."""
        texts = [
            str(leaf.value) for leaf in self.ledger.leaves if leaf.call >= 0 and isinstance(leaf.value, str)
        ]
        return frozenset(word.lower() for word in _WORD.findall(" ".join(texts)))

    @cached_property
    def older(self) -> dict[tuple[str, str], list[Leaf]]:
        """The values of calls that were replaced, by key and path."""
        found: dict[tuple[str, str], list[Leaf]] = {}
        for leaf in self.ledger.leaves:
            if leaf.call >= 0 and leaf.call not in self.last_calls:
                found.setdefault((leaf.key, leaf.path), []).append(leaf)
        return found

    @cached_property
    def user_args(self) -> str:
        """What the arguments say."""
        return "\n".join(str(leaf.value) for leaf in self.ledger.leaves if leaf.made_for >= 0)

    @cached_property
    def sentences(self) -> list[tuple[int, int]]:
        """Where the sentences of the answer stand."""
        found, start = [], 0
        for match in _SENTENCE_END.finditer(self.output):
            if match.start() > start:
                found.append((start, match.start()))
            start = match.end()
        if start < len(self.output):
            found.append((start, len(self.output)))
        return found

    def sentence_of(self, position: int) -> tuple[int, int]:
        """The sentence around a position."""
        return next(
            ((start, end) for start, end in self.sentences if start <= position < end), (0, len(self.output))
        )

    @cached_property
    def user_text(self) -> str:
        """What the user and the arguments say."""
        said = [str(leaf.value) for leaf in self.ledger.leaves if leaf.call == FROM_USER]
        return "\n".join(said)

    @cached_property
    def digit_groups(self) -> frozenset[str]:
        """The runs of digits in the texts of the evidence, as names and codes have them."""
        joined = " ".join(str(leaf.value) for leaf in self.ledger.leaves if isinstance(leaf.value, str))
        return frozenset(_DIGITS.findall(joined + " " + " ".join(self.ledger.keys)))


def shown(value: JsonValue) -> str:
    """A value for people, in one line and cut."""
    text = " ".join((value if isinstance(value, str) else json_text(value)).split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
