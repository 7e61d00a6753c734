import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.cli import run_command
from collector.configuration import schema_documents
from collector.criteria import default_file
from collector.exporters import exporter_types
from processors.comparison import KNOWN_MATCHERS, MATCHER_ARGUMENTS
from processors.criteria import evaluator_types, read_criteria
from processors.documents import InvalidInput
from tests.support.json_schema import mismatches

FILES = {
    "config": "tracegrade.schema.json",
    "objectives": "objectives.schema.json",
    "run": "run.schema.json",
}
"""In the repository; the schema of criteria, half a megabyte, is written by `make dist`."""
WRONG_MATCHERS: list[dict[str, Any]] = [
    {"$rage": [1, 2]},
    {"$range": [1]},
    {"$range": 1},
    {"$regex": 1},
    {"$glob": ["a"]},
    {"$approx": {"value": 1}},
    {"$approx": {"value": 1, "absolute": 2}},
    {"$type": "text"},
    {"$type": []},
    {"$schema": "object"},
    {"$present": False},
    {"$absent": 1},
    {"$any": None},
    {"$in": "a"},
    {"$in": [{"$rage": 1}]},
    {"$input": 5},
]


@pytest.mark.parametrize("document", FILES)
def test_the_schema_in_the_repository_is_the_one_of_the_models(document: str) -> None:
    committed = json.loads(default_file(FILES[document]).read_text())

    assert committed == schema_documents()[document], (
        f"stale: .venv/bin/tracegrade schema {document} > config/{FILES[document]}"
    )


def test_every_exporter_and_evaluator_is_in_its_schema() -> None:
    documents = schema_documents()
    exporters = " ".join(documents["config"]["properties"]["exporters"]["patternProperties"])
    evaluators = documents["criteria"]["$defs"]["EvaluationEntry"]["allOf"]

    assert all(f"^{name}" in exporters for name in [*exporter_types(), "prometheus"])
    assert len(evaluator_types()) == len(evaluators)


@pytest.mark.parametrize("document", [*FILES, "criteria"])
def test_every_reference_in_a_schema_has_a_definition(document: str) -> None:
    schema = schema_documents()[document]
    text = json.dumps(schema)

    for part in text.split('"$ref": "#/$defs/')[1:]:
        assert part.partition('"')[0] in schema["$defs"]


@pytest.mark.parametrize(
    ("document", "file"),
    [
        ("config", "tracegrade.yaml"),
        ("criteria", "criteria/default.yaml"),
        ("criteria", "criteria/demo.yaml"),
        ("criteria", "criteria/weather.example.yaml"),
        ("objectives", "objectives.example.yaml"),
    ],
)
def test_the_files_that_are_shipped_follow_their_schema(document: str, file: str) -> None:
    schema = schema_documents()[document]

    assert mismatches(yaml.safe_load(default_file(file).read_text()), schema, schema) == []


@pytest.mark.parametrize(
    "entry",
    [
        {"evaluator": "tool-call-order", "criteria": {"toolCallsOrder": ["a"]}, "passThreshold": 0.5},
        {"evaluator": "uipath-tool_call_order",
         "config": {"defaultEvaluationCriteria": {"tool_calls_order": []}}},
        {"evaluator": "tool_call_order", "config": {"name": "x", "strict": "${env:S}"}, "criteria": None},
        {"evaluator": "tool-repetition", "sample": 0.1, "stage": "shadow",
         "when": {"input": {"a": {"$in": [1]}}, "resourceAttributes": {"b": 1}, "span_attributes": {}}},
        {"evaluator": "tool-repetition", "when": None,
         "mute": {"until": "2026-01-31", "reason": "x", "by": "y"}},
        {"evaluator": "${env:CHECK}"},
        {"evaluator": "tool-call-order", "config": {"strict": True},
         "anyOf": [{"criteria": {"tool_calls_order": ["a"]}}, {"criteria": {"tool_calls_order": ["b"]}}]},
        {"name": "x", "any_of": [{"evaluator": "contains", "criteria": {"search_text": "a"}},
                                 {"evaluator": "tool_repetition", "name": "y"}]},
        {"evaluator": "trajectory-exact", "criteria": {"tool_calls": [{"name": "a", "optional": True}]}},
        {"evaluator": "tool-call-args", "criteria": {"tool_calls": [{"name": "a", "args": {
            "a": {"$range": [None, 5]}, "b": {"$in": [1, {"$glob": "x*"}]}, "c": [{"$input": "city"}],
            "d": {"$approx": {"value": 1, "abs": 0.1}}, "e": {"$type": ["string", "null"]},
            "f": {"$literal": {"$rage": 1}}, "g": {"$schema": {"type": "object"}}, "h": {"$absent": True},
            "i": {"$ref": 1, "other": 2}, "j": {"$range": ["${env:LOW}", "${env:HIGH}"]}}}]}},
    ],
)  # fmt: skip
def test_the_schema_takes_every_spelling(entry: dict[str, Any]) -> None:
    schema = schema_documents()["criteria"]

    assert mismatches({"agents": {"a": {"evaluations": [entry]}}}, schema, schema) == []


