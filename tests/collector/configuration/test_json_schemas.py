import json
from typing import Any

import pytest
import yaml

from collector.configuration.files import default_file
from collector.configuration.json_schemas import schema_documents
from collector.exporters.assembly import exporter_types
from processors.criteria.evaluator_discovery import evaluator_types
from tests.support.json_schema import mismatches

FILES = {
    "config": "tracegrade.schema.json",
    "criteria": "criteria.schema.json",
    "objectives": "objectives.schema.json",
    "run": "run.schema.json",
}


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


@pytest.mark.parametrize("document", FILES)
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
    ],
)  # fmt: skip
def test_the_schema_takes_every_spelling(entry: dict[str, Any]) -> None:
    schema = schema_documents()["criteria"]

    assert mismatches({"agents": {"a": {"evaluations": [entry]}}}, schema, schema) == []


@pytest.mark.parametrize(
    "entry",
    [
        {"criteria": {}},
        {"evaluator": "tool-call-order", "criteria": {"toolCallsOder": ["a"]}},
        {"evaluator": "tool-call-order", "criteria": {"tool_calls_order": "a"}},
        {"evaluator": "tool-call-order", "config": {"stric": True}},
        {"evaluator": "tool-repetition", "severity": "pager"},
        {"evaluator": "tool-repetition", "pass_threshold": 2},
        {"evaluator": "tool-repetition", "when": {"inptu": 1}},
        {"evaluator": "tool-repetition", "sample": 0},
        {"evaluator": "tool-repetition", "stage": "dark"},
        {"evaluator": "tool-repetition", "mute": {"until": "2026-01-31"}},
    ],
)
def test_the_schema_refuses_what_the_models_refuse(entry: dict[str, Any]) -> None:
    schema = schema_documents()["criteria"]

    assert mismatches({"agents": {"a": {"evaluations": [entry]}}}, schema, schema) != []
