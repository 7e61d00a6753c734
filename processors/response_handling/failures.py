"""What kind of error a failed call ended with, by the words in it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from processors.comparison import looks_failed, value_written_in
from processors.model import JsonValue, ToolCall, ValueState
from processors.response_handling.lexicons import patterns
from processors.response_handling.lexicons.keys import BARE_KEYS


class ErrorClass(StrEnum):
    """What kind of error a tool returned, and so what an agent can do about it."""

    PERMANENT = "permanent"
    RETRYABLE = "retryable"
    ARGUMENT = "argument"
    UNKNOWN = "unknown"


_CODE_KEYS = ("code", "error_code", "errorCode", "type", "status_code", "statusCode", "http_status", "status")
_SEPARATORS = re.compile(r"[\W_]|(?<=[a-z])(?=[A-Z])")
_SHOWN_CODE = re.compile(r"[A-Za-z0-9 _.-]{1,40}")
_MAX_TEXT, _MAX_MESSAGE = 4096, 120
_MESSAGE_KEYS = ("message", "error_message", "errorMessage", "detail", "reason")
_FAILED_STATUS = ("error", "failed", "failure")


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """How a call failed: the class, and the telemetry's words for it.

    `is_absence` marks an error that only says that a thing does not exist, which often is what the
    user wanted to know. `summary` is the message of the tool in one line and cut, or else the code of the
    error, with the class.
    """

    error_class: ErrorClass
    text: str
    summary: str = ""
    is_absence: bool = False


class ErrorClassifier:
    """Decides the class of an error: permanent before retryable before argument, else unknown.

    The error's code is looked at first, then its whole text. `extra` words of a class are looked for before
    the built-in words of any class.
    """

    def __init__(self, extra: Mapping[ErrorClass, Sequence[str]] | None = None) -> None:
        self._patterns = [*_compiled(extra or {}), *_own_patterns()]

    def failure_of(self, call: ToolCall) -> ToolFailure | None:
        """How `call` failed, or None where nothing shows that it did."""
        result = _result_of(call)
        if not looks_failed(call) and not _reads_failed(result):
            return None
        codes, texts = _texts_of(call, result)
        code = _spaced(" ".join(codes))
        text = _spaced(" ".join((*codes, *texts)))
        is_validation = patterns.VALIDATION.search(" ".join(texts)[:_MAX_TEXT]) is not None
        error_class = ErrorClass.ARGUMENT if is_validation else self._class_of(code) or self._class_of(text)
        is_absence = patterns.ABSENCE.search(text) is not None
        code_shown = next((code for code in codes if _SHOWN_CODE.fullmatch(code)), "error")
        shown = _message_of(call, result) or code_shown
        return ToolFailure(
            error_class or ErrorClass.UNKNOWN,
            " ".join((*codes, *texts))[:_MAX_TEXT],
            f"{shown} ({error_class or ErrorClass.UNKNOWN})",
            is_absence,
        )

    def _class_of(self, text: str) -> ErrorClass | None:
        for error_class, pattern in self._patterns:
            if pattern.search(text):
                return error_class
        return None


def _reads_failed(result: JsonValue) -> bool:
    """Whether a short text in place of a result is what programs write when they fail."""
    if isinstance(result, dict):
        is_bare = result.keys() <= BARE_KEYS and len(result) > 1
        return is_bare and str(result.get("status")).lower() in _FAILED_STATUS
    return (
        isinstance(result, str)
        and len(result) <= _MAX_TEXT
        and patterns.FAILED_TEXT.match(result) is not None
    )


def _compiled(words: Mapping[ErrorClass, Sequence[str]]) -> list[tuple[ErrorClass, re.Pattern[str]]]:
    return [
        (error_class, re.compile("|".join(map(_pattern, words[error_class]))))
        for error_class in ErrorClass
        if words.get(error_class)
    ]


@cache
def _own_patterns() -> list[tuple[ErrorClass, re.Pattern[str]]]:
    return _compiled({ErrorClass(name): words for name, words in patterns.ERROR_WORDS.items()})


def _pattern(word: str) -> str:
    """A code of digits stands alone; other words may be parts of longer ones."""
    escaped = re.escape(_spaced(word))
    return rf"\b{escaped}\b" if word.isdigit() else escaped


def _spaced(text: str) -> str:
    return " ".join(" ".join(_SEPARATORS.split(text[:_MAX_TEXT])).split()).casefold()


def _message_of(call: ToolCall, result: JsonValue) -> str:
    """What the tool reports of a failed call, in one line and cut; empty if it is in no usual place."""
    error = call.error.message if call.error is not None else ""
    if not error.strip() and call.error is not None and " " in call.error.type:  # no class or code
        error = call.error.type
    if not error.strip():
        error = _written_message(result)
    lines = [line.strip() for line in error[:_MAX_TEXT].splitlines() if line.strip()]
    if not lines:
        return ""
    text = " ".join((lines[-1] if lines[0].startswith("Traceback") else " ".join(lines)).split())
    return text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE - 1]}…"


def _written_message(result: JsonValue) -> str:
    if isinstance(result, dict):
        owners = (result.get("error"), result)
        messages = [owner.get(key) for owner in owners if isinstance(owner, dict) for key in _MESSAGE_KEYS]
        result = next((text for text in (*messages, owners[0]) if isinstance(text, str) and text.strip()), "")
    return result if isinstance(result, str) else ""


def _result_of(call: ToolCall) -> JsonValue:
    """The result of a call, as a value where a text writes an object; None without any."""
    result: JsonValue = call.result if call.result_state is ValueState.PRESENT else call.result_text
    if isinstance(result, str) and result.lstrip()[:1] == "{":
        return value_written_in(result)
    return result


def _texts_of(call: ToolCall, result: JsonValue) -> tuple[list[str], list[str]]:
    """The codes and the other texts of a failed call."""
    codes: list[str] = []
    texts: list[str] = []
    if call.error is not None:
        codes.append(call.error.type)
        texts.append(call.error.message)
    if isinstance(result, dict):
        for owner in (result, result.get("error")):
            if isinstance(owner, dict):
                codes.extend(str(owner[key]) for key in _CODE_KEYS if isinstance(owner.get(key), (str, int)))
        error = result.get("error")
        if isinstance(error, str) and len(error) <= 40:
            codes.append(error)
    if result is not None:
        texts.append(result if isinstance(result, str) else str(result)[:_MAX_TEXT])
    return [code for code in codes if code], [text for text in texts if text]
