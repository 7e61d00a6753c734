"""A rebuilt run reads its conversation when somebody looks at it, and otherwise is as any other run."""

import json
from dataclasses import fields, replace

import pytest

from processors.model.agent_run import AgentIdentity, AgentRun, Message, ValueState
from processors.model.json_values import JsonValue
from tests.support.agent_spans import TRACE_ID, agent, runs_of, tool


class _Content:
    """A run's content that notes what is read of it."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def _note(self, what: str, value: JsonValue) -> JsonValue:
        self.read.append(what)
        return value

    tool_calls = property(lambda self: self._note("tool_calls", []))
    call_turns = property(lambda self: self._note("call_turns", []))
    input = property(lambda self: self._note("input", {"city": "Oslo"}))
    input_state = property(lambda self: ValueState.PRESENT)
    output = property(lambda self: self._note("output", "Rain."))
    output_state = property(lambda self: ValueState.PRESENT)
    error = property(lambda self: self._note("error", None))
    messages = property(lambda self: self._note("messages", []))
    messages_state = property(lambda self: ValueState.ABSENT)
    span_attributes = property(lambda self: self._note("span_attributes", {}))
    available_tools = property(lambda self: self._note("available_tools", None))
    requested_calls = property(lambda self: self._note("requested_calls", []))
    model_calls = property(lambda self: self._note("model_calls", []))
    models = property(lambda self: self._note("models", []))
    usage = property(lambda self: self._note("usage", None))
    time_to_first_output_seconds = property(lambda self: self._note("time_to_first_output_seconds", None))
    cost = property(lambda self: self._note("cost", None))


def _run(content: _Content | None = None) -> AgentRun:
    return AgentRun(
        trace_id=TRACE_ID, span_id=None, agent=AgentIdentity(name="helper"), content=content or _Content()
    )


def test_nothing_is_read_before_somebody_looks() -> None:
    content = _Content()
    run = _run(content)

    assert "helper" == run.agent.name
    assert [] == content.read
    assert {"city": "Oslo"} == run.input
    assert ValueState.PRESENT is run.input_state
    assert ["input"] == content.read
    assert "Rain." == run.output
    assert ["input", "output"] == content.read


def test_a_changed_copy_holds_what_the_run_would_have_read() -> None:
    copy = replace(_run(), complete=False)

    assert ({"city": "Oslo"}, "Rain.") == (copy.input, copy.output)
    assert _run() == _run()
    assert "Rain." in repr(_run())


def test_what_no_run_has_is_an_error() -> None:
    with pytest.raises(AttributeError, match="inptu"):
        _ = _run().inptu  # type: ignore[attr-defined]


def test_reconstruction_tells_absent_from_empty_all_the_same() -> None:
    (run,) = runs_of([agent(1, None, "helper"), tool(2, 1, "search")])

    assert (None, ValueState.ABSENT) == (run.input, run.input_state)
    assert (None, ValueState.ABSENT) == (run.output, run.output_state)


def test_a_rebuilt_run_equals_one_made_by_hand_of_the_same_fields() -> None:
    told = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Rain?"}]}])
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}])
    (run,) = runs_of(
        [
            agent(
                1, None, "helper", (0, 9), **{"gen_ai.input.messages": told, "gen_ai.output.messages": said}
            ),
            tool(2, 1, "search", (2, 3)),
        ]
    )
    given = {field.name: getattr(run, field.name) for field in fields(run) if field.init}

    by_hand = AgentRun(**{**given, "content": None})

    assert run == by_hand
    assert by_hand == run
    assert ("Rain?", "Yes.", ["Rain?", "Yes."]) == (
        by_hand.input,
        by_hand.output,
        [message.content for message in by_hand.messages],
    )
    assert run != replace(by_hand, messages=[Message(role="user", content="Snow?")])
