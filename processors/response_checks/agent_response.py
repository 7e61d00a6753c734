"""What an agent answered, and everything it had to go by: the input of every check.

The evidence is what the user said, all arguments and all results, taken apart once into leaves. Numbers,
dates and folded text are read from the leaves when the first check asks for them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from processors.comparison import value_written_in
from processors.model import JsonObject, JsonValue
from processors.response_checks.tool_errors import ToolFailure
from processors.texts.folded_text import folded, folded_all, key_words
from processors.texts.moments import Written, written_moments

_CODE = re.compile(r"\b[A-Z]{2,3}\b")

FROM_USER = -1
"""The call number of evidence that stands in no result: the input and all arguments."""

MAX_OUTPUT_CHARACTERS = 8_192
"""Answers that are longer are not checked."""
MAX_EVIDENCE_CHARACTERS = 65_536
"""Characters of all texts and keys of the evidence together; with more, nothing is checked."""
MAX_LEAVES = 5_000
"""Values of the evidence; with more, nothing is checked."""
MAX_CHECKED_CALLS = 200
"""Calls of one run; with more, nothing is checked."""


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """A call as the checks see it.

    `name` is its canonical name. `arguments` is None where they are not known. `result` counts only if
    `result_known`. `failure` is set where the call failed.
    """

    name: str
    arguments: JsonObject | None
    result: JsonValue
    result_known: bool
    failure: ToolFailure | None


class Leaf(NamedTuple):
    """One plain value of the evidence.

    `call` is the position of the call whose result holds it, else `FROM_USER`. `path` is where it stands in
    it, list positions left out; `owner` numbers the object that holds it.
    """

    value: str | int | float | bool
    key: str
    path: tuple[str, ...]
    call: int
    owner: int


@dataclass(frozen=True, slots=True)
class ListLength:
    """How many items a list of the evidence has."""

    length: int
    path: tuple[str, ...]
    call: int


class OverLimitError(Exception):
    """The evidence or the answer is larger than what is checked; the message says which."""


class AgentResponse:
    """One agent's answer with the calls behind it.

    `input` and `output` are None where they were not captured. `texts` are further texts of the
    conversation that the agent could see.

    Raises:
        OverLimitError: there is more than can be checked in bounded time.
    """

    def __init__(
        self,
        *,
        input: str | None,  # the field's own word
        output: str | None,
        calls: Sequence[ObservedCall],
        texts: Sequence[str] = (),
    ) -> None:
        if len(calls) > MAX_CHECKED_CALLS:
            raise OverLimitError(f"more than {MAX_CHECKED_CALLS} calls")
        if output is not None and len(output) > MAX_OUTPUT_CHARACTERS:
            raise OverLimitError(f"answer of more than {MAX_OUTPUT_CHARACTERS} characters")
        self.input = input
        self.output = output
        self.calls = calls
        self.is_captured = (
            input is not None
            and output is not None
            and all(call.result_known or call.failure is not None for call in calls)
        )
        """Whether the input, the answer and every result are known."""
        self.leaves: list[Leaf] = []
        self.lists: list[ListLength] = []
        self.keys: dict[str, None] = {}
        """The keys of all objects of the evidence, each once."""
        self._characters = 0
        self._owners = 0
        self._moments: dict[str, list[Written]] = {}
        for text in (input or "", *texts):
            self._take(text, "", (), FROM_USER)
        for position, call in enumerate(calls):
            if call.arguments:
                self._take(call.arguments, "", (), FROM_USER)
            if call.failure is not None:
                self._take(call.failure.text, "", (), position)
            elif call.result_known:
                result = call.result
                if isinstance(result, str) and result.lstrip()[:1] in ("{", "["):
                    result = value_written_in(result)
                self._take(result, "", (), position)

    @cached_property
    def user_text(self) -> str:
        """What the user and the arguments say, keys of arguments included."""
        said = [str(leaf.value) for leaf in self.leaves if leaf.call == FROM_USER]
        keys = [key for call in self.calls for key in call.arguments or ()]
        return "\n".join((*said, *keys))

    @cached_property
    def folded_user_text(self) -> str:
        """`user_text`, folded."""
        return folded(self.user_text)

    @cached_property
    def folded_evidence(self) -> str:
        """All texts, numbers and keys of the evidence, folded; nothing matches across two of them."""
        return "\0".join((*self.folded_leaves, *folded_all(self.keys)))

    @cached_property
    def folded_leaves(self) -> list[str]:
        """For each of the leaves its value as text, folded."""
        return folded_all(self.evidence_texts)

    @cached_property
    def evidence_texts(self) -> list[str]:
        """All values of the evidence as texts."""
        return [leaf.value if isinstance(leaf.value, str) else str(leaf.value) for leaf in self.leaves]

    @cached_property
    def evidence_words(self) -> frozenset[str]:
        """The words of all texts and keys of the evidence, in lower case."""
        words = {word for text in self.evidence_texts for word in key_words(text)}
        words.update(word for key in self.keys for word in key_words(key))
        return frozenset(words)

    @cached_property
    def codes(self) -> frozenset[str]:
        """The words of two or three capitals in the evidence, as airports and countries are written."""
        return frozenset(code for text in self.evidence_texts for code in _CODE.findall(text))

    def moments_in(self, text: str) -> list[Written]:
        """The dates and times of a text of the evidence, read once."""
        found = self._moments.get(text)
        if found is None:
            found = self._moments[text] = written_moments(text)
        return found

    def result_leaves(self, call: int | None = None) -> Iterator[Leaf]:
        """The leaves of the result of `call`, or of all results."""
        return (leaf for leaf in self.leaves if leaf.call >= 0 and (call is None or leaf.call == call))

    def _take(self, value: JsonValue, key: str, path: tuple[str, ...], call: int) -> None:
        """Take `value` apart; an explicit stack, since depth is the telemetry's choice."""
        leaves, keys = self.leaves, self.keys
        stack: list[tuple[JsonValue, str, tuple[str, ...], int]] = [(value, key, path, 0)]
        while stack:
            value, key, path, owner = stack.pop()
            if isinstance(value, str):
                self._characters += len(value)
                leaves.append(Leaf(value, key, path, call, owner))
            elif isinstance(value, dict):
                self._owners += 1
                owner = self._owners
                self._check_limits(len(value))
                for name, member in reversed(value.items()):
                    if name not in keys:
                        keys[name] = None
                        self._characters += len(name)
                    stack.append((member, name, (*path, name), owner))
            elif isinstance(value, list):
                self._check_limits(len(value))
                if call >= 0:
                    self.lists.append(ListLength(len(value), path, call))
                stack.extend([(member, key, path, owner) for member in reversed(value)])
            elif value is not None:
                if isinstance(value, int) and value.bit_length() > 64:
                    value = str(value)[:400]
                leaves.append(Leaf(value, key, path, call, owner))
        self._check_limits(0)

    def _check_limits(self, members: int) -> None:
        """Refuse too much evidence, where as many leaves more as there are `members` are to come."""
        if self._characters > MAX_EVIDENCE_CHARACTERS:
            raise OverLimitError(f"evidence of more than {MAX_EVIDENCE_CHARACTERS} characters")
        if len(self.leaves) + members > MAX_LEAVES:
            raise OverLimitError(f"evidence of more than {MAX_LEAVES} values")
