"""Evaluations over a conversation: calls by start, and no verdict that a missing run could change."""

from dataclasses import replace
from itertools import permutations

import pytest

from processors.criteria import CriteriaSet, Evaluation, read_criteria
from processors.evaluate import evaluate_run
from processors.model import (
    AgentIdentity,
    AgentRun,
    Conversation,
    NotEvaluatedReason,
    Outcome,
    RunReference,
    Scope,
    ToolCall,
    ValueState,
    over_conversation,
)

_CRITERIA = """
agents:
  "*":
    evaluations:
      - evaluator: tool-precedence
        name: identity-first
        scope: conversation
        criteria: {before: [[verify, refund]]}
      - evaluator: tool-call-count
        name: one-refund
        scope: conversation
        criteria: {tool_calls_count: {refund: ["<=", 1]}}
      - evaluator: tool-call-count
        name: one-refund-in-the-run
        criteria: {tool_calls_count: {refund: ["<=", 1]}}
"""


def _evaluations(text: str = _CRITERIA) -> tuple[Evaluation, ...]:
    return CriteriaSet(read_criteria(text, "criteria.yaml", {}).agents).evaluations_for("agent")


def _run(number: int, *tools: str, start: int | None = None, session: str | None = "s") -> AgentRun:
    """A run that begins `start` seconds after the first moment, by default as many as its number."""
    return AgentRun(
        trace_id=number.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        agent=AgentIdentity(name="agent"),
        session=session,
        start_unix_nano=(number if start is None else start) * 1_000_000_000,
        tool_calls=[ToolCall(name=name) for name in tools],
    )


def _outcomes(run: AgentRun, *others: AgentRun, gap: str = "") -> dict[str, Outcome]:
    known = run.in_conversation(Conversation(others, gap))
    return {result.name: result.outcome for result in evaluate_run(known, _evaluations())}


def _names(run: AgentRun) -> list[str]:
    return [call.name for call in run.calls]


def test_a_call_in_an_earlier_turn_counts() -> None:
    found = _outcomes(_run(3, "refund"), _run(1, "verify"), _run(2))

    assert {"identity-first": Outcome.PASS, "one-refund": Outcome.PASS} == {
        name: found[name] for name in ("identity-first", "one-refund")
    }


def test_what_two_turns_did_together_fails_and_each_of_them_alone_does_not() -> None:
    found = _outcomes(_run(2, "refund"), _run(1, "verify", "refund"))

    assert (Outcome.FAIL, Outcome.PASS) == (found["one-refund"], found["one-refund-in-the-run"])


def test_the_result_names_the_runs_in_order_of_start_and_says_how_many() -> None:
    run = _run(3, "refund").in_conversation(Conversation([_run(2), _run(1, "verify")]))

    first, _, in_run = evaluate_run(run, _evaluations())

    assert ["1", "2", "3"] == [str(int(found.trace_id.hex(), 16)) for found in first.conversation_runs]
    assert first.explanation.startswith("over 3 runs of the conversation; ")
    assert () == in_run.conversation_runs


def test_the_order_of_arrival_changes_nothing() -> None:
    runs = [_run(1, "verify"), _run(2, "refund", "look"), _run(3, "refund"), _run(4, "look")]

    found = set()
    for order in permutations(runs):
        view = over_conversation(order[-1].in_conversation(Conversation(order[:-1])))
        found.add((tuple(_names(view.run)), view.runs, view.gap))

    assert [(("verify", "refund", "look", "refund", "look"), "")] == [(names, gap) for names, _, gap in found]


def test_calls_of_runs_that_overlap_stand_in_order_of_their_starts() -> None:
    caller = replace(
        _run(1),
        tool_calls=[
            ToolCall(name="ask", start_unix_nano=2_000_000_000),
            ToolCall(name="answer", start_unix_nano=9_000_000_000),
        ],
    )
    called = replace(_run(2, start=3), tool_calls=[ToolCall(name="look", start_unix_nano=4_000_000_000)])

    view = over_conversation(called.in_conversation(Conversation([caller])))

    assert ["ask", "look", "answer"] == _names(view.run)


def test_groups_retries_and_requests_stay_with_their_runs() -> None:
    first = replace(
        _run(1),
        tool_calls=[ToolCall(name="a", parallel_group=0), ToolCall(name="b", parallel_group=0)],
        requested_calls=[(0, ToolCall(name="asked", executed=False))],
    )
    second = replace(
        _run(2),
        tool_calls=[
            ToolCall(name="c", parallel_group=0),
            ToolCall(name="d", parallel_group=0),
            ToolCall(name="c", attempt=2, retry_of=0),
        ],
        requested_calls=[(3, ToolCall(name="last", executed=False))],
    )

    view = over_conversation(second.in_conversation(Conversation([first]))).run

    assert ["asked", "a", "b", "c", "d", "c", "last"] == _names(view)
    assert [0, 0, 1, 1, None] == [call.parallel_group for call in view.tool_calls]
    assert [2] == [call.retry_of for call in view.tool_calls if call.retry_of is not None]
    assert [(0, "asked"), (5, "last")] == [(before, call.name) for before, call in view.requested_calls]