@pytest.mark.parametrize(
    "entry",
    [
        {"criteria": {}},
        {"evaluator": "tool-call-order", "any_of": [{"criteria": {"tool_calls_order": ["a"]}}]},
        {"evaluator": "tool-call-order",
         "anyOf": [{"criteria": {"toolCallsOder": ["a"]}}, {"criteria": {"tool_calls_order": ["b"]}}]},
        {"name": "x", "any_of": [{"evaluator": "contains", "criteria": {"text": "a"}},
                                 {"evaluator": "tool_repetition"}]},
        {"evaluator": "tool-call-order", "criteria": {"toolCallsOder": ["a"]}},
        {"evaluator": "tool-call-order", "criteria": {"tool_calls_order": "a"}},
        {"evaluator": "tool-call-order", "config": {"stric": True}},
        {"evaluator": "tool-repetition", "severity": "pager"},
        {"evaluator": "tool-repetition", "pass_threshold": 2},
        {"evaluator": "tool-repetition", "when": {"inptu": 1}},
        {"evaluator": "tool-repetition", "sample": 0},
        {"evaluator": "tool-repetition", "stage": "dark"},
        {"evaluator": "tool-repetition", "mute": {"until": "2026-01-31"}},
        {"evaluator": "tool-repetitoin"},
        {"evaluator": "tool-repetition", "passThreshold": 1, "pass_threshold": 1},
        {"evaluator": "tool-call-order", "criteria": {"toolCallsOrder": [], "tool_calls_order": []}},
        {"evaluator": "tool-call-order",
         "config": {"default_evaluation_criteria": {}, "defaultEvaluationCriteria": {}}},
        {"evaluator": "tool-repetition", "when": {"input": {"a": {"$rage": [1, 2]}}}},
        {"evaluator": "tool-repetition", "when": {"session": {"$input": "city"}}},
        {"evaluator": "tool-repetition", "when": {"spanAttributes": {"a": {"$in": []}}}},
        *(
            {"evaluator": "tool-call-args",
             "criteria": {"tool_calls": [{"name": "a", "args": {"b": [wrong]}}]}}
            for wrong in WRONG_MATCHERS
        ),
        {"evaluator": "tool-call-output",
         "criteria": {"tool_outputs": [{"name": "a", "output": {"$rage": [1, 2]}}]}},
        {"evaluator": "trajectory-exact",
         "criteria": {"tool_calls": [{"name": "a", "args": {"b": {"$rage": [1, 2]}}}]}},
    ],
)  # fmt: skip
def test_the_schema_refuses_what_the_models_refuse(entry: dict[str, Any]) -> None:
    schema = schema_documents()["criteria"]
    document = {"agents": {"a": {"evaluations": [entry]}}}

    assert mismatches(document, schema, schema) != []
    with pytest.raises(InvalidInput):
        read_criteria(json.dumps(document), "criteria.json", {})


def test_every_matcher_is_in_the_schema_of_expected_values() -> None:
    assert set(KNOWN_MATCHERS) == set(MATCHER_ARGUMENTS)


def test_a_criteria_file_may_name_its_schema() -> None:
    schema = schema_documents()["criteria"]
    document = {"$schema": "../criteria.schema.json", "agents": {}}

    assert mismatches(document, schema, schema) == []
    assert read_criteria(json.dumps(document), "criteria.json", {}).agents == ()


def test_the_schema_takes_the_custom_evaluators_of_a_service_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tracegrade.yaml"
    file.write_text("processors: {evaluation: {custom_evaluators: {in-budget: {file: budget.py}}}}")
    criteria = {"agents": {"a": {"evaluations": [{"evaluator": "in_budget", "criteria": {"euros": 5}}]}}}

    assert run_command(["schema", "criteria", "--config", str(file)]) == 0
    schema = json.loads(capsys.readouterr().out)

    assert mismatches(criteria, schema, schema) == []
    plain = schema_documents()["criteria"]
    assert mismatches(criteria, plain, plain) != []
