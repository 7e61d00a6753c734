"""Which events a target means: certain, out of the question, or unknown."""

from collections.abc import Sequence
from typing import Any

import pytest

from processors.comparison import Target, TargetEntry, occurs, target_of
from processors.model import AgentRun, Decision, Message, NotEvaluated, ToolCall, ToolError, ValueState
from tests.strategies import run_with

_PRESENT = ValueState.PRESENT
_OPEN = '{"status": "open"}'
_PENDING = {"status": "pending", "items": [{"id": 1}], "payment": {"method": "card", "last_four": "4111"}}


def _target(**written: Any) -> Target:
    return target_of(TargetEntry.model_validate(written))


def _call(**fields: Any) -> ToolCall:
    fields.setdefault("arguments_state", _PRESENT)
    fields.setdefault("arguments", {})
    if "result" in fields:
        fields.setdefault("result_state", _PRESENT)
    return ToolCall(name="get_order", **fields)


def _is_meant(target: Target, run: AgentRun) -> bool | None:
    meant = occurs(target, run)
    return None if isinstance(meant, NotEvaluated) else meant


_RAISED = ToolError(type="TimeoutError", message="")


@pytest.mark.parametrize(
    ("written", "call", "meant"),
    [
        ({"result": {"status": "pending"}}, _call(result=_PENDING), True),
        ({"result": {"payment": {"method": "card"}}}, _call(result=_PENDING), True),
        ({"result": {"payment": {"method": "gift_card"}}}, _call(result=_PENDING), False),
        ({"result": {"payment": {"holder": {"$absent": True}}}}, _call(result=_PENDING), True),
        ({"result": {"items": [{"id": 1}]}}, _call(result=_PENDING), True),
        ({"result": {"status": {"$in": ["pending", "open"]}}}, _call(result=_OPEN, result_text=_OPEN), True),
        ({"result": {"$regex": "pend"}}, _call(result=_PENDING, result_text='{"status": "pending"}'), True),
        ({"result": "shipped"}, _call(result="shipped", result_text='"shipped"'), True),
        ({"result": {"status": "pending"}}, _call(result="no", result_text="no"), False),
        ({"result": {"status": "pending"}}, _call(), None),
        ({"result": {"status": "pending"}}, _call(result={"status": "[REDACTED]"}), None),
        ({"result": {"status": "pending"}}, _call(result={"status": "open", "card": "[REDACTED]"}), False),
        ({"result": {"status": "pending"}}, _call(error=_RAISED), False),
        ({"result": {"status": "pending"}}, _call(executed=False), False),
        ({"result": {"status": "pending"}}, _call(error=_RAISED, result=_PENDING), True),
        ({"decision": "approved"}, _call(decision=Decision.APPROVED), True),
        ({"decision": "approved"}, _call(decision=Decision.DENIED, executed=False), False),
        ({"decision": "approved"}, _call(), None),
        ({"decision": "none"}, _call(), True),
        ({"decision": "none"}, _call(decision=Decision.APPROVED), False),
        ({"decision": "denied"}, _call(), False),
        ({"decision": "pending"}, _call(executed=False), None),
        ({"agent": "planner"}, _call(), False),
        ({"agent": {"$glob": "plan*"}}, _call(agent="planner"), True),
        ({"duration": {"$range": [2, None]}}, _call(start_unix_nano=1, end_unix_nano=3_000_000_001), True),
        ({"duration": {"$range": [2, None]}}, _call(start_unix_nano=1, end_unix_nano=2), False),
        ({"duration": {"$range": [2, None]}}, _call(), None),
        ({"tool": "get_*", "args": {"id": 7}}, _call(arguments={"id": 7, "more": 1}), True),
        ({"tool": "get_*", "args": {"id": 7}}, _call(arguments_state=ValueState.ABSENT), None),
    ],
)
def test_a_call_is_meant_not_meant_or_unknown(
    written: dict[str, Any], call: ToolCall, meant: bool | None
) -> None:
    assert meant is _is_meant(_target(**written), run_with([call]))


def test_what_is_missing_is_named() -> None:
    run = run_with([_call()], messages_state=ValueState.ABSENT)
    for written, fact in (
        ({"result": "x"}, "result of get_order: absent"),
        ({"decision": "approved"}, "decision of get_order: telemetry shows none"),
        ({"duration": {"$range": [2, None]}}, "duration of get_order: absent"),
        ({"answer": "x"}, "answer: absent"),
        (
            {"message": {"role": "user"}},
            "messages: telemetry does not show all of the user's and their places among the calls",
        ),
    ):
        answer = occurs(_target(**written), run)
        assert isinstance(answer, NotEvaluated)
        assert fact == answer.text


def _message(role: Any, content: str, after: int | None = None) -> Message:
    return Message(role=role, content=content, after=after)


_YES = {"message": {"role": "user", "text": {"$regex": "(?i)yes"}}}
_TEXT = {"message": {"role": "assistant"}}


@pytest.mark.parametrize(
    ("written", "messages", "calls", "meant"),
    [
        (_YES, [_message("user", "Yes, please.", 0)], 1, True),
        (_YES, [_message("assistant", "yes?", 0), _message("user", "No.", 0)], 1, False),
        (_YES, [], 1, None),
        (_YES, [_message("user", "No.")], 1, None),
        (_YES, [_message("user", "No.")], 0, False),
        (_YES, [_message("user", "[REDACTED]")], 0, None),
        (_TEXT, [_message("user", "Hi", 0), _message("assistant", "Hello", 1)], 1, True),
        (_TEXT, [_message("user", "Hi", 0)], 1, None),
    ],
)
def test_a_message_is_meant_where_all_of_its_role_are_known(
    written: dict[str, Any], messages: Sequence[Message], calls: int, meant: bool | None
) -> None:
    run = run_with([_call()] * calls, messages=messages, messages_state=ValueState.ABSENT)

    assert meant is _is_meant(_target(**written), run)


def test_the_answer_is_the_output_as_text_or_value() -> None:
    text = run_with([], output="It takes 5-7 days.", output_state=_PRESENT)
    value = run_with([], output={"days": 6, "carrier": "x"}, output_state=_PRESENT)

    assert _is_meant(_target(answer={"$regex": "5-7 days"}), text)
    assert _is_meant(_target(answer={"days": {"$range": [5, 7]}}), value)
    assert not _is_meant(_target(answer={"days": 9}), value)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({}, "expected a tool, a message or the answer"),
        ({"message": {"role": "user"}, "tool": "a"}, "message: expected no tool with it"),
        ({"answer": "a", "message": {"role": "user"}}, "answer: expected no message with it"),
        ({"message": {"role": "tool"}}, "role"),
        ({"tool": "a", "decision": "maybe"}, "decision"),
        ({"result": {"$regex": "("}}, "regex|missing"),
    ],
)
def test_targets_that_make_no_sense_are_refused(written: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _target(**written)
