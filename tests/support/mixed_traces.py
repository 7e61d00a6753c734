"""A dialect's spans under conditions that must change nothing: no scope names, other conventions around."""

from collections.abc import Callable, Sequence

from processors.model import AgentRun
from processors.spans import RawSpan
from tests.support.agent_spans import agent, envelope, runs_of, span, tool


def told_of(run: AgentRun) -> tuple[object, ...]:
    """The fields of a run and of its calls that do not speak of the trace around it."""
    calls = [
        (
            call.name,
            call.call_id,
            call.category,
            call.arguments_state,
            call.arguments,
            call.result_state,
            call.result,
            call.error,
        )
        for call in run.tool_calls
    ]
    return run.agent.name, run.session, run.input_state, run.input, run.output_state, run.output, calls


def assert_conditions_change_nothing(spans: Callable[[str], Sequence[RawSpan]]) -> None:
    """Check that the runs of `spans(scope)` are equal without a scope name, and beside other agents.

    `spans` may use the numbers below 100 for its spans.
    """
    expected = [told_of(run) for run in runs_of(spans("instrumentation"))]
    other = envelope(scope="another")
    strangers = [
        agent(101, None, "stranger", (0, 900)),
        tool(102, 101, "strange", (1, 2)),
        span(103, None, "stranger too", {"mlflow.spanType": '"AGENT"'}, at=(0, 900), of=other),
        span(104, 103, "stranger still", {"mlflow.spanType": '"TOOL"'}, at=(3, 4), of=other),
    ]
    mixed = runs_of([*strangers, *spans("instrumentation")])

    assert expected
    assert expected == [told_of(run) for run in runs_of(spans(""))]
    assert expected == [told_of(run) for run in mixed if not run.agent.name.startswith("stranger")]
