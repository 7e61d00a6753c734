"""What every evaluator promises, held against each one that is discovered.

A property draws the evaluator along with the run; the slow tests hold it against each evaluator by itself.
"""

import json
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from msgspec import structs

from docs.generate.evaluators import example_file, example_of, graded_example
from processors.criteria import Evaluation, evaluator_types, read_criteria
from processors.evaluate import evaluate_run
from processors.model import (
    AgentRun,
    EvaluationError,
    Evaluator,
    Message,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    RunFacts,
    Score,
    ToolCall,
    ToolError,
    ValueState,
)
from tests.strategies import agent_runs, evaluators, models, of_model_calls

_TYPES = list(evaluator_types().values())
_EXPLAINED_ERRORS = {error.__name__ for error in EvaluationError.__subclasses__()}
_ABSENT = ValueState.ABSENT


def _needs_criteria(kind: type[Evaluator]) -> bool:
    if kind.Criteria is None:
        return False
    try:
        kind.Criteria.model_validate({})
    except ValueError:
        return True
    return False


def _answer(evaluator: Evaluator, run: AgentRun) -> Score | NotEvaluated | str:
    """The answer of `evaluator`, or the text by which it says that its criteria do not fit the run."""
    try:
        return evaluator.evaluate(run, RunFacts())
    except EvaluationError as error:
        return str(error)


def _fewer_model_calls(run: AgentRun, data: st.DataObject) -> dict[str, Any]:
    made = run.model_calls
    keep = data.draw(st.lists(st.booleans(), min_size=len(made), max_size=len(made)))
    return of_model_calls([call for call, kept in zip(made, keep, strict=True) if kept])


@pytest.fixture(params=_TYPES, ids=[kind.id for kind in _TYPES])
def kind(request: pytest.FixtureRequest) -> type[Evaluator]:
    discovered: type[Evaluator] = request.param
    return discovered


class Kinds(NamedTuple):
    """The evaluators that a property is held against, and with how many examples."""

    types: list[type[Evaluator]]
    examples: settings

    def any(self) -> st.SearchStrategy[type[Evaluator]]:
        return st.sampled_from(self.types)

    def evaluators(self) -> st.SearchStrategy[Evaluator]:
        return self.any().flatmap(evaluators)


@pytest.fixture(
    params=[
        pytest.param(Kinds(_TYPES, settings(max_examples=200, deadline=None)), id="any"),
        *(
            pytest.param(
                Kinds([kind], settings(max_examples=40, deadline=None)), id=kind.id, marks=pytest.mark.slow
            )
            for kind in _TYPES
        ),
    ]
)
def kinds(request: pytest.FixtureRequest) -> Kinds:
    drawn: Kinds = request.param
    return drawn


def test_the_evaluators_of_tool_calls_are_found() -> None:
    found = set(evaluator_types())

    assert {
        "tool-call-args",
        "tool-call-count",
        "tool-call-order",
        "tool-call-output",
        "tool-error-recovery",
        "tool-repetition",
    } <= found


def test_any_run_gets_a_score_between_0_and_1_or_is_told_why_not(kinds: Kinds) -> None:
    @kinds.examples
    @given(evaluator=kinds.evaluators(), run=agent_runs())
    def check(evaluator: Evaluator, run: AgentRun) -> None:
        answer = _answer(evaluator, run)

        if isinstance(answer, Score):
            assert 0.0 <= answer.value <= 1.0
            json.dumps(dict(answer.details), allow_nan=False)
        elif isinstance(answer, str):
            assert answer
        else:
            assert isinstance(answer.reason, NotEvaluatedReason)
            assert answer.text

    check()


def test_the_same_run_gets_the_same_answer_also_from_a_second_instance(kinds: Kinds) -> None:
    @kinds.examples
    @given(kind=kinds.any(), data=st.data(), run=agent_runs(), other=agent_runs())
    def check(kind: type[Evaluator], data: st.DataObject, run: AgentRun, other: AgentRun) -> None:
        config = data.draw(models(kind.Config))
        criteria = None if kind.Criteria is None else data.draw(models(kind.Criteria))
        try:
            first = kind(config, criteria)
        except ValueError:
            return
        second = kind(config, criteria)
        expected = _answer(first, run)

        _answer(second, other)

        assert expected == _answer(first, run) == _answer(second, run)

    check()


def test_no_further_call_moves_the_score_out_of_what_was_attainable(kinds: Kinds) -> None:
    @kinds.examples
    @given(evaluator=kinds.evaluators(), run=agent_runs(), data=st.data())
    def check(evaluator: Evaluator, run: AgentRun, data: st.DataObject) -> None:
        keep = data.draw(st.lists(st.booleans(), min_size=len(run.tool_calls), max_size=len(run.tool_calls)))
        calls = [call for call, kept in zip(run.tool_calls, keep, strict=True) if kept]
        partial = replace(run, tool_calls=calls, complete=False, **_fewer_model_calls(run, data))

        lowest, highest = evaluator.attainable(partial)

        assert 0.0 <= lowest <= highest <= 1.0
        for answer in (_answer(evaluator, partial), _answer(evaluator, run)):
            if isinstance(answer, Score):
                assert lowest <= answer.value <= highest

    check()


