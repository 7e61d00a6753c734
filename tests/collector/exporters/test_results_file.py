"""Graded runs in a file: in order, off the loop, never in anyone's way."""

import asyncio
import io
import json
import threading
import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from collector.clock import Clock, ManualClock, SystemClock
from collector.errors import StartupError
from collector.exporters import ExporterContext
from collector.exporters.json_lines_file import JsonLinesFile
from collector.exporters.results_file import ResultsFileConfig, ResultsFileExporter
from collector.memory_limiter import MemoryLimiter
from collector.telemetry import Metrics
from processors.annotation import format_run
from tests.support.backends import eventually
from tests.support.graded_runs import trace_of, weather_run


def _exporter(
    path: Path,
    metrics: Metrics | None = None,
    *,
    clock: Clock | None = None,
    limiter: MemoryLimiter | None = None,
    **config: object,
) -> ResultsFileExporter:
    context = ExporterContext(
        clock=clock or SystemClock(),
        metrics=metrics or Metrics(),
        console=io.StringIO(),
        limiter=limiter or MemoryLimiter(1 << 30),
    )
    model = ResultsFileConfig.model_validate({"path": path, **config})
    return ResultsFileExporter("results_file", model, context)


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
    exporter = _exporter(path, clock=clock)
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


async def test_what_waits_is_lines_counted_in_the_budget_and_the_oldest_go_when_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.exporters.run_writer._OWN_BYTES", 0)
    path = tmp_path / "x.runs.jsonl"
    clock, metrics = ManualClock(), Metrics()
    numbered = [replace(weather_run(), graded_unix_nano=number) for number in range(1, 11)]
    room = 6 * (max(len(format_run(run)) for run in numbered) + 530)
    limiter = MemoryLimiter(room)
    exporter = _exporter(path, metrics, clock=clock, limiter=limiter)
    done: list[int] = []
    await exporter.start()
    path.unlink()
    path.mkdir()

    for number, run in enumerate(numbered, start=1):
        exporter.export_results(trace_of(run), partial(done.append, number))
        await eventually(lambda: bool(clock._sleepers), "the first write has failed")
        assert room // 7 < limiter.used <= room
    assert [1, 2, 3, 4] == done
    assert limiter.try_acquire(room // 2)  # others want it, and senders go before results
    assert [1, 2, 3, 4, 5, 6, 7] == done
    limiter.release(room // 2)
    path.rmdir()
    clock.advance(60)
    await eventually(lambda: len(done) == 10, "the rest is written")
    await exporter.shutdown(clock.monotonic() + 5)

    assert list(range(1, 11)) == done
    assert [format_run(run) for run in numbered[7:]] == path.read_bytes().splitlines()
    assert 7 == metrics.results_dropped.value("queue_full", "results_file")
    assert 0 == limiter.used


async def test_a_writer_that_keeps_up_loses_nothing_while_spans_fill_the_budget(tmp_path: Path) -> None:
    path, metrics, limiter = tmp_path / "x.runs.jsonl", Metrics(), MemoryLimiter(1 << 20)
    assert limiter.try_acquire(1 << 20)
    exporter = _exporter(path, metrics, limiter=limiter)
    await exporter.start()

    for _ in range(100):
        exporter.export_results(trace_of(weather_run()))
        await eventually(lambda: limiter.used == 1 << 20, "it is written")
    await exporter.shutdown(SystemClock().monotonic() + 10)

    assert 100 == len(path.read_bytes().splitlines())
    assert 0 == metrics.results_dropped.value("queue_full", "results_file")


async def test_runs_are_let_go_of_while_a_write_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        hangs.set()
        goes_on.wait()

    monkeypatch.setattr(JsonLinesFile, "append", hang)
    exporter = _exporter(tmp_path / "x.runs.jsonl")
    await exporter.start()
    exporter.export_results(trace_of(weather_run()))
    await eventually(hangs.is_set, "a write hangs")
    trace = trace_of(weather_run(), weather_run())
    runs = [weakref.ref(run.run) for run in trace.runs]

    exporter.export_results(trace)
    del trace
    await eventually(lambda: not any(run() for run in runs), "the runs are gone")

    assert 3 == exporter._queue.held_spans
    goes_on.set()
    await exporter.shutdown(SystemClock().monotonic() + 10)


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
