"""Coding agents by their npm packages, with a scripted model: spans and log records, or these alone.

`make emitters-install` installs them.
"""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from processors.model import JsonObject
from tests.emitters.command_model import ANSWER, command_model
from tests.support.backend_server import PROJECT
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess

pytestmark = pytest.mark.backends

_PROGRAMS = PROJECT / ".coding-agents" / "node_modules" / ".bin"
_PROMPT = "What is the forecast?"
_TURN_OF_CODEX, _ATTEMPTS = "'session_task.turn'", 3
_OF_CODEX = """
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.scripted]
name = "scripted"
base_url = "{model}/v1"
wire_api = "responses"
[otel]
log_user_prompt = true
exporter = {{ otlp-http = {{ endpoint = "{otlp}/v1/logs", protocol = "binary" }} }}
"""
_SPANS_OF_CODEX = (
    'trace_exporter = {{ otlp-http = {{ endpoint = "{otlp}/v1/traces", protocol = "binary" }} }}\n'
)
_OF_CLAUDE = {
    "ANTHROPIC_API_KEY": "none",
    "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
    "OTEL_LOGS_EXPORTER": "otlp",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_LOG_USER_PROMPTS": "1",
    "OTEL_LOG_TOOL_DETAILS": "1",
    "OTEL_LOG_TOOL_CONTENT": "1",
}
_SPANS_OF_CLAUDE = {"CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1", "OTEL_TRACES_EXPORTER": "otlp"}


def _settings_of_gemini(endpoint: str) -> str:
    telemetry = {"enabled": True, "target": "local", "otlpEndpoint": f"http://{endpoint}", "logPrompts": True}
    return json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": telemetry})


async def _run(folder: Path, command: Sequence[str], environment: Mapping[str, str]) -> None:
    program = _PROGRAMS / command[0]
    if not program.exists():
        pytest.skip("make emitters-install was not run")
    process = await asyncio.create_subprocess_exec(
        str(program),
        *command[1:],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), **environment},
        stdin=asyncio.subprocess.DEVNULL,
    )
    assert 0 == await asyncio.wait_for(process.wait(), PATIENCE_SECONDS)


async def _graded(
    folder: Path, agent: str, commands: Sequence[str], *, spans: bool, options: Sequence[str] = ()
) -> Any:
    """The run of one prompt by `claude`, `codex` or `gemini`, whose model requests these commands.

    On a busy machine Codex may exit before it has sent the span of its turn: it is prompted again.
    """
    for attempt in range(_ATTEMPTS):
        run, sent = await _prompted(folder / str(attempt), agent, commands, spans=spans, options=options)
        if agent != "codex" or not spans or _TURN_OF_CODEX in sent:
            return run
        assert (_PROMPT, "root_incomplete") == (run["input"], run["finish_reason"])
    pytest.fail(f"Codex did not send the span of its turn {_ATTEMPTS} times")


async def _prompted(
    folder: Path, agent: str, commands: Sequence[str], *, spans: bool, options: Sequence[str]
) -> tuple[Any, str]:
    """The run, and all spans that were sent."""
    home = folder / "home"
    home.mkdir(parents=True)
    # Spans and log records leave by queues of their own, on a busy machine seconds apart.
    graces: JsonObject = {"root_grace": "3s", "multi_service_grace": "3s"}
    graces |= {"incomplete_grace": "8s", "idle_timeout": "8s"}
    settings: JsonObject = {"processors": {"group_by_trace": graces}}
    async with ServiceProcess(folder, settings) as service, command_model(commands) as model:
        otlp = f"http://{service.endpoints['http']}"
        if agent == "codex":
            (home / ".codex").mkdir()
            text = _OF_CODEX + (_SPANS_OF_CODEX if spans else "")
            (home / ".codex" / "config.toml").write_text(text.format(model=model, otlp=otlp))
            await _run(home, ["codex", "exec", "--skip-git-repo-check", _PROMPT], {})
        elif agent == "gemini":
            (home / ".gemini").mkdir()
            (home / ".gemini" / "settings.json").write_text(_settings_of_gemini(service.endpoints["grpc"]))
            places = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model}
            command = ["gemini", "-p", _PROMPT, "-m", "gemini-2.5-flash", "--yolo"]
            await _run(home, command, {**places, "GEMINI_CLI_TRUST_WORKSPACE": "true"})
        else:
            telemetry = {**_OF_CLAUDE, **(_SPANS_OF_CLAUDE if spans else {})}
            places = {"ANTHROPIC_BASE_URL": model, "OTEL_EXPORTER_OTLP_ENDPOINT": otlp}
            await _run(home, ["claude", "-p", _PROMPT, *options], {**telemetry, **places})
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (runs := service.results()):
                await asyncio.sleep(0.1)
        assert 0 == await service.stop()
        (run,) = runs
        return run, str(service.exported_requests())


@pytest.mark.parametrize("spans", [True, False], ids=["both signals", "log records alone"])
@pytest.mark.parametrize("agent", ["claude", "codex"])
async def test_a_prompt_is_a_run_with_its_commands_and_who_approved_them(
    agent: str, spans: bool, tmp_path: Path
) -> None:
    commands = ["echo sunny", "cat /nowhere"]

    run = await _graded(tmp_path, agent, commands, spans=spans, options=["--allowedTools", "Bash"])

    calls = run["tool_calls"]
    assert commands == [call["arguments"]["cmd" if agent == "codex" else "command"] for call in calls]
    assert [("approved", "config")] * 2 == [
        (call["decision"], call["decision_source"].lower()) for call in calls
    ]
    assert _PROMPT == run["input"]
    assert (ANSWER if agent == "claude" else None) == run["output"]
    if agent == "claude":
        assert [False, True] == [call["error"] is not None for call in calls]
    if spans or agent == "codex":
        assert "sunny" in calls[0]["result_text"]
    assert (432 if spans or agent == "claude" else None) == (
        run.get("usage") and sum(run["usage"][f"{kind}_tokens"] for kind in ("input", "output"))
    )


async def test_a_prompt_of_gemini_is_one_run_though_each_turn_is_a_trace(tmp_path: Path) -> None:
    commands = ["echo sunny", "cat /nowhere"]

    run = await _graded(tmp_path, "gemini", commands, spans=True)

    calls = run["tool_calls"]
    assert commands == [call["arguments"]["command"] for call in calls]
    assert ["approved"] * 2 == [call["decision"] for call in calls]
    assert "sunny" in calls[0]["result_text"]
    assert "No such file" in calls[1]["result_text"]
    assert (_PROMPT, ANSWER) == (run["input"], run["output"])
    assert (360, 72) == (run["usage"]["input_tokens"], run["usage"]["output_tokens"])


@pytest.mark.parametrize("spans", [True, False], ids=["both signals", "log records alone"])
async def test_a_command_that_was_refused_is_denied_and_did_not_run(spans: bool, tmp_path: Path) -> None:
    run = await _graded(tmp_path, "claude", ["curl -s http://127.0.0.1:1", "echo sunny"], spans=spans)

    refused, approved = run["tool_calls"]
    assert ("denied", False, None) == (refused["decision"], refused["executed"], refused["error"])
    assert {"command": "curl -s http://127.0.0.1:1"} == refused["arguments"]
    assert "approved" == approved["decision"]
