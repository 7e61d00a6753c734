"""What every evaluator promises, held against each one that is found."""

import json
from dataclasses import replace

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from processors.criteria.agent_criteria import Evaluation
from processors.criteria.evaluator_discovery import evaluator_types
from processors.evaluate import evaluate_run
from processors.model.agent_run import AgentRun, ValueState
from processors.model.evaluation_error import EvaluationError
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Outcome, Score
from processors.model.evaluator import Evaluator, RunFacts
from tests.strategies import agent_runs, evaluators, models

_TYPES = list(evaluator_types().values())
_EXPLAINED_ERRORS = {error.__name__ for error in EvaluationError.__subclasses__()}
_ABSENT = ValueState.ABSENT
_EXAMPLES = settings(max_examples=40, deadline=None)


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


@pytest.fixture(params=_TYPES, ids=[kind.id for kind in _TYPES])
def kind(request: pytest.FixtureRequest) -> type[Evaluator]:
    found: type[Evaluator] = request.param
    return found


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


def test_any_run_gets_a_score_between_0_and_1_or_is_told_why_not(kind: type[Evaluator]) -> None:
    @_EXAMPLES
    @given(evaluator=evaluators(kind), run=agent_runs())
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


def test_the_same_run_gets_the_same_answer_also_from_a_second_instance(kind: type[Evaluator]) -> None:
    @_EXAMPLES
    @given(data=st.data(), run=agent_runs(), other=agent_runs())
    def check(data: st.DataObject, run: AgentRun, other: AgentRun) -> None:
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


def test_no_further_call_moves_the_score_out_of_what_was_attainable(kind: type[Evaluator]) -> None:
    @_EXAMPLES
    @given(evaluator=evaluators(kind), run=agent_runs(), data=st.data())
    def check(evaluator: Evaluator, run: AgentRun, data: st.DataObject) -> None:
        keep = data.draw(st.lists(st.booleans(), min_size=len(run.tool_calls), max_size=len(run.tool_calls)))
        calls = [call for call, kept in zip(run.tool_calls, keep, strict=True) if kept]
        partial = replace(run, tool_calls=calls, complete=False)

        lowest, highest = evaluator.attainable(partial)

        assert 0.0 <= lowest <= highest <= 1.0
        for answer in (_answer(evaluator, partial), _answer(evaluator, run)):
            if isinstance(answer, Score):
                assert lowest <= answer.value <= highest

    check()


def test_a_call_that_was_only_asked_for_is_one_wherever_telemetry_tells_of_it(kind: type[Evaluator]) -> None:
    @_EXAMPLES
    @given(evaluator=evaluators(kind), run=agent_runs())
    def check(evaluator: Evaluator, run: AgentRun) -> None:
        executed = [call for call in run.tool_calls if call.executed]
        requested = []
        before = 0
        for call in run.tool_calls:
            if call.executed:
                before += 1
            else:
                requested.append((before, call))

        told_apart = replace(run, tool_calls=executed, requested_calls=requested)

        assert list(run.tool_calls) == list(told_apart.calls)
        assert _answer(evaluator, run) == _answer(evaluator, told_apart)
        assert evaluator.attainable(run) == evaluator.attainable(told_apart)

    check()


def test_a_call_that_turns_out_to_be_executed_moves_no_score_out_of_what_was_attainable(
    kind: type[Evaluator],
) -> None:
    @_EXAMPLES
    @given(evaluator=evaluators(kind), run=agent_runs(), data=st.data())
    def check(evaluator: Evaluator, run: AgentRun, data: st.DataObject) -> None:
        early = [
            replace(call, executed=False, error=None, result=None, result_text=None, result_state=_ABSENT)
            if data.draw(st.booleans())
            else call
            for call in run.tool_calls
        ]

        lowest, highest = evaluator.attainable(replace(run, tool_calls=early, complete=False))

        answer = _answer(evaluator, run)
        if isinstance(answer, Score):
            assert lowest <= answer.value <= highest

    check()


def test_an_incomplete_run_passes_or_fails_only_as_the_complete_one_does(kind: type[Evaluator]) -> None:
    @_EXAMPLES
    @given(evaluator=evaluators(kind), run=agent_runs(), data=st.data())
    def check(evaluator: Evaluator, run: AgentRun, data: st.DataObject) -> None:
        keep = data.draw(st.lists(st.booleans(), min_size=len(run.tool_calls), max_size=len(run.tool_calls)))
        calls = [call for call, kept in zip(run.tool_calls, keep, strict=True) if kept]
        threshold = data.draw(st.sampled_from((0.0, 0.4, 0.5, 1.0)))
        evaluation = Evaluation(name="check", evaluator=evaluator, pass_threshold=threshold)

        (early,) = evaluate_run(replace(run, tool_calls=calls, complete=False), [evaluation])
        (final,) = evaluate_run(run, [evaluation])

        assert {early.error_type, final.error_type} <= {None, *_EXPLAINED_ERRORS}
        if Outcome.NOT_EVALUATED not in (early.outcome, final.outcome):
            assert final.outcome is early.outcome

    check()


def test_configuration_and_criteria_survive_a_round_trip_in_either_spelling(kind: type[Evaluator]) -> None:
    @_EXAMPLES
    @given(data=st.data(), by_alias=st.booleans())
    def check(data: st.DataObject, by_alias: bool) -> None:
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
    text = kind.__doc__ or ""

    assert "score" in text
    assert "Example:" in text
