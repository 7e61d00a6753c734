"""Criteria from the evaluation folder of a UiPath agent and from a Letta suite."""

import json
from pathlib import Path
from typing import Any

import pytest

from collector.cli import run_command
from collector.commands.import_criteria import ImportedFile, import_criteria
from processors.criteria import Evaluation, read_criteria
from processors.documents import InvalidInput, read_yaml

DATA = Path(__file__).parents[2] / "data"
WEATHER, LETTA = DATA / "import" / "weather", DATA / "import" / "letta"
TOKYO, ORDER = "tokyo/OrderOfCalls", "london/OrderOfCalls"


def evaluations(imported: ImportedFile) -> dict[str, Evaluation]:
    """The evaluations by name, after a reading by the code of the service."""
    (agent,) = read_criteria(imported.text, "imported.yaml", {"HOME": "/root"}).agents
    return {evaluation.name: evaluation for evaluation in agent.evaluations}


def entries(imported: ImportedFile) -> dict[str, Any]:
    """The evaluations by name, as they are written."""
    content: Any = read_yaml(imported.text, "imported.yaml").value
    (agent,) = content["agents"].values()
    return {entry.get("name", entry["evaluator"]): entry for entry in agent["evaluations"]}


def uipath_folder(folder: Path, item: dict[str, Any], *evaluators: dict[str, Any], **of_set: Any) -> Path:
    (folder / "evaluators").mkdir(parents=True)
    (folder / "eval-sets").mkdir()
    for index, evaluator in enumerate(evaluators):
        (folder / "evaluators" / f"{index}.json").write_text(json.dumps(evaluator, indent="\t"))
    content = {"id": "set", "evaluations": [{"id": "item", "inputs": {"a": 1}, **item}], **of_set}
    (folder / "eval-sets" / "set.json").write_text(json.dumps(content, indent="\t"))
    return folder


def evaluator(kind: str, **config: Any) -> dict[str, Any]:
    return {
        "version": "1.0",
        "id": "it",
        "evaluatorTypeId": kind,
        "evaluatorConfig": {"name": "it", **config},
    }


