"""Graders and extractors against letta-evals' results, through criteria files and lines of runs."""

import re

import pytest

from processors.model import EvaluationResult, Outcome
from tests.support.parity import Case, load_cases
from tests.support.run_lines import line_of_trajectory, results_of

_EMPTY = "Empty submission - extractor found no content"
_NEVER_COMPILES = ("\\", "[", "(", "a{2,1}")
_ABOUT_INPUTS = ("A-letta_graders-0527", "A-letta_graders-0528")
"""Refused for the shape of their inputs, which are no part of criteria."""


def _grader_cases() -> list[Case]:
    return [case for case in load_cases("letta_graders") if case["id"] not in _ABOUT_INPUTS]


def _is_refused(case: Case) -> bool:
    """Whether the criteria alone tell that the case can never be graded, or never pass."""
    function, truth, config = case.get("function"), case.get("ground_truth"), case["config"]
    if case["expected"]["status"] == "error" or case["extractor"] == "memory_block":
        return True
    if function not in (None, "ascii_printable_only") and not truth:
        return True
    if function == "regex_match" and truth in _NEVER_COMPILES:
        return True
    if case["extractor"] != "pattern":
        return False
    pattern, group = config["pattern"], config.get("group", 0)
    if pattern in _NEVER_COMPILES:
        return True
    return not config.get("search_all") and isinstance(group, int) and group > re.compile(pattern).groups


def _is_never_called(case: Case) -> bool:
    """Whether arguments are asked for of a tool that was not called: no text, where the reference says {}."""
    entries = [entry for turn in case["trajectory"] for entry in turn if entry["role"] == "tool_call"]
    called = {call["name"] for entry in entries for call in entry["calls"]}
    return case["extractor"] == "tool_arguments" and case["config"].get("tool_name") not in called


def _graded(case: Case, evaluator: str, truth: object) -> EvaluationResult | None:
    evaluation: Case = {
        "evaluator": evaluator,
        "config": {"extractor": case["extractor"], "extractor_config": case["config"]},
    }
    if evaluator != "ascii-printable-only":
        evaluation["criteria"] = {"ground_truth": truth}
    results = results_of(line_of_trajectory(case), evaluation)
    return None if results is None else results[0]


@pytest.mark.parametrize("case", _grader_cases(), ids=lambda case: str(case["id"]))
def test_grader_ends_as_the_reference_does(case: Case) -> None:
    result = _graded(case, case["evaluator"].removeprefix("letta-"), case["ground_truth"])

    if _is_refused(case):
        assert result is None
        return
    expected = case["expected"]
    if _is_never_called(case):
        expected = {"score": 0.0, "submission": "", "rationale": _EMPTY}
    assert result is not None
    assert pytest.approx(expected["score"], abs=1e-9) == result.score
    assert (Outcome.PASS if expected["score"] == 1.0 else Outcome.FAIL) is result.outcome
    assert {"submission": expected["submission"], "rationale": expected["rationale"]} == result.details
    assert expected["rationale"] == result.explanation


@pytest.mark.parametrize("case", load_cases("letta_extractors"), ids=lambda case: str(case["id"]))
def test_extractor_finds_what_the_reference_finds(case: Case) -> None:
    wanted = "" if _is_never_called(case) else case["expected"].get("text") or ""

    result = _graded(case, "exact-match", wanted or "anything")

    if _is_refused(case):
        assert result is None
        return
    assert result is not None
    assert float(bool(wanted)) == result.score
    assert wanted == result.details["submission"]


def test_cases_of_all_functions_and_extractors_are_there() -> None:
    assert {"exact_match", "contains", "regex_match", "ascii_printable_only", "nope"} == {
        case["function"] for case in load_cases("letta_graders")
    }
    assert 9 == len({case["extractor"] for case in load_cases("letta_extractors")})
