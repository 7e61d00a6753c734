"""Which text extractors take from a run, above all where telemetry did not capture all of it."""

from collections.abc import Sequence
from typing import Any, Literal

import pytest

from processors.comparison.extractors import Extraction, ExtractorConfig, ExtractorName
from processors.model import (
    MAX_SEARCHED_CHARACTERS,
    AgentRun,
    Message,
    NotEvaluated,
    NotEvaluatedReason,
    ToolCall,
    ToolError,
    ValueState,
)
from tests.strategies import run_with


def _message(role: Literal["system", "user", "assistant", "tool"], text: str, turn: int = 0) -> Message:
    return Message(role=role, content=text, turn=turn)


def _extract(extractor: ExtractorName, run: AgentRun, **config: Any) -> str | NotEvaluated:
    return Extraction(extractor, ExtractorConfig(**config)).text(run)


def _reason(answer: str | NotEvaluated) -> NotEvaluatedReason | str:
    return answer.reason if isinstance(answer, NotEvaluated) else answer


def _recorded(messages: Sequence[Message] = (), calls: Sequence[ToolCall] = (), **fields: Any) -> AgentRun:
    """A run as it is read from spans."""
    return run_with(list(calls), messages=messages, messages_state=ValueState.ABSENT, **fields)


_MESSAGE_EXTRACTORS: list[tuple[ExtractorName, dict[str, str]]] = [
    ("last_assistant", {}),
    ("first_assistant", {}),
    ("all_assistant", {}),
    ("last_turn", {}),
    ("pattern", {"pattern": "a"}),
    ("after_marker", {"marker": "a"}),
]


@pytest.mark.parametrize(("extractor", "config"), _MESSAGE_EXTRACTORS)
@pytest.mark.parametrize("messages", [(), (_message("user", "q"),)])
def test_answers_that_telemetry_does_not_show_are_not_an_empty_text(
    extractor: ExtractorName, config: dict[str, str], messages: Sequence[Message]
) -> None:
    recorded = _extract(extractor, _recorded(messages), **config)
    written_down = _extract(extractor, run_with([], messages=messages), **config)

    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is _reason(recorded)
    assert "" == written_down


def test_last_answer_is_the_output_where_the_conversation_does_not_end_with_an_answer() -> None:
    announced = [_message("user", "q"), _message("assistant", "Let me see."), _message("tool", "21.5")]
    output: dict[str, Any] = {"output": "21.5 degrees", "output_state": ValueState.PRESENT}

    assert "21.5 degrees" == _extract("last_assistant", _recorded(announced, **output))
    assert "21.5 degrees" == _extract("last_assistant", _recorded(**output))
    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is _reason(
        _extract("last_assistant", _recorded(announced))
    )
    assert "Let me see." == _extract("last_assistant", run_with([], messages=announced))


def test_last_answer_is_the_last_message_where_the_conversation_ends_with_it() -> None:
    messages = [_message("user", "q"), _message("assistant", "first"), _message("assistant", "last")]
    run = _recorded(messages, output="other", output_state=ValueState.PRESENT)

    assert "last" == _extract("last_assistant", run)
    assert "first" == _extract("first_assistant", run)
    assert "first, last" == _extract("all_assistant", run, separator=", ")


def test_text_of_one_turn_leaves_out_the_others() -> None:
    messages = [
        _message("user", "q"),
        _message("assistant", "a"),
        _message("user", "r", turn=1),
        _message("assistant", "b", turn=1),
        _message("assistant", "c", turn=2),
    ]
    extraction = Extraction("last_assistant", ExtractorConfig())

    assert ["a", "b", "c", ""] == [
        extraction.text(run_with([], messages=messages), turn) for turn in range(4)
    ]


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (ToolCall(name="f", arguments_text="{'a': 1}", arguments_state=ValueState.UNPARSED), "{'a': 1}"),
        (ToolCall(name="f", arguments={}, arguments_text="", arguments_state=ValueState.PRESENT), ""),
        (ToolCall(name="f", lenient_values=True), "{}"),
        (ToolCall(name="f"), NotEvaluatedReason.CONTENT_NOT_CAPTURED),
        (ToolCall(name="f", arguments_state=ValueState.REDACTED), NotEvaluatedReason.CONTENT_NOT_CAPTURED),
        (ToolCall(name="F"), ""),
    ],
)
def test_arguments_are_the_text_of_the_first_call(call: ToolCall, wanted: str | NotEvaluatedReason) -> None:
    assert wanted == _reason(_extract("tool_arguments", _recorded(calls=[call]), tool_name="f"))


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (ToolCall(name="f", call_id="1", result="x", result_text="x", result_state=ValueState.PRESENT), "x"),
        (
            ToolCall(name="f", call_id="1", result="x", result_text='"x"', result_state=ValueState.PRESENT),
            '"x"',
        ),
        (ToolCall(name="f", call_id="1", result=[1], result_state=ValueState.PRESENT), "[1]"),
        (ToolCall(name="f", call_id="1"), NotEvaluatedReason.CONTENT_NOT_CAPTURED),
        (ToolCall(name="f", call_id="1", error=ToolError(type="TimeoutError", message="")), ""),
        (ToolCall(name="f", call_id="1", executed=False), ""),
        (ToolCall(name="f", call_id="1", result_state=ValueState.TRUNCATED, result_text="{"),
         NotEvaluatedReason.CONTENT_NOT_CAPTURED),
        (ToolCall(name="f", result="x", result_text="x", result_state=ValueState.PRESENT), ""),
    ],
)  # fmt: skip
def test_output_is_that_of_the_first_call_with_an_id(
    call: ToolCall, wanted: str | NotEvaluatedReason
) -> None:
    assert wanted == _reason(_extract("tool_output", _recorded(calls=[call]), tool_name="f"))


def test_run_that_is_written_down_says_that_a_call_returned_nothing() -> None:
    assert "" == _extract("tool_output", run_with([ToolCall(name="f", call_id="1")]), tool_name="f")


def test_long_messages_and_very_many_matches_are_over_the_limit() -> None:
    long = run_with([], messages=[_message("assistant", "a" * (MAX_SEARCHED_CHARACTERS + 1))])
    many = run_with([], messages=[_message("assistant", "a" * 10_000)])

    assert NotEvaluatedReason.OVER_LIMIT is _reason(_extract("pattern", long, pattern="b"))
    assert NotEvaluatedReason.OVER_LIMIT is _reason(_extract("pattern", many, pattern="a", search_all=True))
    assert "a" == _extract("pattern", many, pattern="a")


@pytest.mark.parametrize(
    ("extractor", "config", "message"),
    [
        ("pattern", {}, 'missing key "pattern"'),
        ("tool_output", {}, 'missing key "tool_name"'),
        ("after_marker", {"include_marker": True}, 'missing key "marker"'),
        ("last_turn", {"marker": "a"}, 'does not take "marker"; it takes separator'),
        ("pattern", {"pattern": "(a)", "group": 2}, "no group 2, expected a number from 0 to 1"),
        ("pattern", {"pattern": "(?P<v>a)", "group": "w"}, "no group w, expected a number from 0 to 1, v"),
        ("pattern", {"pattern": "(a)(b)", "group": 2, "search_all": True}, "expected a number from 0 to 1"),
        ("pattern", {"pattern": "a(?!b)"}, "look-around"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    extractor: ExtractorName, config: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=r".") as refusal:
        Extraction(extractor, ExtractorConfig(**config))

    assert message in str(refusal.value)
