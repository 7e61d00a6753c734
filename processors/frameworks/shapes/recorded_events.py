"""A model turn's messages recorded as a list of events, before the conventions had attributes for them."""

from processors.frameworks.dialect import Conversation
from processors.frameworks.shapes.messages import ChatMessage, Role, read_message
from processors.model.values import decode_result
from processors.spans.attributes import AttributeValue

_CHOICE = "gen_ai.choice"
_ANSWER = "gen_ai.assistant.message"


def read_recorded_events(raw: AttributeValue) -> Conversation:
    """The conversation in a list of events, or its JSON text; choices are the output, the rest the input.

    Where there is no choice, as with APIs that answer in messages, the assistant's last ones are the output.
    """

    def chosen(is_output: bool) -> list[ChatMessage]:
        decoded = decode_result(raw).value
        events = [event for event in decoded if isinstance(event, dict)] if isinstance(decoded, list) else []
        made = [event.get("event.name") == _CHOICE for event in events]
        if True not in made:
            for position in range(len(events) - 1, -1, -1):
                if events[position].get("event.name") != _ANSWER:
                    break
                made[position] = True
        default: Role = "assistant" if is_output else "user"
        messages = [
            read_message(event, default)
            for event, is_made in zip(events, made, strict=True)
            if is_made is is_output
        ]
        return [message for message in messages if message is not None]

    return Conversation(lambda: chosen(False), lambda: chosen(True))
