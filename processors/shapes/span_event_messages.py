"""What GenAI span events, or the same attributes on a span, carry: messages, and a call's values.

Before 1.37 each message is an event of its own; since then one event may hold all that the attributes
`gen_ai.input.messages` and `gen_ai.output.messages` hold. All events of a turn were
also recorded as one list, before there were attributes for them.
"""

from processors.model import ABSENT, DecodedValue, JsonObject, decode_arguments, decode_result, json_value
from processors.shapes.attribute_reading import first_text
from processors.shapes.dialect import Conversation
from processors.shapes.members import objects_at
from processors.shapes.messages import ChatMessage, Role, first_choice, read_message, read_messages
from processors.shapes.printed_messages import opened_answer
from processors.shapes.result_envelope import BLOCKS, open_result
from processors.spans import Attributes, AttributeValue, Span

DETAILS_EVENT = "gen_ai.client.inference.operation.details"
MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CALL_ID = ("id",)
CHOICE = "gen_ai.choice"


def messages_in_attributes(attributes: Attributes) -> Conversation:
    """The messages in the attributes of a span, or of the event that holds the same ones."""
    return Conversation(
        lambda: [
            *read_messages(json_value(attributes.get("gen_ai.system_instructions")) or [], "system"),
            *read_messages(json_value(attributes.get("gen_ai.input.messages")), "user"),
        ],
        lambda: [
            opened_answer(message)
            for message in first_choice(
                read_messages(json_value(attributes.get("gen_ai.output.messages")), "assistant")
            )
        ],
    )


def messages_in_events(span: Span) -> Conversation:
    """The messages in the events of a model's or an agent's span."""

    def given() -> list[ChatMessage]:
        messages: list[ChatMessage] = []
        for event in span.events:
            if event.name in MESSAGE_EVENTS:
                messages.append(_message(MESSAGE_EVENTS[event.name], event.attributes))
            elif event.name == DETAILS_EVENT:  # one event may hold what went in, another what came out
                messages.extend(messages_in_attributes(event.attributes).input)
        return messages

    def answered() -> list[ChatMessage]:
        messages: list[ChatMessage] = []
        for event in span.events:
            if event.name == CHOICE:
                messages.append(_message("assistant", event.attributes))
            elif event.name == DETAILS_EVENT:
                messages.extend(messages_in_attributes(event.attributes).output)
        return first_choice(messages)

    return Conversation(given, answered)


def _message(role: str, attributes: Attributes) -> ChatMessage:
    fields: JsonObject = {key: json_value(attributes.get(key)) for key in attributes}
    body = fields.pop("gen_ai.event.content", None)
    if body is not None:
        content = decode_result(body).value
        fields.update(content if isinstance(content, dict) else {"content": body})
    return read_message(message_object(role, fields), "assistant")


def message_object(role: str, fields: JsonObject) -> JsonObject:
    """The message in the fields of an event: with the role that it has itself, and out of a choice."""
    fields = {"role": role, **fields}
    for key in ("message", "content", "tool_calls"):
        if isinstance(fields.get(key), str):
            decoded = decode_result(fields[key])
            if isinstance(decoded.value, (dict, list)):
                fields[key] = decoded.value
    inner = fields.pop("message", None)
    if isinstance(inner, dict):
        fields.update(inner)
    elif inner is not None:
        fields["content"] = inner
    return fields


def call_in_events(span: Span) -> tuple[DecodedValue, DecodedValue, str]:
    """Arguments, result and call id in the events of a tool span."""
    arguments = result = ABSENT
    call_id = ""
    for event in span.events:
        attributes = event.attributes
        if event.name == "gen_ai.tool.message":
            if "content" in attributes:
                arguments = decode_arguments(attributes.get("content"))
            call_id = call_id or first_text(attributes, _CALL_ID)
        elif event.name == CHOICE:
            for key in ("message", "content"):
                if key in attributes:
                    result = open_result(decode_result(attributes.get(key)), BLOCKS).result
                    break
            call_id = call_id or first_text(attributes, _CALL_ID)
        elif event.name == DETAILS_EVENT:
            for message in read_messages(json_value(attributes.get("gen_ai.input.messages")), "assistant"):
                for request in message.requests:
                    if request.has_arguments:
                        arguments = decode_arguments(request.arguments)
                    call_id = call_id or request.call_id
            for message in read_messages(json_value(attributes.get("gen_ai.output.messages")), "tool"):
                for response in message.responses:
                    result = open_result(decode_result(response.content), BLOCKS).result
    return arguments, result, call_id


def read_recorded_events(raw: AttributeValue) -> Conversation:
    """The conversation in a list of events, or its JSON text; choices are the output, the rest the input.

    Where there is no choice, as with APIs that answer in messages, the assistant's last ones are the output.
    """

    def chosen(is_output: bool) -> list[ChatMessage]:
        events = objects_at(decode_result(raw).value)
        answers = [event.get("event.name") == CHOICE for event in events]
        if True not in answers:
            for position in range(len(events) - 1, -1, -1):
                if events[position].get("event.name") != "gen_ai.assistant.message":
                    break
                answers[position] = True
        default: Role = "assistant" if is_output else "user"
        return [
            read_message(event, default)
            for event, is_answer in zip(events, answers, strict=True)
            if is_answer is is_output
        ]

    return Conversation(lambda: chosen(False), lambda: chosen(True))
