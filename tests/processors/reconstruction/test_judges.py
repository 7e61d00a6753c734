"""Guardrails, evaluators and judges: what models do below them is no turn of the agent that is judged."""

import json

import pytest

from processors.model import JsonValue
from processors.spans import RawSpan
from tests.support.agent_spans import agent, envelope, model, runs_of, span, tool

SPANS_OF_JUDGES: dict[str, tuple[dict[str, JsonValue], str]] = {
    "openinference guardrail": ({"openinference.span.kind": "GUARDRAIL"}, "s"),
    "openinference evaluator": ({"openinference.span.kind": "EVALUATOR"}, "s"),
    "genai conventions": ({"gen_ai.operation.name": "apply_guardrail"}, "s"),
    "a guard of traceloop": ({"gen_ai.operation.name": "guard", "gen_ai.guardrail.name": "g"}, "s"),
    "an agent without a run": (
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.guardrail.triggered": True},
        "s",
    ),
    "langfuse guardrail": ({"langfuse.observation.type": "guardrail"}, "s"),
    "langfuse evaluator": ({"langfuse.observation.type": "evaluator"}, "s"),
    "mlflow guardrail": ({"mlflow.spanType": '"GUARDRAIL"'}, "s"),
    "mlflow evaluator": ({"mlflow.spanType": '"EVALUATOR"'}, "s"),
    "logfire guardrail": ({"logfire.msg_template": "Guardrail {name!r} {triggered=}"}, "s"),
    "pydantic evals": ({"logfire.msg_template": "evaluator: {evaluator_name}"}, "pydantic-evals"),
    "agentops": ({"agentops.span.kind": "guardrail"}, "s"),
    "voltagent guardrail": ({"span.type": "guardrail", "input": "q"}, "s"),
    "voltagent scorer": ({"span.type": "scorer", "input": "q"}, "s"),
    "mastra processor": ({"mastra.span.type": "processor_run"}, "s"),
    "mastra scorer": ({"mastra.span.type": "scorer_run"}, "s"),
    "laminar": ({"lmnr.span.type": "EVALUATOR"}, "s"),
    "trulens": ({"ai.observability.span_type": "guardrail"}, "s"),
    "nemo agent toolkit": ({"nat.event_type": "GUARDRAIL_START"}, "s"),
    "genkit": ({"genkit:type": "action", "genkit:metadata:subtype": "evaluator"}, "s"),
}


def turn(number: int, parent: int, at: tuple[int, int], asked: str, answered: str, tokens: int) -> RawSpan:
    fields: dict[str, JsonValue] = {
        "gen_ai.input.messages": said("user", asked),
        "gen_ai.output.messages": said("assistant", answered),
        "gen_ai.usage.input_tokens": tokens,
        "gen_ai.usage.output_tokens": 1,
    }
    return model(number, parent, at, **fields)


def said(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def judge(name: str, at: tuple[int, int], number: int = 3, parent: int = 1) -> RawSpan:
    fields, scope = SPANS_OF_JUDGES[name]
    return span(number, parent, "check", fields, at=at, of=envelope(scope=scope))


@pytest.mark.parametrize("name", SPANS_OF_JUDGES)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_judges_model_call_is_neither_input_nor_answer_but_costs_tokens(name: str, is_first: bool) -> None:
    checked = (1, 9) if is_first else (20, 29)
    spans = [
        agent(1, None, "a"),
        turn(2, 1, (10, 19), "Q", "Answer", 10),
        judge(name, checked),
        turn(4, 3, checked, "Is this safe?", "SAFE", 900),
    ]

    (run,) = runs_of(spans)

    assert ("Q", "Answer") == (run.input, run.output)
    assert run.usage is not None
    assert (910, 2) == (run.usage.input_tokens, run.usage.output_tokens)
    assert 2 == len(run.model_calls)


@pytest.mark.parametrize("name", ["openinference guardrail", "genai conventions"])
def test_what_a_judge_asks_for_is_no_request_of_the_agent(name: str) -> None:
    asked = [{"type": "tool_call", "id": "c1", "name": "report", "arguments": {}}]
    spans = [
        agent(1, None, "a"),
        turn(2, 1, (1, 9), "Q", "Answer", 10),
        judge(name, (10, 20)),
        model(
            4, 3, (11, 19), **{"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": asked}])}
        ),
    ]

    (run,) = runs_of(spans)

    assert ([], []) == (list(run.tool_calls), list(run.requested_calls))
    assert "Answer" == run.output


@pytest.mark.parametrize("judging", ["judge", "a"])
def test_an_agent_that_judges_has_a_run_of_its_own(judging: str) -> None:
    spans = [
        agent(1, None, "a"),
        turn(2, 1, (1, 9), "Q", "Answer", 10),
        judge("openinference guardrail", (10, 30)),
        agent(4, 3, judging, (11, 29)),
        tool(5, 4, "look_up", (12, 14)),
        turn(6, 4, (15, 28), "Is this safe?", "SAFE", 900),
    ]

    judged, judges = runs_of(spans)

    assert ("Answer", 0, 10) == (
        judged.output,
        len(judged.tool_calls),
        judged.usage and judged.usage.input_tokens,
    )
    assert ("SAFE", 1, judging) == (judges.output, len(judges.tool_calls), judges.agent.name)


def test_a_judge_within_the_turn_that_it_guards_takes_no_turn_away() -> None:
    spans = [
        agent(1, None, "a"),
        turn(2, 1, (1, 40), "Q", "Answer", 10),
        judge("genai conventions", (20, 30), parent=2),
        turn(4, 3, (21, 29), "Is this safe?", "SAFE", 900),
    ]

    (run,) = runs_of(spans)

    assert "Answer" == run.output
    assert run.usage is not None
    assert 910 == run.usage.input_tokens
