"""What an agent was asked and answered, where its framework's own objects were recorded as input and output.

An object that steers the run and holds no question is no input: what is left out here is then taken from
the first model turn.
"""

from processors.frameworks.shapes.chat_envelope import decode_input, decode_output
from processors.frameworks.shapes.printed_messages import (
    answer_in_printed_result,
    answer_in_printed_steps,
    is_printed_result,
    last_printed_message,
)
from processors.model.agent_run import ValueState
from processors.model.json_value import JsonObject, JsonValue
from processors.model.values import ABSENT, DecodedValue, decode_result, json_text, text_value
from processors.spans.attributes import Attributes

_INPUT = "input.value"
_OUTPUT = "output.value"
_TASK = "task_description"
_STEERING_KEYS = {"agent", "context", "tools"}
_WORKFLOW_KEYS = {"init_state", "start_event"}
_WORKFLOW_BEGINS = '{"init_state": {'
_TRAJECTORY, _REASONING = "trajectory", "reasoning"
_STREAMS = ("<generator object ", "<async_generator object ")
_REPORT_KEYS = {"description", "expected_output", "raw"}


def recorded_input(attributes: Attributes) -> DecodedValue:
    """What the run was asked, as far as its own span tells it."""
    task = attributes.text(_TASK)
    if task is not None:
        return text_value(task)
    if _INPUT not in attributes:
        return ABSENT
    raw = attributes.get(_INPUT)
    decoded = decode_input(raw)
    value = decoded.value
    if decoded.state is ValueState.TRUNCATED and isinstance(raw, str) and raw.startswith(_WORKFLOW_BEGINS):
        return ABSENT
    if decoded.state is not ValueState.PRESENT or not isinstance(value, dict):
        return decoded
    if value.keys() >= _WORKFLOW_KEYS:
        return ABSENT
    if value.keys() == _STEERING_KEYS:
        report = _report(attributes)
        return ABSENT if report is None else _if_text(report["description"])
    messages = value.get("messages")
    if isinstance(messages, list):
        text = last_printed_message(messages)
        return decoded if text is None else text_value(text)
    return decoded


def recorded_output(attributes: Attributes) -> DecodedValue:
    """What the run answered, as far as its own span tells it: of a stream there may be only the object."""
    if _OUTPUT not in attributes:
        return ABSENT
    raw = attributes.get(_OUTPUT)
    if isinstance(raw, str) and raw.startswith(_STREAMS):
        return ABSENT
    if isinstance(raw, str) and is_printed_result(raw):
        return text_value(answer_in_printed_result(raw))
    answer = answer_in_printed_steps(raw) if isinstance(raw, str) else None
    if answer is not None:
        return decode_output(answer if isinstance(answer, (str, dict, list)) else json_text(answer))
    report = _report(attributes)
    if report is not None:
        return _if_text(report["raw"])
    decoded = decode_output(raw)
    return _answer_beside_trajectory(decoded) if isinstance(decoded.value, dict) else decoded


def _answer_beside_trajectory(decoded: DecodedValue) -> DecodedValue:
    """The fields that a program of prompts was to answer, without the way to them; one alone as it is."""
    value = decoded.value
    if not isinstance(value, dict) or not isinstance(value.get(_TRAJECTORY), dict):
        return decoded
    answer = {key: field for key, field in value.items() if key not in (_TRAJECTORY, _REASONING)}
    return decode_output(next(iter(answer.values())) if len(answer) == 1 else answer)


def _report(attributes: Attributes) -> JsonObject | None:
    """The report of a finished task, which repeats the task."""
    raw = attributes.get(_OUTPUT)
    if not isinstance(raw, str) or '"expected_output"' not in raw:
        return None
    value = decode_result(raw).value
    return value if isinstance(value, dict) and value.keys() >= _REPORT_KEYS else None


def _if_text(value: JsonValue) -> DecodedValue:
    return text_value(value if isinstance(value, str) else None)
