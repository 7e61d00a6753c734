"""Liveness is answered by a thread of its own, and a step that holds up the loop is named in the log."""

import asyncio
import json
import logging
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from collector.clock import SystemClock
from collector.grading import WATCHED
from collector.telemetry import Heartbeat, Watchdog
from collector.telemetry import liveness as liveness_module
from collector.trace import FinishedTrace
from processors.model import FinishReason
from tests.support.agent_spans import MILLISECOND, TRACE_ID, agent, tool
from tests.support.held_spans import START_UNIX_NANO
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop


def _ask(endpoint: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{endpoint}{path}", timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_liveness_is_answered_while_the_loop_stands_still() -> None:
    async with ServiceInLoop(json.dumps(_CONFIGURATION), START_UNIX_NANO) as service:
        # Asked from this thread, which is the loop's: nothing of the loop can run meanwhile.
        assert (200, "ok\n") == _ask(service.endpoints["telemetry"], "/healthz")


async def test_liveness_fails_a_minute_after_the_loop_last_turned(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ServiceInLoop(json.dumps(_CONFIGURATION), START_UNIX_NANO) as service:
        endpoint = service.endpoints["telemetry"]
        really = time.monotonic
        await asyncio.sleep(2 * liveness_module.BEAT_SECONDS)
        monkeypatch.setattr("collector.telemetry.liveness.time.monotonic", lambda: really() + 50)
        assert 200 == _ask(endpoint, "/healthz")[0]
        monkeypatch.setattr("collector.telemetry.liveness.time.monotonic", lambda: really() + 61)
        status, text = _ask(endpoint, "/healthz")
        assert 503 == status
        assert text.startswith("the event loop has not turned for 6")

        await asyncio.sleep(2 * liveness_module.BEAT_SECONDS)
        answer = await asyncio.to_thread(_ask, endpoint, "/healthz")
        assert 200 == answer[0], "a loop that turns again lives"
        assert 200 == (await asyncio.to_thread(_ask, endpoint, "/readyz"))[0]


_CONFIGURATION = {
    "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
    "service": {"telemetry": {"endpoint": "127.0.0.1:0", "self_check": {"enabled": False}}},
}


async def test_a_step_that_takes_too_long_is_named_with_its_trace_and_evaluation(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from processors.evaluators.output_match import Contains

    def slow(self: object, run: object, facts: object) -> object:
        ends = time.monotonic() + 2.0
        while time.monotonic() < ends:
            pass
        raise ValueError

    monkeypatch.setattr(Contains, "evaluate", slow)
    monkeypatch.setattr("collector.assembly.Watchdog", _impatient)
    criteria = {"agents": {"*": {"evaluations": [
        {"evaluator": "contains", "name": "has-word", "criteria": {"search_text": "x"}}]}}}  # fmt: skip
    (tmp_path / "criteria.yaml").write_text(yaml.safe_dump(criteria))
    configuration = {
        **_CONFIGURATION,
        "processors": {"evaluation": {"criteria": [str(tmp_path / "criteria.yaml")]}},
    }
    start = START_UNIX_NANO // MILLISECOND
    spans = [tool(2, 1, "search", (start, start + 1)), agent(1, None, "helper", (start, start + 2))]
    with caplog.at_level(logging.WARNING, "collector.telemetry.liveness"):
        async with ServiceInLoop(json.dumps(configuration), START_UNIX_NANO) as service:
            from collector.otlp.codec import join_spans

            async with GrpcSender(service.endpoints["grpc"]) as sender:
                assert "OK" == (await sender.send(join_spans(spans))).code
            await service.until(
                lambda samples: 1 == samples['tracegrade_traces_finished_total{reason="root"}']
            )
            await asyncio.sleep(2 * liveness_module.BEAT_SECONDS)

    noted = [record for record in caplog.records if record.name == "collector.telemetry.liveness"]
    # A busy machine can hold the loop up elsewhere, too; the step of the trace does so once.
    [place] = [place for place, record in enumerate(noted) if "trace_id" in record.__dict__]
    warning, over = noted[place : place + 2]
    assert "A step blocks the event loop." == warning.message
    assert TRACE_ID.hex() == warning.__dict__["trace_id"]
    assert ("has-word", "contains") == (warning.__dict__["evaluation"], warning.__dict__["evaluator"])
    assert warning.__dict__["step"]
    assert warning.__dict__["seconds"] >= 0.4
    assert "The event loop turns again." == over.message


def _impatient(heartbeat: Heartbeat, watched: object) -> Watchdog:
    assert watched is WATCHED
    return Watchdog(heartbeat, WATCHED, step_seconds=0.4)


async def test_a_loop_that_turns_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    heartbeat = Heartbeat()
    heartbeat.start()
    watchdog = Watchdog(heartbeat, WATCHED, step_seconds=0.6)
    watchdog.start()
    await SystemClock().sleep(1.5)
    watchdog.stop()
    watchdog.stop()
    heartbeat.stop()

    assert [] == caplog.records


def test_what_is_watched_is_there() -> None:
    """A variable that is renamed would silently go missing from the log."""
    for watched in WATCHED.values():
        assert watched.variable in watched.code.co_varnames
    assert "trace_id" in FinishedTrace.__dataclass_fields__
    assert FinishReason.ROOT


_WATCHED_LOOP = """
import asyncio, logging
from collector.telemetry import Heartbeat, Watchdog
logging.basicConfig(format="%(message)s")
async def main():
    heartbeat = Heartbeat()
    heartbeat.start()
    watchdog = Watchdog(heartbeat, {}, step_seconds=1)
    watchdog.start()
    print("ready", flush=True)
    await asyncio.sleep(4)
    watchdog.stop()
asyncio.run(main())
"""


def test_a_process_that_was_paused_blames_no_step() -> None:
    command = [sys.executable, "-c", _WATCHED_LOOP]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        time.sleep(0.7)
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        process.send_signal(signal.SIGCONT)
        _, logged = process.communicate(timeout=30)

    assert ["The process did not run: it was suspended or had no CPU."] == logged.splitlines()