def letta_suite(folder: Path, grader: str, *samples: dict[str, Any], further: str = "") -> Path:
    (folder / "data.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    suite = folder / "my.yaml"
    suite.write_text(f"name: s\ndataset: data.jsonl\ngraders:\n  m: {grader}\n{further}")
    return suite


def messages(imported: ImportedFile) -> list[str]:
    return [problem.message for problem in imported.left_out]


def test_an_imported_evaluation_set_grades_recorded_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    criteria = tmp_path / "weather.yaml"
    written = run_command(["import", str(WEATHER), "--agent", "weather_agent", "--output", str(criteria)])
    capsys.readouterr()

    graded = run_command(
        ["replay", str(DATA / "corpus" / "uipath_style"), "--criteria", str(criteria), "--format", "json"]
    )

    runs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [
        {
            "tokyo/CallsOfEachTool": 1.0,
            "tokyo/OrderOfCalls": 1.0,
            "tokyo/CityOfCalls": 1.0,
            "tokyo/WhatToolsSay": 1.0,
            "tokyo/AnswerNames": 1.0,
        },
        {"london/OrderOfCalls": 1.0, "london/CallsOfEachTool": 0.0},
        {},
        {
            "tokyo/CallsOfEachTool": 0.5,
            "tokyo/OrderOfCalls": 0.25,
            "tokyo/CityOfCalls": 0.5,
            "tokyo/WhatToolsSay": 1.0,
            "tokyo/AnswerNames": 0.0,
        },
    ] == [{found["name"]: found["score"] for found in run["evaluations"]} for run in runs]
    assert (1, 1) == (written, graded)


def test_what_is_not_carried_over_is_named_with_its_place_and_in_a_comment() -> None:
    imported = import_criteria(WEATHER)

    assert [
        "contains.json:5: evaluatorConfig.ignoreCase: this evaluator has no such setting",
        "judge.json:4: evaluatorTypeId: uipath-llm-judge-trajectory-similarity calls a model; 1 item uses it",
        "weather.json:36: evaluations[1].evaluationCriterias.Missing: no evaluator has this id",
    ] == [str(problem).rpartition("/")[2] for problem in imported.left_out]
    assert 3 == imported.text.count("# Note: ")


@pytest.mark.parametrize(
    "path", [WEATHER, WEATHER / "evaluations", WEATHER / "evaluations" / "eval-sets" / "weather.json"]
)
def test_a_project_its_evaluation_folder_and_one_set_are_recognised(path: Path) -> None:
    assert 7 == import_criteria(path).evaluations


@pytest.mark.parametrize("path", [LETTA, LETTA / "suite.yaml"])
def test_a_suite_and_its_folder_are_recognised(path: Path) -> None:
    imported = import_criteria(path)

    assert ["plain", "named/0", "asked/0", "named/1", "named/4", "asked/4"] == list(evaluations(imported))


def test_a_sample_becomes_an_evaluation_for_its_input() -> None:
    written = entries(import_criteria(LETTA))

    assert {
        "evaluator": "regex-match",
        "name": "asked/0",
        "config": {"extractor": "tool_arguments", "extractor_config": {"tool_name": "search"}},
        "criteria": {"ground_truth": "Paris"},
        "when": {"input": "What is the capital of France?"},
    } == written["asked/0"]
    assert {"input": "What is the capital of Peru?"} == written["named/1"]["when"]
    assert ["hi", "Lima"] == written["named/1"]["criteria"]["ground_truth"]


def test_a_grader_without_ground_truth_becomes_one_evaluation_of_every_run() -> None:
    plain = entries(import_criteria(LETTA))["plain"]

    assert {
        "evaluator": "ascii-printable-only",
        "name": "plain",
        "config": {"extractor": "all_assistant"},
    } == plain


def test_the_threshold_of_a_sample_is_carried_over_and_the_gate_is_not() -> None:
    imported = import_criteria(LETTA)

    loaded = evaluations(imported)

    assert (0.5, 1.0) == (loaded["named/0"].pass_threshold, loaded["asked/0"].pass_threshold)
    assert "it sums up many results: write it as an alert rule on the metrics" in messages(imported)


def test_a_reference_to_the_environment_stays_a_text() -> None:
    written = entries(import_criteria(LETTA))["named/4"]

    assert {"input": "Which key: $${env:HOME}?"} == written["when"]


def test_graders_that_ask_models_or_run_code_and_unusable_samples_are_left_out() -> None:
    found = [str(problem).rpartition("/")[2] for problem in import_criteria(LETTA).left_out]

    assert [
        "suite.yaml:23: graders.quality.kind: a grader of kind model_judge is not carried over: it calls a "
        "model",
        "suite.yaml:28: graders.own.function: function graders.py:length is not carried over: it is Python "
        "code, none of exact_match, contains, regex_match, ascii_printable_only",
        "suite.yaml:32: graders.memory.extractor: extractor memory_block is not carried over: traces hold no "
        "memory blocks",
        "suite.yaml:34: gate: it sums up many results: write it as an alert rule on the metrics",
        "samples.jsonl:2: regex-match cannot take this: criteria: ground_truth: expected one text, since "
        "tool calls belong to no turn; found a list",
        "samples.jsonl:3: named: sample 2 has no ground_truth to hold runs against",
        "samples.jsonl:3: asked: sample 2 has no ground_truth to hold runs against",
        "samples.jsonl:5: agent_args are not in a trace: runs of other agents with this input are graded too",
        "samples.jsonl:5: named: sample 0 has the same input and another ground_truth; that one was taken",
        "samples.jsonl:5: asked: sample 0 has the same input and another ground_truth; that one was taken",
    ] == found


def test_a_csv_dataset_and_the_number_of_samples_are_followed(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("input,ground_truth\na,1\nb,2\nc,3\n")
    suite = tmp_path / "suite.yaml"
    suite.write_text("dataset: data.csv\nmax_samples: 2\ngraders: {m: {kind: tool, function: exact_match}}\n")

    imported = import_criteria(tmp_path)

    assert ["m/0", "m/1"] == list(evaluations(imported))
    assert [] == list(imported.left_out)


def test_settings_that_an_extractor_does_not_take_leave_the_grader_out(tmp_path: Path) -> None:
    grader = "{kind: tool, function: contains, extractor: pattern}"

    imported = import_criteria(letta_suite(tmp_path, grader, {"input": "a", "ground_truth": "b"}))

    assert 0 == imported.evaluations
    assert ['pattern cannot take this: extractor_config: missing key "pattern"'] == [
        message.partition(", which")[0] for message in messages(imported)
    ]


def test_a_pattern_that_cannot_run_in_linear_time_leaves_only_its_sample_out(tmp_path: Path) -> None:
    samples = {"input": "a", "ground_truth": "(?=x)"}, {"input": "b", "ground_truth": "x"}

    imported = import_criteria(letta_suite(tmp_path, "{kind: tool, function: regex_match}", *samples))

    assert ["m/1"] == list(evaluations(imported))
    (problem,) = imported.left_out
    assert (1, True) == (problem.line, problem.message.startswith("regex-match cannot take this: "))


def test_an_item_without_criteria_of_its_own_takes_shared_ones_before_the_defaults(tmp_path: Path) -> None:
    default = {"expectedOutput": {"x": "default"}}
    item = {"evaluationCriterias": {"it": None}, "expectedOutput": {"x": "shared"}}
    kind = evaluator("uipath-json-similarity", defaultEvaluationCriteria=default)

    shared = entries(import_criteria(uipath_folder(tmp_path / "shared", item, kind)))
    del item["expectedOutput"]
    defaults = entries(import_criteria(uipath_folder(tmp_path / "default", item, kind)))

    assert {"expected_output": {"x": "shared"}} == shared["item/it"]["criteria"]
    assert {"expected_output": {"x": "default"}} == defaults["item/it"]["criteria"]


def test_an_expected_value_that_looks_like_a_matcher_is_taken_as_it_is(tmp_path: Path) -> None:
    calls = {"toolCalls": [{"name": "find", "args": {"query": {"$regex": "a"}}}]}
    folder = uipath_folder(
        tmp_path / "e",
        {"evaluationCriterias": {"it": calls}, "inputs": {"filter": {"$any": 1}}},
        evaluator("uipath-tool-call-args"),
    )

    entry = entries(import_criteria(folder))["item/it"]

    assert {"query": {"$literal": {"$regex": "a"}}} == entry["criteria"]["tool_calls"][0]["args"]
    assert {"input": {"filter": {"$literal": {"$any": 1}}}} == entry["when"]


def test_of_two_spellings_of_a_setting_camel_case_counts(tmp_path: Path) -> None:
    folder = uipath_folder(
        tmp_path / "e",
        {"evaluationCriterias": {"it": {"searchText": "a", "search_text": "b"}}},
        evaluator("uipath-contains", caseSensitive=True, case_sensitive=False),
    )

    entry = entries(import_criteria(folder))["item/it"]

    assert ({"case_sensitive": True}, {"search_text": "a"}) == (entry["config"], entry["criteria"])


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (evaluator("file://types/my.json"), "an evaluator in Python code; 1 item uses it"),
        (evaluator("uipath-new"), 'unknown evaluator "uipath-new"; 1 item uses it'),
        (evaluator("uipath-tool-permission"), 'unknown evaluator "uipath-tool-permission"; 1 item uses it'),
        (
            {"id": "it", "category": 0, "type": 1},
            "an evaluator of the older kind, which has no evaluatorTypeId; 1 item uses it",
        ),
    ],
)
def test_an_evaluator_that_is_none_of_ours_is_left_out_once(
    tmp_path: Path, kind: dict[str, Any], reason: str
) -> None:
    folder = uipath_folder(tmp_path / "e", {"evaluationCriterias": {"it": {"x": 1}}}, kind)

    imported = import_criteria(folder)

    assert (0, [reason]) == (imported.evaluations, messages(imported))


