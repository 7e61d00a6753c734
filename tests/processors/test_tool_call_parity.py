"""The tool-call evaluators against the reference package's results, through files of criteria."""

import json

import pytest
from pydantic.alias_generators import to_camel

from processors.criteria import read_criteria
from processors.documents import InvalidInput
from processors.evaluate import evaluate_run
from processors.model import Outcome
from tests.support.parity import Case, load_cases, run_of, wanted

_COMPARED_DETAILS = (
    "lcs",
    "explained_tool_calls_count",
    "explained_tool_calls_args",
    "explained_tool_calls_outputs",
)
_REFUSED = ("criteria_error", "config_error")


def _cases() -> list[Case]:
    files = ("tool_call_count", "tool_call_order", "tool_call_args", "tool_call_output", "config")
    return [
        case
        for file in files
        for case in load_cases(file)
        if "list_order" not in case["tags"] and "tool-call" in case["evaluator"]
    ]


def _criteria_text(case: Case) -> str:
    evaluation = {"evaluator": case["evaluator"], "config": case["config"]}
    if case["criteria"] is not None:
        evaluation["criteria"] = case["criteria"]
    return json.dumps({"agents": {case["id"]: {"evaluations": [evaluation]}}})


def _is_refused_for_its_keys(case: Case) -> bool:
    """Where the project departs: an unknown key, and a key in both of its spellings."""
    criteria = case["criteria"] or {}
    return "unknownField" in case["config"] or any(
        to_camel(key) != key and to_camel(key) in criteria for key in criteria
    )


@pytest.mark.parametrize("case", _cases(), ids=lambda case: str(case["id"]))
def test_case_ends_as_the_reference_does_where_the_project_does_not_depart_from_it(case: Case) -> None:
    expected = wanted(case)
    if expected["status"] in _REFUSED or _is_refused_for_its_keys(case):
        with pytest.raises(InvalidInput) as refusal:
            read_criteria(_criteria_text(case), "criteria.yaml", {})

        assert all(case["id"] in str(problem) for problem in refusal.value.problems)
        return

    (agent,) = read_criteria(_criteria_text(case), "criteria.yaml", {}).agents
    (result,) = evaluate_run(run_of(case), agent.evaluations)

    assert pytest.approx(expected["score"], abs=1e-9) == result.score
    assert (Outcome.PASS if expected["score"] == 1.0 else Outcome.FAIL) is result.outcome
    if case["origin"] == "seed" and "service_expected" not in case:
        compared = {key: value for key, value in expected["details"].items() if key in _COMPARED_DETAILS}
        assert compared == {key: result.details.get(key) for key in compared}


def test_cases_of_all_four_evaluators_are_there() -> None:
    assert {
        "uipath-tool-call-count",
        "uipath-tool-call-order",
        "uipath-tool-call-args",
        "uipath-tool-call-output",
    } == {case["evaluator"] for case in _cases()}
    assert 1700 < len(_cases())
