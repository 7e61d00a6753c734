"""Whether a tool call failed, read widely: also where only its result says so."""

from processors.comparison.captured_value import value_written_in
from processors.model.agent_run import ToolCall, ValueState
from processors.model.json_value import JsonObject, JsonValue

_TEXT_STARTS = ("error", "exception", "traceback")
_LONGEST_START = max(map(len, _TEXT_STARTS))
_FIRST_ERROR_STATUS = 400


def looks_failed(call: ToolCall) -> bool:
    """Whether `call` carries an error or its result reads like one.

    A result object reads like an error with a truthy `error`, `errors` or `exception`, with `success` or
    `ok` false, with `isError` or `is_error` true, or with an integer `status_code`, `statusCode` or
    `http_status` of 400 and more; a text, when it starts with error, exception or traceback in any case. A
    member such as `status: failed` does not count: it often is the answer. A result that was not captured
    shows no error.
    """
    if call.error is not None:
        return True
    if call.result_state is not ValueState.PRESENT and call.result_state is not ValueState.UNPARSED:
        return False
    result: JsonValue = call.result if call.result_state is ValueState.PRESENT else call.result_text
    if isinstance(result, str):
        text = result.lstrip()
        if text[:1] != "{":
            return text[:_LONGEST_START].lower().startswith(_TEXT_STARTS)
        result = value_written_in(text)
    return isinstance(result, dict) and _is_error_object(result)


def _is_error_object(result: JsonObject) -> bool:
    get = result.get
    if get("error") or get("errors") or get("exception"):
        return True
    if get("success") is False or get("ok") is False or get("isError") is True or get("is_error") is True:
        return True
    for key in ("status_code", "statusCode", "http_status"):
        code = get(key)
        if isinstance(code, int) and not isinstance(code, bool) and code >= _FIRST_ERROR_STATUS:
            return True
    return False
