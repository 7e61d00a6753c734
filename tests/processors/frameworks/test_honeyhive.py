"""HoneyHive: decorated functions, whose arguments and results are spelled out in attributes."""

from processors.model import JsonObject, JsonValue, ToolError, ValueState
from tests.support.agent_spans import runs_of, span


def event(kind: str, name: str, **told: JsonValue) -> JsonObject:
    fields = {f"honeyhive_{key.replace('__', '.')}": value for key, value in told.items()}
    return {"honeyhive_event_type": kind, "honeyhive_event_name": name, **fields}


ROOT: JsonObject = {
    **event("chain", "planner", inputs__question="Weather?", outputs__result="Cold."),
    "honeyhive.session_id": "s1",
}


def test_the_root_stands_for_the_run() -> None:
    (run,) = runs_of([span(1, None, "planner", ROOT), span(2, 1, "get", event("tool", "get"))])

    assert ("planner", {"question": "Weather?"}, "Cold.", "s1") == (
        run.agent.name,
        run.input,
        run.output,
        run.session,
    )
    assert [("get", ValueState.ABSENT, ValueState.ABSENT)] == [
        (call.name, call.arguments_state, call.result_state) for call in run.tool_calls
    ]


def test_values_are_put_together_again() -> None:
    asked = event(
        "tool",
        "get",
        inputs__city="Oslo",
        inputs__where='{"lat": 1.5}',
        inputs__tags='["a", null]',
        inputs__days=2,
        outputs__result__t=1,
        outputs__result__days__0="warm",
        outputs__result__days__1="cold",
    )
    bare = event("tool", "now", outputs__result="12:00")
    spans = [
        span(1, None, "planner", ROOT),
        span(2, 1, "get", asked, at=(1, 2)),
        span(3, 1, "now", bare, at=(3, 4)),
    ]

    (run,) = runs_of(spans)

    assert [
        (
            "get",
            {"city": "Oslo", "where": {"lat": 1.5}, "tags": ["a", None], "days": 2},
            {"t": 1, "days": ["warm", "cold"]},
        ),
        ("now", {}, "12:00"),
    ] == [(call.name, call.arguments, call.result) for call in run.tool_calls]


def test_the_span_that_only_reports_a_failure_is_no_call() -> None:
    failure: JsonObject = {"honeyhive_event_type": "tool", "honeyhive_error": "offline"}
    spans = [
        span(1, None, "planner", ROOT),
        span(2, 1, "get", event("tool", "get", inputs__city="Oslo"), status=(2, "ValueError: offline")),
        span(3, 1, "get_error", failure, status=(2, "ValueError: offline")),
    ]

    (run,) = runs_of(spans)

    assert [("get", ToolError(type="", message="ValueError: offline"))] == [
        (call.name, call.error) for call in run.tool_calls
    ]


def test_the_failure_of_a_root_is_no_run_of_its_own() -> None:
    failure: JsonObject = {"honeyhive_event_type": "tool", "honeyhive_error": "offline"}

    assert [] == runs_of([span(1, None, "planner_error", failure, status=(2, "offline"))])


def test_a_stream_is_no_answer() -> None:
    told = event("chain", "planner", outputs__result='"<generator object plan at 0x7f0d297f84a0>"')

    (run,) = runs_of([span(1, None, "planner", told), span(2, 1, "get", event("tool", "get"))])

    assert run.output is None
