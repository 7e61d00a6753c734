"""Codex CLI's turns and the calls in them, of which its spans tell the names."""

from processors.model import JsonObject, ValueState
from tests.support.agent_spans import envelope, runs_of, span

CODEX = envelope(service="codex_exec", scope="codex_exec")
TURN: JsonObject = {"thread.id": "t-1", "turn.id": "u-1", "codex.turn.reasoning_effort": "default"}


def called(call_id: str, name: str = "exec_command") -> JsonObject:
    return {
        "tool_name": name,
        "call_id": call_id,
        "turn.id": "u-1",
        "codex.tool.phase": "dispatch",
        "aborted": False,
    }


def test_a_turn_is_a_run_with_the_calls_that_were_dispatched_in_it() -> None:
    inner: JsonObject = {"call_id": "c1", "mode": "resumable"}

    (run,) = runs_of(
        [
            span(1, None, "turn/start", {"rpc.method": "turn/start"}, at=(0, 2), of=CODEX),
            span(2, 1, "session_task.turn", TURN, at=(1, 90), of=CODEX),
            span(3, 2, "handle_responses", {"tool_name": "exec_command"}, at=(5, 30), of=CODEX),
            span(4, 3, "exec_command", called("c1"), at=(10, 30), of=CODEX),
            span(5, 4, "unified_exec.exec_command", inner, at=(11, 29), of=CODEX),
            span(6, 2, "update_plan", called("c2", "update_plan"), at=(40, 50), of=CODEX),
        ]
    )

    assert ("codex_exec", "t-1", None, True) == (run.agent.name, run.session, run.output, run.complete)
    assert [
        ("exec_command", "c1", ValueState.ABSENT, ValueState.ABSENT, None),
        ("update_plan", "c2", ValueState.ABSENT, ValueState.ABSENT, None),
    ] == [
        (call.name, call.call_id, call.arguments_state, call.result_state, call.error)
        for call in run.tool_calls
    ]