def test_a_call_that_was_only_requested_is_one_wherever_telemetry_reports_it(kinds: Kinds) -> None:
    @kinds.examples
    @given(evaluator=kinds.evaluators(), run=agent_runs())
    def check(evaluator: Evaluator, run: AgentRun) -> None:
        executed = [call for call in run.tool_calls if call.executed]
        requested = []
        before = 0
        for call in run.tool_calls:
            if call.executed:
                before += 1
            else:
                requested.append((before, call))

        reported_apart = replace(run, tool_calls=executed, requested_calls=requested)

        assert list(run.tool_calls) == list(reported_apart.calls)
        assert _answer(evaluator, run) == _answer(evaluator, reported_apart)
        assert evaluator.attainable(run) == evaluator.attainable(reported_apart)

    check()


def test_a_call_that_turns_out_to_be_executed_moves_no_score_out_of_what_was_attainable(
    kinds: Kinds,
) -> None:
    @kinds.examples
    @given(evaluator=kinds.evaluators(), run=agent_runs(), data=st.data())
    def check(evaluator: Evaluator, run: AgentRun, data: st.DataObject) -> None:
        early = [
            structs.replace(
                call, executed=False, error=None, result=None, result_text=None, result_state=_ABSENT
            )
            if data.draw(st.booleans())
            else call
            for call in run.tool_calls
        ]

        lowest, highest = evaluator.attainable(replace(run, tool_calls=early, complete=False))

        answer = _answer(evaluator, run)
        if isinstance(answer, Score):
            assert lowest <= answer.value <= highest

    check()


def test_an_incomplete_run_passes_or_fails_only_as_the_complete_one_does(kinds: Kinds) -> None:
    @kinds.examples
    @given(evaluator=kinds.evaluators(), run=agent_runs(), data=st.data())
    def check(evaluator: Evaluator, run: AgentRun, data: st.DataObject) -> None:
        keep = data.draw(st.lists(st.booleans(), min_size=len(run.tool_calls), max_size=len(run.tool_calls)))
        calls = [call for call, kept in zip(run.tool_calls, keep, strict=True) if kept]
        threshold = data.draw(st.sampled_from((0.0, 0.4, 0.5, 1.0)))
        evaluation = Evaluation(name="check", evaluator=evaluator, pass_threshold=threshold)

        partial = replace(run, tool_calls=calls, complete=False, **_fewer_model_calls(run, data))
        (early,) = evaluate_run(partial, [evaluation])
        (final,) = evaluate_run(run, [evaluation])

        assert {early.error_type, final.error_type} <= {None, *_EXPLAINED_ERRORS}
        if Outcome.NOT_EVALUATED not in (early.outcome, final.outcome):
            assert final.outcome is early.outcome

    check()


def test_configuration_and_criteria_survive_a_round_trip_in_either_spelling(kinds: Kinds) -> None:
    @kinds.examples
    @given(kind=kinds.any(), data=st.data(), by_alias=st.booleans())
    def check(kind: type[Evaluator], data: st.DataObject, by_alias: bool) -> None:
        for model in (kind.Config, kind.Criteria):
            if model is not None:
                written = data.draw(models(model))

                read = model.model_validate(json.loads(written.model_dump_json(by_alias=by_alias)))

                assert written == read

    check()


@pytest.mark.parametrize(
    "demanding", [kind for kind in _TYPES if _needs_criteria(kind)], ids=lambda kind: str(kind.id)
)
def test_an_evaluator_that_needs_criteria_refuses_to_be_made_without(demanding: type[Evaluator]) -> None:
    config = find(models(demanding.Config), lambda _: True)

    with pytest.raises(ValueError, match=demanding.id):
        demanding(config, None)


def test_an_unknown_key_is_refused(kind: type[Evaluator]) -> None:
    with pytest.raises(ValueError, match="strickt"):
        kind.Config.model_validate({"strickt": True})


def test_a_class_documents_its_rule_and_an_example(kind: type[Evaluator]) -> None:
    assert "score" in (kind.__doc__ or "")
    assert "score" in example_of(kind).text


_SECRET = "hidden-4711"


@pytest.mark.parametrize(
    "kind", [kind for kind in evaluator_types().values() if not kind.quotes_content], ids=lambda kind: kind.id
)
def test_what_says_that_it_quotes_nothing_quotes_nothing(kind: type[Evaluator]) -> None:
    document = read_criteria(example_file(kind), "example", {})
    (evaluation,) = document.agents[0].evaluations
    run = graded_example(kind).run
    calls = [call for each in run.tool_calls for call in _with_secrets(each)]
    secret = replace(
        run,
        tool_calls=calls,
        input={"question": _SECRET},
        input_state=ValueState.PRESENT,
        output=_SECRET,
        output_state=ValueState.PRESENT,
        messages=[Message(role="user", content=_SECRET), Message(role="assistant", content=_SECRET)],
        session=_SECRET,
    )

    for graded in (run, secret, replace(secret, tool_calls=calls[::-1]), replace(secret, tool_calls=())):
        (result,) = evaluate_run(graded, [evaluation])
        assert not result.quotes_content
        assert result.explanation
        assert _SECRET not in result.explanation


def _with_secrets(call: ToolCall) -> list[ToolCall]:
    """The call with content that must not be shown, ended well and ended in an error, twice each."""
    known = structs.replace(
        call,
        arguments={"a": _SECRET},
        arguments_text=f'{{"a": "{_SECRET}"}}',
        arguments_state=ValueState.PRESENT,
        result={"error": _SECRET},
        result_text=f'{{"error": "{_SECRET}"}}',
        result_state=ValueState.PRESENT,
    )
    failed = structs.replace(known, error=ToolError(type="", message=_SECRET))
    return [known, failed, known, failed]
