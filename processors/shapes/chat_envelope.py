"""An agent's input and output: the text in a known chat envelope, any other object as it is."""

from collections.abc import Callable, Sequence

from processors.model import (
    ABSENT,
    DecodedValue,
    JsonObject,
    JsonValue,
    ValueState,
    decode_arguments,
    decode_result,
    text_value,
)
from processors.shapes.attribute_reading import arguments_of_recorded_call, first_decoded
from processors.shapes.known_names import DATA_ANNOUNCEMENTS
from processors.shapes.members import object_at, objects_at, value_at
from processors.shapes.messages import is_role_pair, last_text, read_messages, text_of
from processors.shapes.printed_messages import is_pending_result
from processors.spans import Attributes, AttributeValue

_TASK_OPTIONS = frozenset(
    {
        "additional_args", "cancellation_token", "images", "max_steps", "output_task_messages", "reset",
        "return_full_result", "self", "stream",
    }
)  # fmt: skip
_QUESTION_OPTIONS = frozenset({"chat_history", "config", "history", "intermediate_steps", "messages"})
_WORKFLOW_OPTIONS = frozenset({"chat_history", "early_stopping_method", "max_iterations", "memory"})
_KICKOFF_OPTIONS = frozenset({"input_files", "response_format"})
_INPUT_KEYS = ("input", "query", "task")
_DATA = ("structured_response", "structuredResponse")
"""Where a state holds the answer that an agent gave as data."""
_OUTPUT_KEYS = ("output", "raw", "final_output")


def decode_input(raw: "AttributeValue | JsonValue") -> DecodedValue:
    """What the agent was given, from the value that telemetry calls its input."""
    return _decode(raw, _input_text)


def decode_output(raw: "AttributeValue | JsonValue") -> DecodedValue:
    """What the agent answered, from the value that telemetry calls its output.

    A state that ends with neither an answer nor data in its place holds no answer yet, nor do null and the
    printed object of a stream. An announcement of data stands for the data.
    """
    decoded = _announced(_decode(raw, _output_text))
    value = decoded.value
    if value == "null" or (isinstance(value, str) and value.startswith("<") and is_pending_result(value)):
        return ABSENT
    if not isinstance(value, dict):
        return decoded
    if _has_parts(value.get("content")):
        return ABSENT  # a message that has no text requests calls
    if not _is_message_list(value.get("messages")):
        return decoded
    data = _data(value)
    return ABSENT if data is None else decode_result(data)


def first_input(attributes: Attributes, keys: Sequence[str]) -> DecodedValue:
    """What the agent was given, from the first of the attributes `keys` that is there."""
    return first_decoded(attributes, keys, decode_input)


def first_output(attributes: Attributes, keys: Sequence[str]) -> DecodedValue:
    """What the agent answered, from the first of the attributes `keys` that is there."""
    return first_decoded(attributes, keys, decode_output)


def _decode(
    raw: "AttributeValue | JsonValue", envelope_text: "Callable[[JsonValue], str | None]"
) -> DecodedValue:
    decoded = decode_result(raw)
    value = decoded.value
    text = envelope_text(value) if isinstance(value, (dict, list)) and value else None
    if text is not None:
        return text_value(text)
    if isinstance(value, dict) or decoded.state is not ValueState.PRESENT:
        return decoded
    # Numbers and lists among texts are the text of an answer, not data.
    return text_value(decoded.text)


def _announced(decoded: DecodedValue) -> DecodedValue:
    """The data in a text that only announces them."""
    for announcement in DATA_ANNOUNCEMENTS:
        if decoded.text is not None and decoded.text.startswith(announcement):
            data = decode_result(decoded.text.removeprefix(announcement))
            if isinstance(data.value, (dict, list)):
                return data
    return decoded


def _data(state: JsonObject) -> JsonValue:
    return next((state[key] for key in _DATA if state.get(key) is not None), None)


def _input_text(value: JsonValue) -> str | None:
    if isinstance(value, list):
        return last_text(read_messages(value), "user") if _is_message_list(value) else None
    if not isinstance(value, dict):
        return None
    if _is_message_list(value.get("messages")):
        return last_text(read_messages(value["messages"]), "user")
    new_message = value.get("new_message")
    if isinstance(new_message, dict):
        return text_of(new_message.get("parts")) or None
    for key in _INPUT_KEYS:
        request = value.get(key)
        if isinstance(request, str) and value.keys() - {key} <= (
            _TASK_OPTIONS if key == "task" else _QUESTION_OPTIONS
        ):
            return request
    request = value.get("messages")
    if isinstance(request, str) and value.keys() - {"messages"} <= _KICKOFF_OPTIONS:
        return request
    fields = value.get("input_args")
    if isinstance(fields, dict) and len(value) == len(fields) == 1:
        (request,) = fields.values()
        return request if isinstance(request, str) else None
    request = value.get("user_msg")
    return request if isinstance(request, str) and value.keys() - {"user_msg"} <= _WORKFLOW_OPTIONS else None


def _output_text(value: JsonValue) -> str | None:
    if isinstance(value, list):
        return _answer(value) if _is_message_list(value) else None
    if not isinstance(value, dict):
        return None
    if _is_message_list(value.get("messages")):
        return _answer(value["messages"], has_data=_data(value) is not None)
    if value.get("role") in ("assistant", "model") or _has_parts(value.get("content")):
        content = value.get("content")
        return text_of(content.get("parts") if isinstance(content, dict) else content) or None
    for key in _OUTPUT_KEYS:
        answer = value.get(key)
        if isinstance(answer, str) and (len(value) == 1 or "tasks_output" in value or "token_usage" in value):
            return answer
    return _answer_in_blocks(value_at(value, "result", "response")) if len(value) == 1 else None


def _answer_in_blocks(message: JsonValue) -> str | None:
    """The text of the message with which a workflow of agents ended."""
    blocks = objects_at(message, "blocks") if "role" in object_at(message) else []
    return text_of([block.get("text") for block in blocks]) or None


def _answer(messages: JsonValue, *, has_data: bool = False) -> str | None:
    """The last text of the assistant, or the result of a call that ended the run, if no data stand for it."""
    read = read_messages(messages, "assistant")
    last = read[-1] if read else None
    if has_data and (last is None or last.role != "assistant" or not last.text):
        return None
    if last is not None and last.role == "tool":
        return last.text or None
    return last_text(read, "assistant")


def _is_message_list(value: JsonValue) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, (dict, list)) for item in value)
        and any(
            is_role_pair(item) or _is_message(item[0] if isinstance(item, list) and item else item)
            for item in value
        )
    )


def _is_message(item: JsonValue) -> bool:
    if not isinstance(item, dict):
        return False
    if "role" in item:
        return "content" in item or "parts" in item
    is_typed = item.get("type") in ("human", "ai", "system", "tool") and "content" in item
    return is_typed or isinstance(item.get("data"), dict) or ("lc" in item and "kwargs" in item)


def _has_parts(content: JsonValue) -> bool:
    return isinstance(content, dict) and isinstance(content.get("parts"), list)


def input_of_recorded_call(raw: AttributeValue) -> DecodedValue:
    """What a decorated function was given: its only argument where that has no name."""
    call = arguments_of_recorded_call(decode_arguments(raw)).value
    positional = value_at(call, "$args")
    if isinstance(call, dict) and isinstance(positional, list) and len(positional) == len(call) == 1:
        return decode_input(positional[0])
    return decode_input(call if isinstance(call, dict) and not call.keys() & {"args", "$args"} else raw)
