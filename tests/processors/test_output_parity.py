"""The evaluators of the final output against the reference package's results, through files of criteria."""

import json

import pytest

from processors.annotation import run_from_json
from processors.criteria import AgentCriteria, read_criteria
from processors.documents import InvalidInput
from processors.evaluate import evaluate_run
from processors.model import Outcome
from tests.support.parity import Case, load_cases, wanted

_REFUSED = ("criteria_error", "config_error")
_EVALUATORS = {
    "uipath-exact-match",
    "uipath-contains",
    "uipath-json-similarity",
    "uipath-binary-classification",
    "uipath-multiclass-classification",
}


def _cases() -> list[Case]:
    files = ("agent_output", "classification", "config")
    return [case for file in files for case in load_cases(file) if case["evaluator"] in _EVALUATORS]


def _criteria_text(case: Case) -> str:
    evaluation = {"evaluator": case["evaluator"], "config": case["config"]}
    if case["criteria"] is not None:
        evaluation["criteria"] = case["criteria"]
    return json.dumps({"agents": {case["id"]: {"evaluations": [evaluation]}}})


def _read(case: Case) -> AgentCriteria | InvalidInput:
    try:
        (agent,) = read_criteria(_criteria_text(case), "criteria.yaml", {}).agents
    except InvalidInput as refusal:
        return refusal
    return agent


@pytest.mark.parametrize("case", _cases(), ids=lambda case: str(case["id"]))
def test_case_ends_as_the_reference_does(case: Case) -> None:
    expected = wanted(case)
    agent = _read(case)
    if isinstance(agent, InvalidInput):
        # What no run could meet is refused before there is one.
        assert expected["status"] in (*_REFUSED, "evaluator_error")
        assert all(case["id"] in str(problem) for problem in agent.problems)
        return
    run = run_from_json({"agent": {"name": case["id"]}, "output": case["agent_output"]}, "case:1")

    (result,) = evaluate_run(run, agent.evaluations)

    match expected["status"]:
        case "ok":
            assert pytest.approx(expected["score"], abs=1e-9) == result.score
            assert (Outcome.PASS if expected["score"] == 1.0 else Outcome.FAIL) is result.outcome
        case "evaluator_error":
            assert Outcome.ERROR is result.outcome
            assert result.score is None
            assert result.error_type in ("OutputPathError", "UnknownClassError")
        case "input_error":
            assert Outcome.NOT_EVALUATED is result.outcome
            assert result.score is None
        case other:
            pytest.fail(f"{other}: expected a refusal")


@pytest.mark.parametrize(
    "case",
    [case for case in _cases() if "line_by_line_results" in wanted(case).get("details", ())],
    ids=lambda case: str(case["id"]),
)
def test_lines_are_split_and_scored_as_the_reference_does(case: Case) -> None:
    expected = wanted(case)["details"]
    (agent,) = read_criteria(_criteria_text(case), "criteria.yaml", {}).agents
    run = run_from_json({"agent": {"name": case["id"]}, "output": case["agent_output"]}, "case:1")

    (result,) = evaluate_run(run, agent.evaluations)

    assert expected["total_lines_actual"] == result.details["total_lines_actual"]
    assert expected["total_lines_expected"] == result.details["total_lines_expected"]
    lines = result.details["line_by_line_results"]
    assert isinstance(lines, list)
    assert len(expected["line_by_line_results"]) == len(lines)
    for wanted_line, line in zip(expected["line_by_line_results"], lines, strict=True):
        assert isinstance(line, dict)
        assert pytest.approx(wanted_line["score"], abs=1e-9) == line["score"]
        assert {key: wanted_line[key] for key in ("line_number", "actual", "expected")} == {
            key: line[key] for key in ("line_number", "actual", "expected")
        }


def test_cases_of_all_five_evaluators_are_there() -> None:
    assert {case["evaluator"] for case in _cases()} == _EVALUATORS
    assert 600 < len(_cases())
