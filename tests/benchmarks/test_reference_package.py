"""The runs and criteria by which two packages are compared say what they should."""

import sys

import pytest

from benchmarks.child_process import MeasurementRefused
from benchmarks.reference_package import compare, similarity_case, tool_call_cases
from processors.evaluate import evaluate_run


@pytest.mark.parametrize(("calls", "order"), [(5, 5 / 6), (50, 50 / 51)])
def test_every_fifth_call_is_not_as_expected(calls: int, order: float) -> None:
    cases = tool_call_cases(calls)

    scores = {case.name: evaluate_run(case.run(), [case.evaluation()])[0].score for case in cases}

    assert {calls} == {len(case.run().tool_calls) for case in cases}
    assert order == scores["tool-call-order"]
    assert 0.8 == scores["tool-call-args"] == scores["tool-call-output"]


def test_the_texts_to_compare_are_long_and_differ() -> None:
    case = similarity_case()

    [result] = evaluate_run(case.run(), [case.evaluation()])

    assert result.score == pytest.approx(6 / 7, abs=0.01)


def test_an_interpreter_without_the_package_is_refused() -> None:
    with pytest.raises(MeasurementRefused, match=r"is uipath==.* installed there"):
        list(compare(sys.executable, rounds=1, seconds=0.001))
