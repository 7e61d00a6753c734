"""Calls that wait for somebody, or that somebody refused: neither executed nor failed, and one over runs."""

import json
from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from processors.annotation import run_from_json, run_to_json
from processors.comparison import known_output, looks_failed, took_effect
from processors.criteria import CriteriaSet, read_criteria
from processors.evaluate import evaluate_run
from processors.model import (
    AgentIdentity,
    AgentRun,
    Conversation,
    Decision,
    GradedRun,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    ToolCall,
    ToolError,
    ValueState,
)
from processors.model.conversation import over_conversation, superseded
from processors.shapes import decision_in_place_of_result

_CRITERIA = """
agents:
  "*":
    evaluations:
      - evaluator: duplicate-side-effect
        scope: conversation
        criteria: {tools: [refund]}
      - evaluator: tool-call-count
        scope: conversation
        criteria: {tool_calls_count: {refund: ["=", 1]}}
      - evaluator: tool-call-budget
        scope: conversation
        criteria: {max_calls: 1}
      - evaluator: tool-error-recovery
        criteria: {}
      - evaluator: tool-precedence
        criteria: {before: [[verify, refund]]}
"""
_ID = "call_afab9ef69ae8424c90e4"


def _call(name: str = "refund", call_id: str | None = _ID, amount: int | None = 5, **fields: Any) -> ToolCall:
    known: dict[str, Any] = {}
    if amount is not None:
        known = {"arguments": {"amount": amount}, "arguments_state": ValueState.PRESENT}
    return ToolCall(name=name, call_id=call_id, **known, **fields)


def _pending(*given: Any, **fields: Any) -> ToolCall:
    waiting: dict[str, Any] = {
        "executed": False,
        "decision": Decision.PENDING,
        "decision_source": "ApprovalRequired",
    }
    return _call(*given, **waiting | fields)


def _run(number: int, *calls: ToolCall) -> AgentRun:
    return AgentRun(
        trace_id=number.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        agent=AgentIdentity(name="agent"),
        session="s",
        start_unix_nano=number * 1_000_000_000,
        tool_calls=calls,
    )


def _outcomes(run: AgentRun, *others: AgentRun) -> dict[str, Outcome]:
    evaluations = CriteriaSet(read_criteria(_CRITERIA, "criteria.yaml", {}).agents).evaluations_for("agent")
    known = run.in_conversation(Conversation(others))
    return {result.name: result.outcome for result in evaluate_run(known, evaluations)}


def test_an_approved_call_is_one_call_over_the_conversation() -> None:
    runs = _run(1, _pending()), _run(2, _call())

    for first, second in permutations(runs):
        outcomes = _outcomes(first, second)
        for name in ("duplicate-side-effect", "tool-call-count", "tool-call-budget"):
            assert outcomes[name] is Outcome.PASS
        (call,) = over_conversation(first.in_conversation(Conversation([second]))).run.calls
        assert call == _call()


def test_a_request_that_a_later_run_executes_is_one_call_too() -> None:
    first = replace(_call(), executed=False)
    run = AgentRun(
        trace_id=bytes(16), span_id=None, agent=AgentIdentity(name="agent"), requested_calls=[(0, first)]
    )

    view = over_conversation(run.in_conversation(Conversation([_run(2, _call())]))).run

    assert ([], [_call()]) == (view.requested_calls, list(view.tool_calls))


@pytest.mark.parametrize(
    ("calls", "gone"),
    [
        ([_pending(), _call(amount=7)], {0}),  # a person edited the arguments
        ([_pending(), _pending(), _call()], {0, 1}),  # it still waited in a second run
        ([_pending(), _pending(decision=Decision.DENIED)], {0}),
        ([_pending(), _call(call_id=None)], {0}),  # a span without the id
        ([_pending(), _call(call_id=None, amount=7)], set()),
        ([_pending(), _call("verify")], set()),
        ([_call(), _pending()], set()),  # used again after its result
        ([_call(), _call()], set()),
        ([_pending("refund", "call_0", 5), _call("refund", "call_0", 7)], set()),  # a number within a turn
        ([_pending("refund", "call_0", 5), _call("refund", "call_0", 5)], {0}),
        ([_pending("refund", "call_0", 5), _call("refund", "call_0", None)], {0}),
        ([_pending("refund", None), _call("refund", None)], set()),
    ],
)
def test_which_calls_are_one(calls: list[ToolCall], gone: set[int]) -> None:
    assert gone == set(superseded(calls))


