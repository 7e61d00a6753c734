"""The conversation of a run, read from its spans only when somebody looks at it."""

from collections.abc import Callable, Sequence
from typing import overload

from processors.agent_run import Message
from processors.messages import ChatMessage


class Transcript(Sequence[Message]):
    """The messages of a run, decoded on first use; equal to any sequence of the same messages."""

    __slots__ = ("_messages", "_read")

    def __init__(self, read: Callable[[], Sequence[ChatMessage]]) -> None:
        self._read = read
        self._messages: list[Message] | None = None

    def _all(self) -> list[Message]:
        if self._messages is None:
            self._messages = _in_turns(self._read())
        return self._messages

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self._all()))

    def __repr__(self) -> str:
        return f"Transcript({self._all()!r})"


def _in_turns(messages: Sequence[ChatMessage]) -> list[Message]:
    """Messages with text; a new turn begins with each user message that follows an answer."""
    turn = 0
    answered = False
    found: list[Message] = []
    for message in messages:
        if message.role == "user" and answered and message.text:
            turn += 1
            answered = False
        elif message.role in ("assistant", "tool"):
            answered = True
        if message.text:
            found.append(Message(role=message.role, content=message.text, turn=turn))
    return found
