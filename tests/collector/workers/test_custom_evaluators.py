"""Loading custom evaluators: what is wrong with them is told before the service takes its first span."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from collector.clock import ManualClock
from collector.workers.config import WorkersConfig
from collector.workers.custom_evaluators import load_custom_evaluators
from collector.workers.pool import Suspensions
from processors.criteria import evaluator_types, read_criteria
from processors.documents import InvalidInput
from tests.support.custom_evaluators import loaded

GOOD = "def grade(run, config, criteria):\n    return 1\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def other(): pass\n", 'it has no function or class "grade"'),
        ("grade = 5\n", 'it has no function or class "grade"'),
        ("class grade: pass\n", 'the class "grade" has no method "evaluate"'),
        ("import nothing_like_it\n", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("def grade(:\n", "SyntaxError: "),
        ("raise SystemExit(4)\n", "SystemExit: 4"),
        ("x = bytearray(10 ** 10)\n", "MemoryError: "),
    ],
)
def test_code_that_cannot_be_loaded_is_a_problem_with_its_name(
    tmp_path: Path, code: str, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        loaded(tmp_path, {"good": GOOD, "bad": code})

    (problem,) = caught.value.problems
    assert "processors.evaluation.custom_evaluators.bad" == problem.path
    assert problem.message.startswith(f"cannot be loaded from {tmp_path / 'bad.py'}: {message}")


def test_code_that_ends_the_process_while_it_is_loaded_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the worker process ended while loading them"):
        loaded(tmp_path, {"bad": "import os\nos._exit(0)\n"})


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    config = WorkersConfig.model_validate({"custom_evaluators": {"gone": {"file": tmp_path / "gone.py"}}})

    with pytest.raises(InvalidInput, match=r"custom_evaluators\.gone: .*gone\.py cannot be read: No such"):
        load_custom_evaluators(config)


def test_an_entry_point_is_loaded_from_its_package() -> None:
    config = WorkersConfig.model_validate(
        {"custom_evaluators": {"installed": {"entry_point": "operator:truth"}}}
    )

    assert ["installed"] == list(load_custom_evaluators(config).kinds)


def test_a_file_may_import_its_neighbours_and_define_dataclasses(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("SCORE = 1\n")
    code = """
        from __future__ import annotations
        from dataclasses import dataclass
        from neighbour import SCORE
        @dataclass
        class Found:
            score: float
        def grade(run, config, criteria):
            return Found(SCORE)
    """

    assert ["check"] == list(loaded(tmp_path, {"check": code}).kinds)


@pytest.mark.parametrize(
    ("evaluators", "message"),
    [
        ({"exact-match": {"file": "a.py"}}, '"exact-match" is a built-in evaluator'),
        ({"My_Check": {"file": "a.py"}}, 'not a name for an evaluator: "My_Check"'),
        ({"uipath-mine": {"file": "a.py"}}, 'not a name for an evaluator: "uipath-mine"'),
        ({"mine": {}}, 'expected one of the keys "file" and "entry_point"'),
        ({"mine": {"file": "a.py", "entry_point": "a:b"}}, 'expected one of the keys "file"'),
        ({"mine": {"entry_point": "a:b", "function": "c"}}, '"function" belongs to "file"'),
        ({"mine": {"entry_point": "a.b"}}, "String should match pattern"),
    ],
)
def test_names_and_sources_are_checked(evaluators: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        WorkersConfig.model_validate({"custom_evaluators": evaluators})


def test_the_version_and_so_the_hash_of_criteria_changes_with_the_code(tmp_path: Path) -> None:
    text = "agents: {a: {evaluations: [{evaluator: my_check, config: {b: 1}, criteria: {c: [2]}}]}}"

    hashes = []
    for code in (GOOD, GOOD, GOOD + "# another thought\n"):
        (agent,) = read_criteria(text, "criteria.yaml", {}, loaded(tmp_path, {"my-check": code}).known).agents
        hashes.append(agent.evaluations[0].criteria_hash)

    assert hashes[0] == hashes[1] != hashes[2]


def test_the_extractor_of_a_submission_is_checked_with_the_criteria(tmp_path: Path) -> None:
    evaluators = loaded(tmp_path, {"check": "def grade(sample, submission):\n    return 1\n"})
    text = "agents: {a: {evaluations: [{evaluator: check, config: {extractor: pattern}}]}}"

    with pytest.raises(InvalidInput, match='missing key "pattern"'):
        read_criteria(text, "criteria.yaml", {}, evaluators.known)


def test_without_custom_evaluators_only_the_built_in_ones_are_known() -> None:
    assert evaluator_types() == load_custom_evaluators(WorkersConfig()).known


def test_a_suspension_ends_and_doubles_with_the_next_failure() -> None:
    clock = ManualClock()
    suspensions = Suspensions(clock)
    for _ in range(2):
        suspensions.note_failure("a")
    tolerated = suspensions.remaining("a")
    pauses = []
    for _ in range(8):
        suspensions.note_failure("a")
        pauses.append(suspensions.remaining("a"))
        clock.advance(pauses[-1])
    ended = suspensions.remaining("a")
    suspensions.note_answer("a")
    suspensions.note_failure("a")

    assert 0.0 == tolerated == ended == suspensions.remaining("a") == suspensions.remaining("b")
    assert [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0] == pauses
