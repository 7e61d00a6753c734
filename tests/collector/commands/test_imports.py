"""A command loads what it needs: `--help` no command at all, and others no libraries that they do not use."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import json, sys
from collector.cli import run_command
try:
    code = run_command(json.loads(sys.argv[1]))
except SystemExit as error:
    code = error.code
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""

_SERVICE = """
exporters: {{file: {{path: spans.jsonl}}}}
service: {{telemetry: {{endpoint: "127.0.0.1:{port}"}}}}
"""


def loaded_by(*arguments: str, code: int = 0) -> set[str]:
    """The modules that a command has loaded when it ends with `code`."""
    finished = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(arguments)], capture_output=True, text=True, check=True
    )
    ended, modules = json.loads(finished.stderr.splitlines()[-1])
    assert code == (ended or 0)
    return set(modules)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_help_loads_no_command(option: str) -> None:
    modules = loaded_by(option)

    assert {"collector", "collector.cli", "collector.commands"} == {
        name for name in modules if name.startswith(("collector", "processors"))
    }
    assert {"google", "grpc", "opentelemetry", "orjson", "pydantic", "rich", "yaml"}.isdisjoint(modules)


OF_THE_SERVICE = {
    "aiohttp",
    "collector.configuration",
    "collector.exporters",
    "collector.journal",
    "collector.monitoring",
    "collector.page",
    "collector.receivers",
    "collector.service",
    "collector.store",
    "dns",
    "grpc",
    "jinja2",
    "lmdb",
    "opentelemetry.sdk",
    "prometheus_client",
    "sqlite3",
    "starlette",
    "uvicorn",
    "uvloop",
}


def test_replay_loads_no_library_of_a_listener_a_backend_or_a_store(tmp_path: Path) -> None:
    runs = tmp_path / "a.runs.jsonl"
    runs.write_text(json.dumps({"agent": {"name": "a"}, "tool_calls": [{"name": "x", "arguments": {}}]}))

    modules = loaded_by("replay", str(runs), "--format", "json")

    assert "collector.grading" in modules
    assert set() == modules & OF_THE_SERVICE


def test_a_probe_of_a_container_loads_nothing_of_the_service_that_it_probes() -> None:
    modules = loaded_by("health", "--endpoint", "127.0.0.1:1", code=1)

    assert "collector.commands.health" in modules
    assert set() == modules & {*OF_THE_SERVICE, "collector.grading", "rich"}


def test_a_service_starts_without_the_libraries_of_what_it_does_not_use(tmp_path: Path) -> None:
    """An address in use ends it when everything is assembled and nothing has begun."""
    config = tmp_path / "tracegrade.yaml"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        config.write_text(_SERVICE.format(port=taken.getsockname()[1]))
        modules = loaded_by("run", "--config", str(config), code=2)

    assert {"collector.service", "grpc", "starlette"} <= modules
    assert set() == modules & {"aiohttp", "collector.recordings", "dns", "opentelemetry.sdk", "rich"}


@pytest.mark.slow
def test_the_help_takes_at_most_half_a_second() -> None:
    """Of CPU, the best of some: how long it takes besides depends on what else runs."""

    def seconds() -> float:
        before = os.times()
        subprocess.run([sys.executable, "-m", "collector.cli", "--help"], capture_output=True, check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(seconds() for _ in range(5)) <= 0.5
