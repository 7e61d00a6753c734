"""Evaluations over a trace: the calls of all its agents, made once, for the run that stands for it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from processors.criteria import CriteriaSet, applied_criteria, read_criteria
from processors.evaluate import evaluate_run
from processors.model import (
    AgentIdentity,
    AgentRun,
    EvaluationResult,
    FinishReason,
    ModelCall,
    NotEvaluatedReason,
    Outcome,
    Scope,
    TokenUsage,
    ToolCall,
    WholeTrace,
    over_trace,
)
from processors.reconstruction import reconstruct
from processors.spans import RawSpan
from tests.support.agent_spans import MILLISECOND, TRACE_ID, agent, envelope, span, span_id, tool

_CRITERIA = """
agents:
  KEY:
    evaluations:
      - evaluator: tool-constraints
        name: reviewed
        scope: trace
        criteria:
          constraints:
            - precedence: [{tool: review, agent: reviewer}, {tool: publish, agent: publisher}]
      - evaluator: tool-constraints
        name: nobody-approves-own-work
        scope: trace
        criteria:
          constraints:
            - {not_response: [approve, execute], where: first.agent == second.agent}
      - {evaluator: token-budget, scope: trace, criteria: {max_total_tokens: 100}}
      - {evaluator: cost-budget, scope: trace, criteria: {max_cost: 1}}
      - {evaluator: model-allowed, scope: trace, criteria: {allow: [small]}}
      - {evaluator: tool-call-budget, criteria: {max_calls: 1}}
