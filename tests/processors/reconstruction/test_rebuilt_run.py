"""A rebuilt run reads its conversation when somebody looks at it, and then is as any other run."""

from dataclasses import replace

import pytest

from processors.frameworks.shapes.late_value import LateValue
from processors.model.agent_run import AgentIdentity, ValueState
from processors.model.json_value import JsonValue
from processors.model.values import DecodedValue
from processors.reconstruction.rebuilt_run import RebuiltRun
from tests.support.agent_spans import TRACE_ID, agent, runs_of, tool


def _run(read: list[str]) -> RebuiltRun:
    run = RebuiltRun(trace_id=TRACE_ID, span_id=None, agent=AgentIdentity(name="helper"))

    def late(what: str, value: JsonValue) -> LateValue:
        def decode() -> DecodedValue:
            read.append(what)
            return DecodedValue(value, None, ValueState.PRESENT)

        return LateValue(decode)

    asked, answered = late("input", {"city": "Oslo"}), late("output", "Rain.")
    run.defer(lambda: asked, lambda: answered)
    return run


def test_nothing_is_read_before_somebody_looks_and_then_once() -> None:
    read: list[str] = []
    run = _run(read)

    assert "helper" == run.agent.name
    assert [] == read
    assert {"city": "Oslo"} == run.input
    assert ValueState.PRESENT is run.input_state
    assert ["input"] == read
    assert ValueState.PRESENT is run.output_state
    assert "Rain." == run.output
    assert ["input", "output"] == read


def test_a_changed_copy_holds_what_the_run_would_have_read() -> None:
    copy = replace(_run([]), complete=False)

    assert ({"city": "Oslo"}, "Rain.") == (copy.input, copy.output)
    assert _run([]) == _run([])
    assert "Rain." in repr(_run([]))


def test_what_no_run_has_is_an_error() -> None:
    with pytest.raises(AttributeError, match="'RebuiltRun' object has no attribute 'inptu'"):
        _ = _run([]).inptu


def test_reconstruction_tells_absent_from_empty_all_the_same() -> None:
    (run,) = runs_of([agent(1, None, "helper"), tool(2, 1, "search")])

    assert (None, ValueState.ABSENT) == (run.input, run.input_state)
    assert (None, ValueState.ABSENT) == (run.output, run.output_state)
