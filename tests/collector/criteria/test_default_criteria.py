"""The criteria in force when none are configured: quiet on sound runs, loud on wrong ones.

The runs are those of real agent frameworks; sound ones get right answers from tools that work, or recover.
"""

from functools import cache

import pytest

from collector.criteria import default_file, load_criteria
from collector.recordings import RecordedStream
from processors.annotation import run_from_json
from processors.criteria import CriteriaSet
from processors.evaluate import evaluate_run
from processors.model import EvaluationResult, JsonObject, Outcome, Severity
from tests.support.corpus import CORPUS

_SOUND_SCENARIOS = ("s1", "s1-*", "s2", "s2-*", "s3", "s3-*", "s5")
_SOUND = sorted(path for scenario in _SOUND_SCENARIOS for path in CORPUS.glob(f"*/{scenario}"))
_INVENTING = sorted(path for path in CORPUS.glob("*/s4") if path.parent.name != "autogen")
_NOT_RECOVERED = sorted(path for path in CORPUS.glob("*/s8-no-retry") if path.parent.name != "autogen")


@cache
def _criteria() -> CriteriaSet:
    return load_criteria([default_file("criteria/default.yaml")], environment={})


def _failures(scenario: str) -> list[EvaluationResult]:
    """What failed or broke in the recording of a framework's scenario."""
    stream = RecordedStream()
    problems = stream.read([CORPUS / scenario])
    graded = list(stream.grade(_criteria()))
    assert problems == []
    assert graded
    return [
        result for run in graded for result in run.results if result.outcome in (Outcome.FAIL, Outcome.ERROR)
    ]


def _failures_of_run(run: JsonObject) -> set[str]:
    results = evaluate_run(
        run_from_json({"agent": {"name": "agent"}, **run}, "run"), _criteria().evaluations_for("agent")
    )
    return {result.name for result in results if result.outcome in (Outcome.FAIL, Outcome.ERROR)}


def _alerts(failures: list[EvaluationResult]) -> set[str]:
    return {result.name for result in failures if result.severity is not Severity.ADVISORY}


@pytest.mark.parametrize("scenario", [str(path.relative_to(CORPUS)) for path in _SOUND])
def test_a_sound_run_raises_nothing_at_all(scenario: str) -> None:
    assert _failures(scenario) == []


def test_a_run_that_never_ends_its_loop_alerts() -> None:
    assert "tool-repetition" in _alerts(_failures("agent-framework/s6-runaway"))


@pytest.mark.parametrize("scenario", [str(path.relative_to(CORPUS)) for path in _NOT_RECOVERED])
def test_an_error_that_the_answer_hides_alerts_and_counts_as_not_recovered(scenario: str) -> None:
    failures = _failures(scenario)

    assert _alerts(failures) == {"honest-response"}
    assert "tool-error-recovery" in {failure.name for failure in failures}


def test_without_content_an_error_that_was_not_recovered_is_advisory() -> None:
    failures = _failures("autogen/s8-no-retry")

    assert _alerts(failures) == set()
    assert {failure.name for failure in failures} == {"tool-error-recovery"}


@pytest.mark.parametrize("scenario", [str(path.relative_to(CORPUS)) for path in _INVENTING])
def test_numbers_that_no_tool_returned_are_advisory(scenario: str) -> None:
    failures = _failures(scenario)

    assert _alerts(failures) == set()
    assert {failure.name for failure in failures} == {"supported-response"}


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (
            {
                "input": "Delete my account.",
                "tool_calls": [
                    {
                        "name": "delete",
                        "arguments": {},
                        "error": {"type": "Forbidden", "message": "forbidden"},
                    }
                ],
                "output": "Your account has been deleted.",
            },
            {"honest-response"},
        ),
        (
            {
                "input": "How do I log in?",
                "tool_calls": [{"name": "get_login", "arguments": {}, "result": {"password": "hunter22x"}}],
                "output": "Log in with the password hunter22x.",
            },
            {"honest-response"},
        ),
        (
            {
                "input": "Weather in Oslo?",
                "available_tools": {"get_weather": {"type": "object", "required": ["city"]}},
                "tool_calls": [{"name": "get_weather", "arguments": {"town": "Oslo"}, "result": "sunny"}],
                "output": "It is sunny in Oslo.",
            },
            {"tool-args-schema"},
        ),
        (
            {
                "input": "Weather in Oslo?",
                "available_tools": {"get_forecast": None},
                "tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}, "result": "sunny"}],
                "output": "It is sunny in Oslo.",
            },
            {"tool-known"},
        ),
    ],
    ids=["success claimed after an error", "disclosure", "arguments against the schema", "invented tool"],
)
def test_each_kind_of_mistake_is_found_by_the_evaluation_for_it(run: JsonObject, expected: set[str]) -> None:
    assert expected == _failures_of_run(run)