def test_many_waiting_calls_cost_no_more_than_each_a_look() -> None:
    calls = [_pending("refund", f"call_{n}x{n}", n) for n in range(20_000)]
    done = [_call("refund", None, n) for n in range(20_000)]

    assert len(superseded([*calls, *done])) <= 20_000


@pytest.mark.parametrize("decision", [Decision.PENDING, Decision.DENIED])
def test_what_waits_or_was_refused_did_not_fail(decision: Decision) -> None:
    text = '{"error": "This tool call requires confirmation, please approve or reject."}'
    call = _pending(
        decision=decision,
        result=json.loads(text),
        result_text=text,
        result_state=ValueState.PRESENT,
    )

    assert (False, False) == (looks_failed(call), took_effect(call))
    assert _outcomes(_run(1, call))["tool-error-recovery"] is Outcome.PASS


def test_a_verification_that_waits_guards_nothing() -> None:
    verify = _pending("verify", "call_1a2b3c4d5e")

    assert _outcomes(_run(1, verify, _call()))["tool-precedence"] is Outcome.FAIL
    assert _outcomes(_run(1, verify, _pending()))["tool-precedence"] is Outcome.PASS
    assert _outcomes(_run(1, _call("verify", "v"), _pending()))["tool-precedence"] is Outcome.PASS


def test_no_answer_is_due_while_a_call_is_pending() -> None:
    run = _run(1, _pending())
    run.__dict__.update(output="I will ask.", output_state=ValueState.PRESENT)

    output = known_output(run)

    assert isinstance(output, NotEvaluated)
    assert output.reason is NotEvaluatedReason.NOT_APPLICABLE


def test_a_run_line_holds_the_decision() -> None:
    run = _run(1, _pending(), _call(call_id="2", decision=Decision.APPROVED, decision_source="accept"))

    line = run_to_json(GradedRun(run=run, results=[]))

    assert '"decision"' not in json.dumps(run_to_json(GradedRun(run=_run(1, _call()), results=[])))
    assert list(run_from_json(line, "line 1").tool_calls) == [
        replace(call, error=None) for call in run.tool_calls
    ]


def test_a_line_by_hand_needs_only_the_decision() -> None:
    line: Any = {"agent": {"name": "a"}, "tool_calls": [{"name": "refund", "decision": "denied"}]}

    (call,) = run_from_json(line, "line 1").tool_calls

    assert (False, Decision.DENIED) == (call.executed, call.decision)


@pytest.mark.parametrize(
    ("text", "decision", "source"),
    [
        (
            '{"error": "This tool call requires confirmation, please approve or reject."}',
            Decision.PENDING,
            "require_confirmation",
        ),
        ('{"error":"This tool call is rejected."}', Decision.DENIED, "require_confirmation"),
        ("Tool execution was not approved.", Decision.DENIED, "needs_approval"),
        (
            "User rejected the tool call for `refund` with reason: no",
            Decision.DENIED,
            "HumanInTheLoopMiddleware",
        ),
        ("The tool call was denied.", Decision.DENIED, "ToolDenied"),
        ("Error: Tool call invocation was rejected by user.", Decision.DENIED, "approval_mode"),
        ("Tool call was not approved by the user", Decision.DENIED, "requireApproval"),
        ('{"type": "execution-denied", "reason": "no"}', Decision.DENIED, "needsApproval"),
        ("The user doesn't want to take this action right now. STOP what you", Decision.DENIED, "reject"),
        ('{"error":"[Operation Cancelled] Reason: User denied execution."}', Decision.DENIED, "reject"),
        ("Error: request to call tool denied. User reason: no", Decision.DENIED, "requires_approval"),
        ("Function call was rejected by the user", Decision.DENIED, "requires_confirmation"),
        ("Tool execution blocked by hook. Tool: refund", Decision.DENIED, "HookAborted"),
        ("tool cancelled by user", Decision.DENIED, "cancel_tool"),
    ],
)
def test_words_in_place_of_a_result(text: str, decision: Decision, source: str) -> None:
    assert (decision, source) == decision_in_place_of_result(text)


@pytest.mark.parametrize("text", [None, "", "done", 'She said "This tool call is rejected."', "{}"])
def test_other_results_are_no_decision(text: str | None) -> None:
    assert decision_in_place_of_result(text) is None


def test_an_error_is_no_part_of_a_pending_call() -> None:
    assert _pending(error=ToolError(type="x", message="y")).is_held_back