"""


def _criteria(key: str = "planner") -> CriteriaSet:
    return CriteriaSet(read_criteria(_CRITERIA.replace("KEY", key), "criteria.yaml", {}).agents)


def _run(
    number: int,
    name: str,
    *tools: str,
    parent: str | None = "planner",
    tokens: int | None = 10,
    **more: Any,
) -> AgentRun:
    """A run that begins `number` seconds after the first moment and calls tools at that moment."""
    usage = None if tokens is None else TokenUsage(tokens, 0)
    fields: dict[str, Any] = {
        "trace_id": TRACE_ID,
        "span_id": span_id(number),
        "agent": AgentIdentity(name=name),
        "parent_agent": parent,
        "start_unix_nano": number * 1_000_000_000,
        "tool_calls": [ToolCall(name=each) for each in tools],
        "model_calls": [ModelCall(model="small", usage=usage)],
        "models": ("small",),
        "usage": usage,
        "cost": 0.25,
    }
    return AgentRun(**fields | more)


def _graded(
    runs: Sequence[AgentRun], criteria: CriteriaSet, gap: str = ""
) -> list[tuple[AgentRun, dict[str, EvaluationResult]]]:
    trace = WholeTrace(runs, gap)
    return [
        (run, {result.name: result for result in evaluate_run(run, evaluations, trace=trace)})
        for run, evaluations in applied_criteria(runs, criteria)
    ]


def _outcomes(*runs: AgentRun, gap: str = "") -> dict[str, Outcome]:
    """How the evaluations of the planner end."""
    (_, found), *_ = _graded(runs, _criteria(), gap)
    return {name: result.outcome for name, result in found.items()}


_PLANNER = _run(1, "planner", "plan", parent=None)


def test_calls_of_all_agents_are_one_sequence_in_order_of_start_each_with_its_agent() -> None:
    runs = [
        replace(
            _PLANNER,
            tool_calls=[
                ToolCall(name="ask", start_unix_nano=2_000_000_000),
                ToolCall(name="publish", start_unix_nano=9_000_000_000),
            ],
        ),
        _run(3, "reviewer", "review"),
    ]

    view = over_trace(runs[0], WholeTrace(runs[::-1]))

    shown = [(call.name, call.agent or view.run.agent.name) for call in view.run.calls]
    assert [("ask", "planner"), ("review", "reviewer"), ("publish", "planner")] == shown
    assert ["plan"] == [call.name for call in _PLANNER.calls]


def test_calls_that_ran_in_parallel_stay_together_among_those_of_other_agents() -> None:
    asked = [
        ToolCall(name=name, parallel_group=0, start_unix_nano=start * 1_000_000_000)
        for name, start in (("a", 2), ("b", 6))
    ]
    later = ToolCall(name="c", start_unix_nano=8_000_000_000)
    runs = [replace(_PLANNER, tool_calls=[*asked, later]), _run(4, "reviewer", "review")]

    calls = over_trace(runs[0], WholeTrace(runs)).run.calls

    assert [("a", 0), ("b", 0), ("review", None), ("c", None)] == [
        (call.name, call.parallel_group) for call in calls
    ]


def test_what_two_agents_do_is_graded_once_and_on_the_outermost_run() -> None:
    good = [_PLANNER, _run(2, "reviewer", "review"), _run(3, "publisher", "publish")]
    (_, found), *others = _graded(good, _criteria("'*'"))

    assert set(found) == {
        "reviewed", "nobody-approves-own-work", "token-budget", "cost-budget", "model-allowed",
        "tool-call-budget",
    }  # fmt: skip
    assert [{"tool-call-budget"}] * 2 == [set(of_run) for _, of_run in others]
    assert {Outcome.PASS} == {result.outcome for result in found.values()}
    assert (Scope.TRACE, ()) == (found["reviewed"].scope, found["reviewed"].conversation_runs)
    assert found["reviewed"].explanation.startswith("over 3 runs of the trace; ")
    assert Scope.RUN is found["tool-call-budget"].scope


def test_whose_call_it_is_decides() -> None:
    reviewer, publisher = _run(2, "reviewer", "review"), _run(3, "publisher", "publish")

    assert Outcome.FAIL is _outcomes(_PLANNER, _run(4, "reviewer", "review"), publisher)["reviewed"]
    assert (
        Outcome.FAIL is _outcomes(_PLANNER, replace(reviewer, agent=publisher.agent), publisher)["reviewed"]
    )
    name = "nobody-approves-own-work"
    assert Outcome.FAIL is _outcomes(_PLANNER, _run(2, "clerk", "approve", "execute"))[name]
    assert Outcome.PASS is _outcomes(_PLANNER, _run(2, "boss", "approve"), _run(3, "clerk", "execute"))[name]
    (_, found), *_ = _graded([_PLANNER, _run(2, "clerk", "approve", "execute")], _criteria())
    assert "call 2, approve of clerk: execute after it" in found[name].explanation
    assert "(call 3, execute of clerk; " in found[name].explanation


def test_a_call_that_names_no_agent_is_that_of_its_run_whatever_stands_for_the_trace() -> None:
    runs = [_run(number, "clerk", name, parent=None) for number, name in enumerate(("approve", "execute"), 1)]
    runs = [replace(run, resource={"service.name": "shop"}) for run in runs]

    *_, (standing, found) = _graded(runs, _criteria("shop"))

    assert ("shop", True) == (standing.agent.name, standing.stands_for_trace)
    assert Outcome.FAIL is found["nobody-approves-own-work"].outcome
    view = over_trace(standing, WholeTrace(runs)).run
    assert ["clerk", "clerk"] == [call.agent for call in view.calls]


def test_a_called_agent_stands_for_no_trace() -> None:
    (_, outer), (_, inner) = _graded(
        [_run(1, "boss", parent=None), _PLANNER._with(parent_agent="boss")], _criteria()
    )

    assert ({}, {"tool-call-budget"}) == (outer, set(inner))


def test_of_several_outermost_runs_the_first_that_the_key_names_has_the_verdict() -> None:
    runs = [_run(1, "titler", parent=None), _run(2, "planner", parent=None), _run(3, "planner", parent=None)]

    first, second, third = (set(found) for _, found in _graded(runs, _criteria()))

    assert (set(), {"tool-call-budget"}) == (first, third)
    assert "reviewed" in second


@pytest.mark.parametrize(
    ("change", "outcomes"),
    [
        ({}, ("pass", "pass", "pass")),
        ({"tokens": 95}, ("fail", "pass", "pass")),
        ({"cost": 0.9}, ("pass", "fail", "pass")),
        ({"tokens": None}, ("not_evaluated", "pass", "pass")),
        ({"tokens": None, "cost": None}, ("not_evaluated", "not_evaluated", "pass")),
        ({"model_calls": (), "models": (), "usage": None, "cost": None}, ("pass", "pass", "pass")),
        ({"model_calls": (), "models": ("large",)}, ("pass", "pass", "fail")),
        # It called something, and no model is shown that it asked.
        (
            {
                "model_calls": (),
                "models": (),
                "usage": None,
                "cost": None,
                "tool_calls": [ToolCall(name="a")],
            },
            ("not_evaluated", "not_evaluated", "not_evaluated"),
        ),
    ],
)
def test_tokens_costs_and_models_are_those_of_all_runs(
    change: dict[str, Any], outcomes: tuple[str, ...]
) -> None:
    found = _outcomes(_PLANNER, _run(2, "reviewer", **change))

    assert outcomes == tuple(found[name] for name in ("token-budget", "cost-budget", "model-allowed"))


def test_a_total_that_may_include_called_agents_is_not_added_up() -> None:
    total = _PLANNER._with(model_calls=())

    assert Outcome.NOT_EVALUATED is _outcomes(total, _run(2, "reviewer"))["token-budget"]
    assert Outcome.PASS is _outcomes(total)["token-budget"]


@pytest.mark.parametrize("reason", ["incomplete_trace", "content_not_captured"])
def test_an_incomplete_run_leaves_only_what_it_could_not_change(reason: str) -> None:
    cut = _run(2, "reviewer", complete=False, incomplete_reason=reason)
    unreviewed = (_run(1, "planner", "plan", parent=None), cut, _run(3, "publisher", "publish"))

    (_, found), *_ = _graded(unreviewed, _criteria())

    assert (Outcome.NOT_EVALUATED, reason) == (found["reviewed"].outcome, found["reviewed"].reason)
    own_work = (_PLANNER, cut, _run(3, "clerk", "approve", "execute"))
    assert Outcome.FAIL is _outcomes(*own_work)["nobody-approves-own-work"]


def test_what_was_graded_before_of_a_trace_cannot_be_missed() -> None:
    (_, found), *_ = _graded([_PLANNER, _run(3, "publisher", "publish")], _criteria(), "it is not here")

    assert NotEvaluatedReason.INTERRUPTED is found["reviewed"].reason
    assert "runs of the trace may be missing: it is not here" in found["reviewed"].explanation


def test_conditions_look_at_the_trace() -> None:
    text = """
