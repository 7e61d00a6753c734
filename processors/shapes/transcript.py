"""The conversation of a run: its messages with text, in turns."""

from collections.abc import Sequence

from processors.model import Message
from processors.shapes.messages import ChatMessage


def in_turns(messages: Sequence[ChatMessage]) -> list[Message]:
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
