"""The arguments and results of a call as evaluators may compare them.

Spans known by `tool.name` alone come from instrumentations that leave out what is empty, so there a
missing input is no argument and a missing output is the empty text. Everywhere else a value that was not
captured is unknown, and unknown never equals or differs.
"""

import re
from collections.abc import Iterable

from processors.model import (
    MAX_DETAIL_CHARACTERS,
    MAX_TEXT_LENGTH,
    JsonObject,
    JsonValue,
    NotEvaluated,
    ToolCall,
    ValueState,
    json_text,
    parse_json,
    parse_python_literal,
)

_LITERAL_STARTS = frozenset("{[(+-.0123456789TFN")
_PRINTABLE_LENGTH = 8192
_SHOWN_ARGUMENTS = 80
_PRESENT = ValueState.PRESENT
_HELD = (ValueState.PRESENT, ValueState.UNPARSED)
_WITHHELD = frozenset({ValueState.REDACTED, ValueState.TRUNCATED})


def all_comparable_arguments(calls: Iterable[ToolCall]) -> list[JsonObject | None]:
    """`comparable_arguments` of each call."""
    return [
        value
        if call.arguments_state is _PRESENT and isinstance(value := call.arguments, dict)
        else comparable_arguments(call)
        for call in calls
    ]


def comparable_arguments(call: ToolCall) -> JsonObject | None:
    """The argument object of `call`, or None where it is not known.

    A present null is a call without arguments. With `lenient_values` what is missing or no object is `{}`;
    what was hidden or cut off stays unknown there too.
    """
    value = call.arguments
    if call.arguments_state is _PRESENT:
        if isinstance(value, dict):
            return value
        if value is None:
            return {}
    return {} if call.lenient_values and call.arguments_state not in _WITHHELD else None


def readable_arguments(call: ToolCall) -> JsonObject | None:
    """`comparable_arguments` of `call`; None also where their text was too long to be read."""
    return None if is_oversized(call.arguments_text) else comparable_arguments(call)


def comparable_result_text(call: ToolCall) -> str | None:
    """The result of `call` as text, or None where it is not known.

    What was carried as JSON of a text is that text, but where `lenient_values` takes texts as they stand.
    A result that is no value is a text nevertheless. With `lenient_values` a missing one is empty.
    """
    state = call.result_state
    if state is _PRESENT:
        text = call.result_text
        if text is None:
            return json_text(call.result)
        if text.lstrip()[:1] != '"' or call.lenient_values:
            return text
        return call.result if isinstance(call.result, str) else json_text(call.result)
    if state in _WITHHELD:
        return None
    return call.result_text or "" if call.lenient_values else call.result_text


def comparable_result_value(call: ToolCall, text: str) -> JsonValue:
    """The result of `call`, whose text is `text`, as a value; a text result is read if it can be."""
    if call.result_state is _PRESENT and not isinstance(call.result, str):
        return call.result
    return value_written_in(text)


def value_written_in(text: str) -> JsonValue:
    """The value that `text` writes as JSON, else as a Python literal, else the text itself."""
    start = text.lstrip()[:1]
    try:
        return parse_json(text)
    except ValueError:
        if start not in _LITERAL_STARTS:
            return text
    try:
        return parse_python_literal(text)
    except ValueError:
        return text


def is_oversized(text: str | None) -> bool:
    """Whether the captured `text` is longer than what is decoded, so that its value was never read."""
    return text is not None and len(text) > MAX_TEXT_LENGTH


def unknown_arguments(call: ToolCall) -> NotEvaluated:
    """The answer of an evaluator that needs the arguments of `call`, which are not known."""
    return _unknown(call, "arguments", call.arguments_text, call.arguments_state)


def unknown_result(call: ToolCall) -> NotEvaluated:
    """The answer of an evaluator that needs the result of `call`, which is not known."""
    return _unknown(call, "result", call.result_text, call.result_state)


def _unknown(call: ToolCall, what: str, text: str | None, state: ValueState) -> NotEvaluated:
    if is_oversized(text):
        return NotEvaluated.over_limit(f"{what} of {call.name}: too long to be read")
    if state is _PRESENT:
        return NotEvaluated.not_captured(f"{what} of {call.name}: redacted in part")
    return NotEvaluated.not_captured(f"{what} of {call.name}: {state}")


