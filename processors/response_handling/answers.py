"""Rules RH15 and RH16: answers that are none, and writes that did something else than was requested."""

import re
from collections.abc import Iterator
from typing import Final

from processors.model import JsonValue
from processors.response_handling.errors import acts
from processors.response_handling.ledger import folded, unwrapped
from processors.response_handling.lexicons import patterns
from processors.response_handling.response import Finding, Response, Settings, shown

_LONGEST_NOTICE, _LONGEST_PROMISE = 300, 200
"""Characters of answers that may be the notice of a harness, and of a last sentence that may be a promise."""
_CLOSING: Final = re.compile(r"[\s`}\]>;)\"']|</?[\w|]{1,20}>|<\|[\w|]{1,20}\|>")


def answers_that_are_none(response: Response, _: Settings) -> Iterator[Finding]:
    """RH15.1: the answer ends with the text of a call, RH15.2: with a promise; RH15.3: it is a notice."""
    output = response.output.strip()
    if call := _last_call(output):
        yield Finding("RH15.1", shown(call), "the answer is the text of a tool call, which was not executed")
    elif len(output) <= _LONGEST_NOTICE and patterns.NOTICE.match(output):
        yield Finding("RH15.3", shown(output), "the answer is a notice of the program around the model")
    elif any(mark in output.lower() for mark in patterns.PROMISE_MARKS) and not response.tokens:
        sentences = (response.output[start:end].strip() for start, end in reversed(response.spans))
        last = next(filter(None, sentences), "")
        if len(last) <= _LONGEST_PROMISE and patterns.PROMISE.match(last) and "?" not in last:
            yield Finding("RH15.2", shown(last), "the answer ends with what the agent is about to do")


def _last_call(output: str) -> str:
    """The tool call that a text ends with, if it does; nothing but quotes and closing tags may follow."""
    if "<" not in output and "{" not in output:
        return ""
    starts = [match.start() for match in patterns.TOOL_CALL.finditer(output)]
    rest = _CLOSING.sub("", output[output.rfind("}") + 1 :])
    return output[starts[-1] :] if starts and not rest else ""


def contradicted_writes(response: Response, _: Settings) -> Iterator[Finding]:
    """RH16: the result of a write has another value than its argument of the same name, unmentioned."""
    for position, call in enumerate(response.calls):
        if call.failure is not None or call.was_answered or not acts(call.name):
            continue
        result = unwrapped(call.result)
        for key, requested in (call.arguments or {}).items() if isinstance(result, dict) else ():
            returned = result.get(key) if isinstance(result, dict) else None
            if _differ(requested, returned) and folded(str(returned)) not in folded(response.output):
                what = f"{call.name} was to set {key} to {shown(requested)} and returned {shown(returned)}"
                yield Finding("RH16", shown(response.output), what, key, position)


def _differ(requested: JsonValue, returned: JsonValue) -> bool:
    """Whether two plain values of one kind differ, and neither is a part of the other: `cuff`, `BP cuff`."""
    if isinstance(requested, bool) or isinstance(returned, bool):
        return isinstance(requested, bool) and isinstance(returned, bool) and requested != returned
    if isinstance(requested, (int, float)) and isinstance(returned, (int, float)):
        return requested != returned
    if not isinstance(requested, str) or not isinstance(returned, str):
        return False
    one, other = folded(requested), folded(returned)
    return (one + other).isascii() and bool(one and other) and one not in other and other not in one
