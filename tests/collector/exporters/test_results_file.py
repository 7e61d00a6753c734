"""Graded runs in a file: in order, off the loop, never in anyone's way."""

import asyncio
import json
from pathlib import Path

import pytest

from collector.clock import ManualClock, SystemClock
from collector.errors import StartupError
from collector.exporters.results_file import ResultsFileConfig, ResultsFileExporter
from collector.telemetry.metrics import Metrics
from tests.support.backends import eventually
from tests.support.graded_runs import trace_of, weather_run


def _exporter(path: Path, metrics: Metrics | None = None, **config: object) -> ResultsFileExporter:
    model = ResultsFileConfig.model_validate({"path": path, **config})
    return ResultsFileExporter("results_file", model, metrics or Metrics(), SystemClock())


async def test_every_run_becomes_a_line(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.runs.jsonl"
    exporter = _exporter(path)
    await exporter.start()

    for _ in range(700):
        exporter.export_results(trace_of(weather_run(), weather_run()))
    await exporter.shutdown(SystemClock().monotonic() + 10)

    lines = path.read_bytes().splitlines()
    assert 1400 == len(lines)
    assert {"weather_agent"} == {json.loads(line)["agent"]["name"] for line in lines}


async def test_a_file_that_cannot_be_opened_stops_the_start_with_one_line(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "x.runs.jsonl"

    with pytest.raises(StartupError) as raised:
        await _exporter(path).start()

    assert f"exporters.results_file.path: {path} cannot be written: No such file or directory" == str(
        raised.value
    )


async def test_a_disk_that_fails_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "x.runs.jsonl"
    clock = ManualClock()
    exporter = ResultsFileExporter("results_file", ResultsFileConfig(path=path), Metrics(), clock)
    await exporter.start()
    path.unlink()
    path.mkdir()

    exporter.export_results(trace_of(weather_run()))
    await eventually(lambda: bool(clock._sleepers), "the write has failed")
    path.rmdir()
    clock.advance(60)
    await eventually(lambda: path.is_file() and path.read_bytes().endswith(b"\n"), "the line is written")

    await exporter.shutdown(clock.monotonic() + 5)
    assert 1 == len(path.read_bytes().splitlines())


async def test_pending_runs_are_bounded_and_the_loss_is_counted(tmp_path: Path) -> None:
    metrics = Metrics()
    exporter = _exporter(tmp_path / "x.runs.jsonl", metrics, max_pending_runs=3)
    await exporter.start()

    for _ in range(5):
        exporter.export_results(trace_of(weather_run()))
    await exporter.shutdown(SystemClock().monotonic() + 10)

    assert 2 == metrics.results_dropped.value("queue_full", "results_file")
    assert 3 == len((tmp_path / "x.runs.jsonl").read_bytes().splitlines())


async def test_shutdown_by_the_deadline_counts_what_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "x.runs.jsonl"
    metrics = Metrics()
    exporter = _exporter(path, metrics)
    await exporter.start()
    path.unlink()
    path.mkdir()

    exporter.export_results(trace_of(weather_run()))
    await asyncio.sleep(0)
    await exporter.shutdown(SystemClock().monotonic() + 0.1)
    await exporter.shutdown(SystemClock().monotonic() + 0.1)

    assert 1 == metrics.results_dropped.value("shutdown", "results_file")


async def test_shutdown_is_safe_before_start(tmp_path: Path) -> None:
    await _exporter(tmp_path / "x.runs.jsonl").shutdown(0)

    assert [] == list(tmp_path.iterdir())