agents:
  planner:
    evaluations:
      - evaluator: tool-call-count
        scope: trace
        when: {called: refund}
        criteria: {tool_calls_count: {review: [">=", 1]}}
"""
    criteria = CriteriaSet(read_criteria(text, "criteria.yaml", {}).agents)

    (_, refunded), _ = _graded([_PLANNER, _run(2, "clerk", "refund")], criteria)
    (_, not_refunded), _ = _graded([_PLANNER, _run(2, "clerk", "look")], criteria)

    assert Outcome.FAIL is refunded["tool-call-count"].outcome
    assert {} == not_refunded


def _rebuilt(spans: Sequence[RawSpan]) -> list[AgentRun]:
    return reconstruct(spans, trace_id=TRACE_ID, reason=FinishReason.ROOT)


def _crew(workflow: str) -> list[RawSpan]:
    return [
        span(1, None, "POST /articles", at=(0, 100), of=envelope("desk")),
        span(2, 1, workflow, {"openinference.span.kind": "CHAIN", "x": "y"}, at=(1, 99)),
        agent(3, 2, "reviewer", (2, 40)),
        tool(4, 3, "review", at=(5, 6)),
        agent(5, 2, "publisher", (50, 90)),
        tool(6, 5, "publish", at=(55, 56)),
    ]


def test_a_service_stands_for_a_trace_of_several_agents_on_its_local_root() -> None:
    *runs, (standing, found) = _graded(_rebuilt(_crew("crew")), _criteria("desk"))

    assert [{}, {}] == [of_run for _, of_run in runs]
    assert Outcome.PASS is found["reviewed"].outcome
    assert (span_id(1), span_id(1), "desk") == (
        standing.span_id,
        standing.carrier_span_id,
        standing.agent.name,
    )
    assert (0, 100 * MILLISECOND) == (standing.start_unix_nano, standing.end_unix_nano)
    assert ((), "tool-call-budget" in found) == (tuple(standing.calls), False)


def test_a_workflow_stands_for_it_before_the_service() -> None:
    spans = _crew("crew")
    spans[1] = span(
        2, 1, "crew", {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "crew"}, at=(1, 99)
    )

    *_, (standing, found) = _graded(_rebuilt(spans), _criteria("crew"))

    assert ("crew", span_id(1)) == (standing.agent.name, standing.carrier_span_id)
    assert Outcome.PASS is found["reviewed"].outcome


def test_what_only_single_runs_have_is_refused() -> None:
    text = """\
agents:
  a:
    evaluations:
      - {evaluator: run-error, scope: trace}
      - evaluator: tool-constraints
        scope: trace
        criteria: {constraints: [{not_parallel: ["write_*", "write_*"]}]}
"""

    first, second = read_criteria(text, "c.yaml", {}, strict=False).problems

    assert first.message.startswith(
        "run-error looks at more than calls, and cannot grade a trace; these can: "
    )
    assert "cost-budget" in first.message
    assert "what runs in parallel is known of single runs: expected run" == second.message


def test_an_evaluation_that_two_agents_repeat_is_made_for_each() -> None:
    entry = {"evaluator": "tool-call-budget", "scope": "trace", "criteria": {"max_calls": 1}}
    content = {"agents": {name: {"evaluations": [entry]} for name in ("planner", "writer")}}
    criteria = CriteriaSet(read_criteria(json.dumps(content), "criteria.json", {}).agents)

    graded = _graded([_PLANNER, _run(2, "writer", "write", parent=None)], criteria)

    assert [["tool-call-budget"], ["tool-call-budget"]] == [list(results) for _, results in graded]