@pytest.mark.parametrize(
    ("item", "of_set", "reason"),
    [
        ({"inputs": {}}, {}, "there are no inputs to select runs by: the item applies to every run"),
        ({"nodeId": "n"}, {}, "this item is about one node of a graph, not about a run"),
        (
            {"mockingStrategy": {"type": "llm"}},
            {},
            "answers are mocked for this item; real ones may differ from what it expects",
        ),
        ({}, {"evaluatorRefs": ["other"]}, "the set does not name this evaluator in evaluatorRefs"),
        (
            {"evaluationCriterias": {"it": {"searchText": "a", "extra": 1}}},
            {},
            "contains has no such criteria",
        ),
        (
            {"evaluationCriterias": {"it": None}},
            {},
            "there are no criteria, and the evaluator has no default ones",
        ),
        (
            {"evaluationCriterias": None},
            {},
            'expected an item with "evaluationCriterias" by evaluator id',
        ),
        (
            {"evaluationCriterias": {"it": {"searchText": 3}}},
            {},
            "contains cannot take this: criteria.search_text: expected a text; found the number 3; "
            "put it in quotes",
        ),
        (
            {"evaluationCriterias": {"it": {"searchText": "costs $${x}"}}},
            {},
            'contains cannot take this: a criteria file cannot express the text "$${"',
        ),
    ],
)
def test_what_an_item_says_beyond_criteria_is_reported(
    tmp_path: Path, item: dict[str, Any], of_set: dict[str, Any], reason: str
) -> None:
    item = {"evaluationCriterias": {"it": {"searchText": "a"}}, **item}

    imported = import_criteria(uipath_folder(tmp_path / "e", item, evaluator("uipath-contains"), **of_set))

    assert [reason] == messages(imported)


