import pytest

from processors.documents import InvalidInput, Problem, did_you_mean, path_text


def test_a_problem_is_one_line_with_file_line_path_and_message() -> None:
    problem = Problem("criteria.yaml", 12, "agents.weather.evaluations[1].evaluator", "unknown evaluator")

    assert str(problem) == "criteria.yaml:12: agents.weather.evaluations[1].evaluator: unknown evaluator"


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("a.yaml", 0, "", "cannot be read"), "a.yaml: cannot be read"),
        (Problem("", 3, "exporters", "unknown key"), "exporters: unknown key"),
        (Problem("a.yaml", 3, "", "two\nlines"), "a.yaml:3: two lines"),
    ],
)
def test_parts_that_are_not_known_are_left_out(problem: Problem, text: str) -> None:
    assert text == str(problem)


def test_the_exception_has_a_line_for_each_problem() -> None:
    found = InvalidInput([Problem("a.yaml", 1, "x", "one"), Problem("a.yaml", 2, "y", "two")])

    assert str(found) == "a.yaml:1: x: one\na.yaml:2: y: two"


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        (["agents", "weather", "evaluations", 1], "agents.weather.evaluations[1]"),
        (["agents", "weather agent"], 'agents."weather agent"'),
        (["agents", 'say "hi".now'], r'agents."say \"hi\".now"'),
        (["agents", ""], 'agents.""'),
        ([0, "a"], "[0].a"),
    ],
)
def test_a_path_shows_which_part_is_one_key(steps: list[str | int], path: str) -> None:
    assert path == path_text(steps)


def test_the_nearest_word_is_suggested_whatever_its_case_and_hyphens() -> None:
    known = ["tool-call-order", "tool-call-args"]

    assert did_you_mean("Tool_Call_Oder", known) == '; did you mean "tool-call-order"?'
    assert did_you_mean("zebra", known) == ""
    assert did_you_mean("=>", ["=", ">="]) == ""
