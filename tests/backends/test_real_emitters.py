"""Agents under real instrumentations, whose content comes over stock exporters as log records.

`make emitters-install` makes their environments, `make collector-install` the Collector in front.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from processors.model import JsonObject
from tests.emitters.model_server import ANSWER, scripted_model
from tests.support.backend_server import PROJECT, free_port
from tests.support.otel_collector import OtelCollector
from tests.support.service_process import PATIENCE_SECONDS, ServiceProcess

pytestmark = pytest.mark.backends

_PROGRAM = PROJECT / "tests" / "emitters" / "program.py"
_BESIDE = ("openai_v2", "openlit")
"""Those that need versions which the others do not go with."""
EMITTERS = (
    "genai_anthropic", "genai_langchain", "genai_openai", "openai_v2", "openlit", "pydantic_ai",
    "traceloop_openai",
)  # fmt: skip
_MODES = {"openai_v2": "true", "openlit": "true"}
"""Where log records are asked for otherwise than by `EVENT_ONLY`."""
_CRITERIA = """
agents:
  "*":
    evaluations:
      - evaluator: tool-response-handling
        name: honest
"""
CALLS = [
    ("get_temperature", {"city": "Tokyo"}),
    ("get_temperature", {"city": "Kyoto"}),
    ("get_humidity", {"city": "Tokyo"}),
    ("get_forecast", {"city": "Tokyo", "days": 2}),
]


async def _perform(emitter: str, endpoint: str) -> None:
    """Run the agent under one instrumentation, with `http://host:port` of an OTLP listener."""
    environment = ".venv-emitters-beside" if emitter in _BESIDE else ".venv-emitters"
    python = PROJECT / environment / "bin" / "python"
    if not python.exists():
        pytest.skip("make emitters-install was not run")
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_SERVICE_NAME": "weather",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": _MODES.get(emitter, "EVENT_ONLY"),
    }
    async with scripted_model() as url:
        program = await asyncio.create_subprocess_exec(
            str(python), str(_PROGRAM), emitter, url, env={**os.environ, **settings}
        )
        assert 0 == await asyncio.wait_for(program.wait(), PATIENCE_SECONDS)


async def _graded(service: ServiceProcess) -> JsonObject:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (runs := service.results()):
            await asyncio.sleep(0.1)
    (run,) = runs
    return run


def _assert_whole(run: Any) -> None:
    assert [(call["name"], call["arguments"]) for call in run["tool_calls"]] == CALLS
    results = [call["result_text"] or str(call["error"]) for call in run["tool_calls"]]
    for result, part in zip(results, ("25.0", "23.5", "60", "station of Tokyo is offline"), strict=True):
        assert part in result
    assert ANSWER == run["output"]
    (honest,) = run["evaluations"]
    assert ("honest", "fail") == (honest["name"], honest["outcome"])


@pytest.mark.parametrize("emitter", EMITTERS)
async def test_an_agent_whose_content_is_in_log_records_is_graded_whole(emitter: str, tmp_path: Path) -> None:
    async with ServiceProcess(tmp_path, {}, _CRITERIA) as service:
        await _perform(emitter, f"http://{service.endpoints['http']}")
        run = await _graded(service)

    _assert_whole(run)


@pytest.mark.parametrize("emitter", ["genai_openai", "traceloop_openai"])
async def test_a_collector_with_both_pipelines_may_stand_in_front(emitter: str, tmp_path: Path) -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    async with ServiceProcess(tmp_path, {}, _CRITERIA) as service:
        both: JsonObject = {"receivers": ["otlp"], "processors": ["batch"], "exporters": ["otlp"]}
        config: JsonObject = {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": endpoint}}}},
            "processors": {"batch": {}},
            "exporters": {"otlp": {"endpoint": service.endpoints["grpc"], "tls": {"insecure": True}}},
            "service": {
                "pipelines": {"traces": both, "logs": both},
                "telemetry": {"metrics": {"level": "none"}},
            },
        }
        async with OtelCollector(tmp_path, "both", config, endpoint):
            await _perform(emitter, f"http://{endpoint}")
            run = await _graded(service)

    _assert_whole(run)