def test_the_run_that_is_graded_stays_as_it_is() -> None:
    run = _run(2, "refund").in_conversation(Conversation([_run(1, "refund")]))

    evaluate_run(run, _evaluations())

    assert ["refund"] == _names(run)
    assert run.complete


@pytest.mark.parametrize("place", ["earlier", "own"])
def test_an_incomplete_run_leaves_only_what_it_could_not_change(place: str) -> None:
    cut = replace(_run(1, "refund"), complete=False, incomplete_reason="incomplete_trace")
    runs = [_run(2, "refund"), cut] if place == "earlier" else [cut, _run(2, "refund")]
    known = runs[0].in_conversation(Conversation(runs[1:]))

    identity, one, _ = evaluate_run(known, _evaluations())

    assert (Outcome.NOT_EVALUATED, NotEvaluatedReason.INCOMPLETE_TRACE) == (identity.outcome, identity.reason)
    assert "spans of " in identity.explanation
    assert 2 == len(identity.conversation_runs)
    assert Outcome.FAIL is one.outcome


def test_runs_that_may_be_missing_leave_only_what_they_could_not_change() -> None:
    known = _run(2, "refund").in_conversation(Conversation([_run(1, "refund")], "it is not known"))

    identity, one, _ = evaluate_run(known, _evaluations())

    assert (Outcome.NOT_EVALUATED, NotEvaluatedReason.INTERRUPTED) == (identity.outcome, identity.reason)
    assert "runs of the conversation may be missing: it is not known" in identity.explanation
    assert Outcome.FAIL is one.outcome


def test_without_a_conversation_only_the_run_itself_can_decide() -> None:
    once, twice = _run(1, "refund", session=None), _run(2, "refund", "refund", session=None)

    assert NotEvaluatedReason.CONTENT_NOT_CAPTURED is evaluate_run(once, _evaluations())[1].reason
    assert Outcome.FAIL is evaluate_run(twice, _evaluations())[1].outcome


def test_where_nobody_looked_for_other_runs_nothing_passes() -> None:
    assert NotEvaluatedReason.INTERRUPTED is evaluate_run(_run(1, "verify"), _evaluations())[0].reason


def test_when_and_templates_go_by_the_run_that_is_graded() -> None:
    evaluations = _evaluations("""
agents:
  "*":
    evaluations:
      - evaluator: tool-call-count
        scope: conversation
        when: {input: {action: pay}}
        criteria: {tool_calls_count: {refund: ["=", 1]}}
""")
    paying = replace(_run(2), input={"action": "pay"}, input_state=ValueState.PRESENT)

    (found,) = evaluate_run(paying.in_conversation(Conversation([_run(1, "refund")])), evaluations)

    assert Outcome.PASS is found.outcome
    assert [] == evaluate_run(replace(paying, input={"action": "ask"}), evaluations)


def test_constraints_on_messages_are_about_single_runs() -> None:
    text = """\
agents:
  a:
    evaluations:
      - evaluator: tool-constraints
        scope: conversation
        criteria: {constraints: [{precedence: [{message: {role: user}}, refund]}]}
"""

    (problem,) = read_criteria(text, "c.yaml", {}, strict=False).problems

    assert "agents.a.evaluations[0].scope" == problem.path
    assert "messages, the answer and model turns are known of single runs: expected run" == problem.message


def test_what_cannot_have_the_scope_is_refused_with_those_that_can() -> None:
    text = "agents: {a: {evaluations: [{evaluator: run-error, scope: conversation}]}}"

    (problem,) = read_criteria(text, "c.yaml", {}, strict=False).problems

    assert "agents.a.evaluations[0].scope" == problem.path
    assert problem.message.startswith("run-error looks at more than calls, and cannot grade a conversation; ")
    assert "tool-precedence" in problem.message
    assert "tool-known" not in problem.message


def test_the_scope_is_part_of_what_a_verdict_is_by() -> None:
    over, _, alone = _evaluations()

    assert Scope.CONVERSATION is over.scope
    assert not over.is_plain
    assert alone.is_plain
    hashes = {
        evaluation.criteria_hash
        for text in (_CRITERIA, _CRITERIA.replace("scope: conversation", "scope: run"))
        for evaluation in _evaluations(text)
        if evaluation.name == "one-refund"
    }
    assert 2 == len(hashes)


def test_a_reference_is_read_as_it_is_written() -> None:
    for reference in (RunReference(b"\1" * 16, b"\2" * 8), RunReference(b"\1" * 16, None)):
        assert reference == RunReference.parsed(str(reference))
