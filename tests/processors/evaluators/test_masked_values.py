"""Whatever redaction masks, no verdict turns into its opposite: it stays, or is not evaluated."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from processors.evaluators.classification import BinaryClassification
from processors.evaluators.output_match import Contains, ExactMatch, JsonSimilarity, RegexMatch
from processors.evaluators.repeated_calls import DuplicateSideEffect, ToolRepetition
from processors.evaluators.tool_args import ToolArgsFlow, ToolArgsGrounded, ToolArgsSchema
from processors.evaluators.tool_calls import (
    ToolCallArgs,
    ToolCallOutput,
    ToolCallOutputConfig,
    ToolCallOutputCriteria,
)
from processors.evaluators.tool_constraints import ToolConstraints
from processors.evaluators.tool_response_handling import ToolResponseHandling
from processors.evaluators.trajectory import TrajectoryExact, TrajectoryF1
from processors.model import (
    AgentIdentity,
    AgentRun,
    EvaluationError,
    Evaluator,
    JsonValue,
    Message,
    NotEvaluated,
    RunFacts,
    ToolCall,
    decode_arguments,
    decode_result,
    has_mask,
    json_text,
    text_value,
)
from tests.processors.frameworks.test_recordings import NAMES, runs_in

MASKS = ("****", "[REDACTED]", "[Scrubbed due to 'auth']", "<PERSON>", "***", "__REDACTED__")
SAMPLES = 40


def call(name: str, arguments: JsonValue, result: JsonValue) -> ToolCall:
    given, returned = decode_arguments(json_text(arguments)), decode_result(json_text(result))
    return ToolCall(
        name=name,
        call_id=None,
        arguments=given.value,
        arguments_text=given.text,
        arguments_state=given.state,
        result=returned.value,
        result_text=returned.text,
        result_state=returned.state,
    )


def run_of(asked: JsonValue, answered: str, calls: list[ToolCall]) -> AgentRun:
    told, said = decode_result(json_text(asked)), text_value(answered)
    return AgentRun(
        trace_id=bytes(16),
        span_id=bytes(8),
        agent=AgentIdentity(name="a"),
        tool_calls=calls,
        input=told.value,
        input_state=told.state,
        output=said.value,
        output_state=said.state,
        messages=[Message(role="user", content=str(asked)), Message(role="assistant", content=answered)],
    )


def copy_of(run: AgentRun) -> AgentRun:
    calls = [call(one.name, one.arguments, one.result) for one in run.tool_calls]
    return run_of(run.input, run.output if isinstance(run.output, str) else json_text(run.output), calls)


def part_masked(text: str, mask: str, dice: random.Random) -> str:
    first = dice.randrange(len(text) + 1)
    return text[:first] + mask + text[dice.randrange(first, len(text) + 1) :]


def masked(value: JsonValue, mask: str, dice: random.Random) -> JsonValue:
    if isinstance(value, dict) and value:
        key = dice.choice([*value])
        return {**value, key: masked(value[key], mask, dice)}
    if isinstance(value, list) and value:
        place = dice.randrange(len(value))
        return [*value[:place], masked(value[place], mask, dice), *value[place + 1 :]]
    if isinstance(value, str) and has_mask(value):
        return value  # recorded so: nobody masks a part of a mask
    if isinstance(value, str) and value and mask != "***" and dice.random() < 0.5:
        return part_masked(value, mask, dice)
    return mask


def masked_run(run: AgentRun, dice: random.Random) -> AgentRun:
    """`run` with one or two things in it masked."""
    made: list[list[Any]] = [[one.name, one.arguments, one.result] for one in run.tool_calls]
    asked, answered = run.input, str(run.output)
    for what in dice.sample(["input", "output", "arguments", "result"], dice.randint(1, 2)):
        mask = dice.choice(MASKS)
        if what == "input":
            asked = masked(asked, mask, dice)
        elif what == "output":
            answered = str(masked(answered, mask, dice))
        elif made:
            of_call, place = dice.choice(made), 1 if what == "arguments" else 2
            of_call[place] = masked(of_call[place], mask, dice)
    return run_of(asked, answered, [call(*parts) for parts in made])


def checks(run: AgentRun) -> Iterator[Evaluator]:
    """Evaluators whose criteria the run meets, and such that it does not meet."""

    def made(kind: type[Evaluator], config: dict[str, Any], criteria: dict[str, Any] | None) -> Evaluator:
        return kind(
            kind.Config.model_validate(config),
            None if criteria is None or kind.Criteria is None else kind.Criteria.model_validate(criteria),
        )

    answer = str(run.output)
    words = answer.split()[:3] or ["x"]
    for text in (answer, words[0], "never said", words[-1].upper()):
        yield made(ExactMatch, {}, {"expected_output": text})
        yield made(ExactMatch, {"negated": True}, {"expected_output": text})
        yield made(Contains, {}, {"search_text": text})
        yield made(Contains, {"negated": True}, {"search_text": text})
        yield made(Contains, {}, {"ground_truth": text})
        yield made(BinaryClassification, {"positive_class": "x"}, {"expected_class": text})
        yield made(JsonSimilarity, {}, {"expected_output": text})
    for pattern in (r"^\W*\w+", r"\d", r"never", r"^[^*<\[]*$"):
        yield made(RegexMatch, {}, {"pattern": pattern})
    calls = [one for one in run.tool_calls if isinstance(one.arguments, dict)]
    for one in calls[:3]:
        arguments = one.arguments
        assert isinstance(arguments, dict)
        other = dict.fromkeys(arguments, "another")
        for expected in (
            arguments,
            other,
            {**arguments, **{name: {"$type": "string"} for name in arguments}},
        ):
            wanted = {"tool_calls": [{"name": one.name, "args": expected}]}
            for mode in ("any", "every", "last"):
                yield made(ToolCallArgs, {"calls": mode}, wanted)
            yield made(TrajectoryExact, {}, wanted)
            yield made(TrajectoryF1, {"args_match": "partial"}, wanted)
            kind = {"tool": one.name, "args": expected}
            yield made(ToolConstraints, {}, {"constraints": [{"absence": kind}]})
            yield made(ToolConstraints, {}, {"constraints": [{"existence": kind}]})
        for output in (one.result, "another", {"$regex": "^[a-z]+$"}, {"$present": True}):
            yield made(ToolCallOutput, {}, {"tool_outputs": [{"name": one.name, "output": output}]})
        types = {name: {"type": "string", "minLength": 3} for name in arguments}
        yield made(ToolArgsSchema, {}, {"schemas": {one.name: {"properties": types}}})
        yield made(ToolArgsSchema, {}, {"schemas": {one.name: {"additionalProperties": False}}})
        yield made(DuplicateSideEffect, {}, {"tools": [one.name]})
        name = next(iter(arguments), "id")
        flow = {"tool": one.name, "argument": name, "from_tool": "*"}
        yield made(ToolArgsFlow, {}, {"flows": [flow]})
    yield made(ToolRepetition, {"threshold": 2}, None)
    yield made(ToolArgsGrounded, {}, None)
    yield made(ToolResponseHandling, {}, None)


def verdict(evaluator: Evaluator, run: AgentRun) -> bool | str | None:
    try:
        graded = evaluator.evaluate(run, RunFacts())
    except EvaluationError:
        return "error"
    if isinstance(graded, NotEvaluated):
        return None
    return graded.value >= 1.0


def run_text(run: AgentRun) -> str:
    calls = [f"{one.name} {one.arguments_text} -> {one.result_text}" for one in run.tool_calls]
    return f"{run.input!r} -> {run.output!r}; {'; '.join(calls)}"


HAND_MADE = [
    run_of(
        "Pay 25 EUR to Ada Lovelace",
        "I paid 25 EUR to Ada Lovelace twice.",
        [
            call("find", {"name": "Ada Lovelace", "limit": 3}, [{"id": "AX7", "name": "Ada"}, {"id": "BX8"}]),
            call(
                "pay", {"id": "AX7", "amount": 25, "card": {"number": "4111"}}, {"done": True, "ref": "R-1"}
            ),
            call(
                "pay", {"id": "AX7", "amount": 25, "card": {"number": "4111"}}, {"done": True, "ref": "R-2"}
            ),
            call("pay", {"id": "BX8", "amount": 25, "card": {"number": "4112"}}, {"done": False}),
        ],
    ),
    run_of("What is the time?", "noon", [call("now", {}, "noon"), call("now", {"zone": "UTC"}, 12)]),
]


def whole(name: str) -> list[AgentRun]:
    return [copy_of(run) for run in runs_in(name) if isinstance(run.output, (str, dict)) and run.tool_calls]


@pytest.mark.parametrize(
    "run",
    [*HAND_MADE, *[run for name in NAMES[::6] for run in whole(name)[:1]]],
    ids=lambda run: run.agent.name,
)
def test_no_verdict_turns_into_its_opposite(run: AgentRun) -> None:
    dice = random.Random(7)
    evaluators = [*checks(run)]
    before = [verdict(evaluator, run) for evaluator in evaluators]

    for _ in range(SAMPLES):
        changed = masked_run(run, dice)
        is_answer_known = isinstance(changed.output, str)
        for evaluator, known in zip(evaluators, before, strict=True):
            if isinstance(evaluator, ToolResponseHandling) and not is_answer_known:
                continue  # as where an answer was not captured, the rules of errors count alone
            after = verdict(evaluator, changed)
            assert after in (known, None), (evaluator.id, known, after, run_text(changed))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("name", "price", "value"), [("X", {"$any": True}, 1.0), ("Y", {"$any": True}, 0.0), ("X", 4, None)]
)
def test_a_number_that_json_has_no_form_for_is_unknown_and_the_members_beside_it_are_not(
    number: float, name: str, price: JsonValue, value: float | None
) -> None:
    run = run_of("q", "a", [call("quote", {}, {"name": "X", "price": number})])
    expected = {"tool_outputs": [{"name": "quote", "output": {"name": name, "price": price}}]}

    answer = ToolCallOutput(ToolCallOutputConfig(), ToolCallOutputCriteria.model_validate(expected)).evaluate(
        run, RunFacts()
    )

    assert value == (None if isinstance(answer, NotEvaluated) else answer.value)