def arguments_detail(call: ToolCall, arguments: JsonObject | None) -> str:
    """The comparable `arguments` of `call` in Python notation, cut to the length that details show."""
    if arguments is None:
        return "not captured"
    text = call.arguments_text
    # Printing all of a large object would cost more than it shows.
    shown = str(arguments) if text is None or len(text) <= _PRINTABLE_LENGTH else text
    return shown if len(shown) <= MAX_DETAIL_CHARACTERS else detail_text(shown)


def call_label(name: str, arguments: JsonObject) -> str:
    """An expected call as explanations show it: `book("seat": "4A")`."""
    text = json_text(arguments)[1:-1]
    return f"{name}({text if len(text) <= _SHOWN_ARGUMENTS else text[: _SHOWN_ARGUMENTS - 1] + '…'})"


def detail_text(text: str) -> str:
    """`text`, cut to the length that details show of one value."""
    return text if len(text) <= MAX_DETAIL_CHARACTERS else text[: MAX_DETAIL_CHARACTERS - 1] + "…"


_TEXT_STARTS = ("error", "exception", "traceback")
_LONGEST_START = max(map(len, _TEXT_STARTS))
_FIRST_ERROR_STATUS = 400


def looks_failed(call: ToolCall) -> bool:
    """Whether `call` carries an error or its result reads like one.

    A result object reads like an error with a truthy `error`, `errors` or `exception`, with `success` or
    `ok` false, with `isError` or `is_error` true, or with an integer `status_code`, `statusCode` or
    `http_status` of 400 and more; a text, when it starts with error, exception or traceback in any case. A
    member such as `status: failed` does not count: it often is the answer. A result that was not captured
    shows no error. A pending or denied call did not fail, whatever the model was given in place of a result.
    """
    if call.is_held_back:
        return False
    if call.error is not None:
        return True
    state = call.result_state
    if state not in _HELD:
        return False
    result: JsonValue = call.result if state is _PRESENT else call.result_text
    if isinstance(result, str):
        text = result.lstrip()
        if text[:1] != "{":
            return text[:_LONGEST_START].lower().startswith(_TEXT_STARTS)
        result = value_written_in(text)
    return isinstance(result, dict) and _is_error_object(result)


def took_effect(call: ToolCall) -> bool:
    """Whether `call` was executed, and nothing shows that it failed (`looks_failed`)."""
    return call.executed and not looks_failed(call)


def may_have_taken_effect(call: ToolCall) -> bool:
    """Whether `call` failed in a way that leaves open whether it took effect: a time-out, or a status of 5xx.

    Told by a status code in the result, and by the words of the error or of a result that reads like one.
    """
    if not call.executed or not looks_failed(call):
        return False
    texts = [] if call.error is None else [call.error.type, call.error.message]
    result: JsonValue = call.result if call.result_state is _PRESENT else call.result_text
    if isinstance(result, str) and result.lstrip()[:1] == "{":
        result = value_written_in(result)
    if isinstance(result, dict):
        if any(code in _UNDECIDED_STATUS for code in _status_codes(result)):
            return True
        texts += [str(result[key]) for key in _ERROR_MEMBERS if result.get(key)]
    elif isinstance(result, str):
        texts.append(result)
    return any(_UNDECIDED.search(text[:_SEARCHED_CHARACTERS]) for text in texts)


_UNDECIDED = re.compile(r"time[ds]?[ _-]?out|deadline[ _-]?exceeded|\b5\d\d\b", re.IGNORECASE)
_UNDECIDED_STATUS = frozenset({408, *range(500, 600)})
_SEARCHED_CHARACTERS = 4096
_ERROR_MEMBERS = ("error", "errors", "exception", "message")
_STATUS_MEMBERS = ("status_code", "statusCode", "http_status")


def _status_codes(result: JsonObject) -> list[int]:
    codes = [result.get(key) for key in _STATUS_MEMBERS]
    return [code for code in codes if isinstance(code, int) and not isinstance(code, bool)]


_DISTINCTIVE_MEMBERS = frozenset(
    {"error", "errors", "exception", "success", "ok", "isError", "is_error", *_STATUS_MEMBERS}
)


def _is_error_object(result: JsonObject) -> bool:
    if _DISTINCTIVE_MEMBERS.isdisjoint(result):
        return False
    get = result.get
    if get("error") or get("errors") or get("exception"):
        return True
    if get("success") is False or get("ok") is False or get("isError") is True or get("is_error") is True:
        return True
    return any(code >= _FIRST_ERROR_STATUS for code in _status_codes(result))
