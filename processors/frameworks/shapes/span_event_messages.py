"""What GenAI span events, or the same attributes on a span, tell: messages, and a call's values.

Before 1.37 each message is an event of its own; since then one event may hold all that the attributes
`gen_ai.input.messages` and `gen_ai.output.messages` hold.
"""

from processors.frameworks.dialect import Conversation
from processors.frameworks.shapes.attribute_reading import first_text
from processors.frameworks.shapes.messages import ChatMessage, read_message, read_messages
from processors.frameworks.shapes.printed_messages import opened_answer
from processors.frameworks.shapes.result_envelope import BLOCKS, open_result
from processors.model.values import ABSENT, DecodedValue, decode_arguments, decode_result, json_value
from processors.spans.attributes import Attributes
from processors.spans.span import Span

_DETAILS_EVENT = "gen_ai.client.inference.operation.details"
_EVENT_CONTENT = "gen_ai.event.content"
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CALL_ID = ("id",)


def messages_in_attributes(attributes: Attributes) -> Conversation:
    """The messages in the attributes of a span, or of the event that holds the same ones."""

    def asked() -> list[ChatMessage]:
        instructions = attributes.get("gen_ai.system_instructions")
        messages = read_messages(instructions, "system") if instructions else []
        return [*messages, *read_messages(attributes.get("gen_ai.input.messages"), "user")]

    def answered() -> list[ChatMessage]:
        messages = read_messages(attributes.get("gen_ai.output.messages"), "assistant")
        return [opened_answer(message) for message in messages]

    return Conversation(asked, answered)


def messages_in_events(span: Span) -> Conversation:
    """The messages in the events of a model's or an agent's span."""
    asked: list[ChatMessage] = []
    answered: list[ChatMessage] = []
    for event in span.events:
        if event.name == _DETAILS_EVENT:  # one event may hold what went in, another what came out
            told = messages_in_attributes(event.attributes)
            asked.extend(told.input)
            answered.extend(told.output)
            continue
        role = _MESSAGE_EVENTS.get(event.name)
        if role is not None:
            _add_event(asked, {"role": role, **event.attributes})
        elif event.name == "gen_ai.choice":
            _add_event(answered, {"role": "assistant", **event.attributes})
    return Conversation(lambda: asked, lambda: answered)


def _add_event(messages: list[ChatMessage], body: object) -> None:
    fields = json_value(body)  # type: ignore[arg-type]  # a mapping of attribute values
    if not isinstance(fields, dict):
        return
    told = fields.pop(_EVENT_CONTENT, None)
    if told is not None:
        content = decode_result(told).value
        fields.update(content if isinstance(content, dict) else {"content": told})
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
    message = read_message(fields, "assistant")
    if message is not None:
        messages.append(message)


def call_in_events(span: Span) -> tuple[DecodedValue, DecodedValue, str]:
    """Arguments, result and call id as the events of a tool span tell them."""
    arguments = result = ABSENT
    call_id = ""
    for event in span.events:
        attributes = event.attributes
        if event.name == "gen_ai.tool.message":
            if "content" in attributes:
                arguments = decode_arguments(attributes.get("content"))
            call_id = call_id or first_text(attributes, _CALL_ID)
        elif event.name == "gen_ai.choice":
            for key in ("message", "content"):
                if key in attributes:
                    result = open_result(decode_result(attributes.get(key)), BLOCKS).result
                    break
            call_id = call_id or first_text(attributes, _CALL_ID)
        elif event.name == _DETAILS_EVENT:
            for message in read_messages(attributes.get("gen_ai.input.messages"), "assistant"):
                for request in message.requests:
                    if request.has_arguments:
                        arguments = decode_arguments(request.arguments)
                    call_id = call_id or request.call_id
            for message in read_messages(attributes.get("gen_ai.output.messages"), "tool"):
                for response in message.responses:
                    result = open_result(decode_result(response.content), BLOCKS).result
    return arguments, result, call_id