def test_names_stay_unique_where_items_and_evaluators_share_them(tmp_path: Path) -> None:
    item = {"evaluationCriterias": {"it": {"searchText": "a"}}}
    folder = uipath_folder(tmp_path / "e", item, evaluator("uipath-contains"))
    twice = {"id": "set", "evaluations": [{"id": "item", "inputs": {"a": 2}, **item}] * 2}
    (folder / "eval-sets" / "other.json").write_text(json.dumps(twice))

    imported = import_criteria(folder)

    assert ["set/item/it", "set/item/it (2)", "set/item/it (3)"] == list(evaluations(imported))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "no such file"),
        ("{}", 'expected a Letta suite (with the key "graders") or a UiPath evaluation set ("evaluations")'),
        ("graders: {m: 1}\n", "expected the path of a file that ends with .jsonl or .csv"),
        ("graders: {m: 1}\ndataset: no.csv\n", "no such file"),
        ("graders: 1\n", 'not a Letta suite: expected the key "graders" with objects'),
        ("a: [\n", "not valid YAML"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, content: str | None, expected: str) -> None:
    path = tmp_path / "suite.yaml"
    if content is not None:
        path.write_text(content)

    with pytest.raises(InvalidInput) as found:
        import_criteria(path)

    assert expected in str(found.value)


def test_a_folder_of_neither_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="expected a folder with evaluators/ and eval-sets/, or one with"):
        import_criteria(tmp_path)
    with pytest.raises(InvalidInput, match=r"expected a folder with evaluators/ and eval-sets/$"):
        import_criteria(tmp_path, "uipath")


def test_an_agent_that_no_criteria_file_can_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the agent cannot have this name"):
        import_criteria(WEATHER, agent="a" * 300)


def test_the_exit_code_tells_whether_everything_was_carried_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = {"evaluationCriterias": {"it": {"searchText": "a"}}}
    whole = uipath_folder(tmp_path / "whole", item, evaluator("uipath-contains"))
    nothing = uipath_folder(tmp_path / "nothing", item, evaluator("uipath-llm-judge-output"))

    codes = [run_command(["import", str(path)]) for path in (whole, WEATHER, nothing)]

    assert [0, 1, 2] == codes
    assert "0 evaluations imported, 1 notes: nothing was written" in capsys.readouterr().err


def test_a_file_that_is_there_is_never_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "mine.yaml"
    output.write_text("mine")

    code = run_command(["import", "uipath", str(WEATHER), "--output", str(output)])

    assert (2, "mine") == (code, output.read_text())
    assert f"cannot write {output}: File exists" in capsys.readouterr().err
