"""A model turn's messages recorded as a list of events, before the conventions had attributes for them."""

from processors.attributes import AttributeValue
from processors.dialect import Conversation
from processors.json_value import JsonValue
from processors.messages import ChatMessage, read_message
from processors.values import decode_result

_CHOICE = "gen_ai.choice"


def read_recorded_events(raw: AttributeValue) -> Conversation:
    """The conversation in a list of events, or its JSON text; choices are the output, the rest the input."""

    def chosen(is_choice: bool) -> list[ChatMessage]:
        listed = decode_result(raw).value
        messages: list[ChatMessage] = []
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict) and _is_choice(item) is is_choice:
                message = read_message(item, "assistant" if is_choice else "user")
                if message is not None:
                    messages.append(message)
        return messages

    return Conversation(lambda: chosen(False), lambda: chosen(True))


def _is_choice(event: dict[str, JsonValue]) -> bool:
    return event.get("event.name") == _CHOICE
