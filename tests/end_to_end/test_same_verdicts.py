"""One run, one verdict: from the service, from its spans replayed, and from its line replayed."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import yaml

from collector.cli import run_command
from collector.criteria import default_file
from collector.otlp import split_request
from processors.annotation import run_line_schema
from tests.support.corpus import CORPUS, recorded_requests
from tests.support.json_schema import mismatches
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop

_NOW = 1_900_000_000_000_000_000
_ORDER = ["get_temperature", "get_weather_condition", "get_humidity", "get_forecast"]
_CALLS = [{"name": name, "args": {"city": "London"}} for name in _ORDER]
_SELECTED: dict[str, dict[str, Any]] = {
    "by-service": {"when": {"resource_attributes": {"service.name": {"$glob": "*"}}}},
    "by-language": {"when": {"resource_attributes": {"telemetry.sdk.language": "python"}}},
    "by-agent-span": {"when": {"span_attributes": {"gen_ai.agent.name": {"$present": True}}}},
    "by-span-kind": {"when": {"span_attributes": {"openinference.span.kind": "AGENT"}}},
    "by-session": {"when": {"session": {"$present": True}}},
    "by-input": {"when": {"input": {"$regex": "(?i)london"}}},
    "half": {"sample": 0.5},
    "muted": {"mute": {"until": "2999-01-01", "reason": "known", "by": "me"}},
    "shadow": {"stage": "shadow"},
    "advisory": {"severity": "advisory", "pass_threshold": 0.4},
}


def _criteria() -> str:
    """The built-in evaluations and others of every kind, for every agent."""
    evaluations: list[dict[str, Any]] = [
        {"evaluator": "tool-call-count", "criteria": {"tool_calls_count": {"get_temperature": ["=", 1]}}},
        {"evaluator": "tool-call-args", "criteria": {"tool_calls": _CALLS[:1]}},
        {"evaluator": "tool-call-output",
         "criteria": {"tool_outputs": [{"name": "get_humidity", "output": {"humidity": 80}}]}},
        {"evaluator": "contains", "criteria": {"search_text": "London"}},
        {"evaluator": "tool-args-grounded"},
        {"evaluator": "tool-known"},
        {"evaluator": "tool-error-recovery"},
        {"evaluator": "tool-permission", "criteria": {"allow": ["get_*"]}},
        *({"evaluator": f"trajectory-{kind}", "criteria": {"tool_calls": _CALLS}}
          for kind in ("exact", "in-order", "any-order", "precision", "recall", "f1", "order-f1")),
        *({"evaluator": "tool-call-order", "name": name, "criteria": {"tool_calls_order": _ORDER}, **selected}
          for name, selected in _SELECTED.items()),
    ]  # fmt: skip
    built_in = yaml.safe_load(default_file("criteria/default.yaml").read_text())["agents"]["*"]["evaluations"]
    names = {entry.get("name", entry["evaluator"]) for entry in evaluations}
    evaluations += [entry for entry in built_in if entry.get("name", entry["evaluator"]) not in names]
    return yaml.safe_dump({"agents": {"*": {"evaluations": evaluations}}})


async def test_the_service_and_replay_of_spans_and_of_lines_say_the_same(tmp_path: Path) -> None:
    criteria, lines = tmp_path / "criteria.yaml", tmp_path / "verdicts.runs.jsonl"
    criteria.write_text(_criteria())
    await _serve(tmp_path, criteria, lines)
    text = lines.read_text()
    served = [json.loads(line) for line in text.splitlines()]
    schema = run_line_schema()

    of_spans = _replay(criteria, CORPUS)
    of_lines = _replay(criteria, lines)
    again = tmp_path / "again.runs.jsonl"
    again.write_text("".join(json.dumps(run) + "\n" for run in of_spans))

    assert [] == [problem for run in served for problem in mismatches(run, schema, schema)]
    assert all(run.pop("graded_time") > "2030" and run.pop("instance") for run in served)
    assert _by_span(served) == _by_span(of_spans) == _by_span(of_lines) == _by_span(_replay(criteria, again))
    verdicts = [evaluation for run in served for evaluation in run["evaluations"]]
    assert {"pass", "fail", "not_evaluated"} <= {verdict["outcome"] for verdict in verdicts}
    assert {*_SELECTED} - {"by-session"} <= {verdict["name"] for verdict in verdicts}


async def test_lines_of_version_1_give_the_verdicts_that_need_no_attributes(tmp_path: Path) -> None:
    criteria, lines = tmp_path / "criteria.yaml", tmp_path / "old.runs.jsonl"
    criteria.write_text(_criteria())
    runs = _replay(criteria, CORPUS)
    new = ("schema", "start_time", "end_time", "resource_attributes", "span_attributes", "carrier_span_id")
    selected_by_attributes = {name for name in _SELECTED if "attributes" in str(_SELECTED[name])}
    with lines.open("w") as file:
        for run in runs:
            old = {key: value for key, value in run.items() if key not in new}
            file.write(json.dumps(old) + "\n")

    again = _replay(criteria, lines)

    def verdicts(run: dict[str, Any]) -> list[Any]:
        return [found for found in run["evaluations"] if found["name"] not in selected_by_attributes]

    assert [verdicts(run) for run in runs] == [verdicts(run) for run in again]


def _replay(criteria: Path, path: Path) -> list[dict[str, Any]]:
    output = io.StringIO()
    with redirect_stdout(output):
        code = run_command(["replay", "--format", "json", "--criteria", str(criteria), str(path)])
    assert code in (0, 1)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def _by_span(runs: list[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    found = {(run["trace_id"], run["span_id"], run["agent"]["name"]): run for run in runs}
    assert len(found) == len(runs)
    return found


async def _serve(folder: Path, criteria: Path, lines: Path) -> None:
    """Send the corpus to a service that never hurries, and stop it when all is graded."""
    configuration = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
        "processors": {
            "evaluation": {"criteria": [str(criteria)]},
            "group_by_trace": {"idle_timeout": "15s"},
        },
        "exporters": {"results_file": {"path": str(lines)}},
        "service": {"telemetry": {"endpoint": "127.0.0.1:0", "self_check": {"enabled": False}}},
    }
    bodies = recorded_requests()
    traces = {trace_id for body in bodies for trace_id in split_request(body).traces}
    async with ServiceInLoop(json.dumps(configuration), _NOW) as service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            for body in bodies:
                answer = await sender.send(body)
                assert "OK" == answer.code
        await service.until(
            lambda samples: (
                sum(value for name, value in samples.items() if "traces_finished_total" in name)
                == len(traces)
            )
        )
