"""Keeping runs in the store: what it adds to the path of a span, side by side in one process.

At saturation the store cannot keep every run: it takes its share of one core and drops the rest, counted. So
its cost is a share of the whole path's CPU, threads included, beside the same path without a store. Both take
turns of half a second in one process, because a machine's speed changes by more than the store costs within
seconds. Each has an event loop of its own, and the time of the one with the store stands still while the
other has its turn, so that the store takes its share of its own turns alone.
"""

import asyncio
import gc
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TypeVar

from benchmarks.agent_criteria import CRITERIA_TEXT
from benchmarks.micro import batches_of, bodies_of, new_buffer
from benchmarks.page import with_range
from benchmarks.workload import SHAPES
from collector.clock import ManualClock, SystemClock
from collector.grading import Grader, GradingStage
from collector.otlp import join_spans
from collector.store import RunStore, StoreConfig
from collector.telemetry import Metrics
from processors.criteria import CriteriaSet, read_criteria

_SECONDS_PER_TURN = 0.5
_TURNS_PER_ROUND = 20
_WARM_UP_SECONDS = 4.0
"""In which as many runs wait to be written as may, which is a burst of its own."""

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class _Turn:
    spans: int
    traces: int
    cpu_seconds: float
    seconds: float


class _PausedLoop:
    """An event loop whose time goes on only while it runs."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._paused_seconds = 0.0
        self._left = time.monotonic()
        self._loop.time = lambda: time.monotonic() - self._paused_seconds  # type: ignore[method-assign]

    def run(self, work: Coroutine[object, object, _Answer]) -> _Answer:
        self._paused_seconds += time.monotonic() - self._left
        try:
            return self._loop.run_until_complete(work)
        finally:
            self._left = time.monotonic()

    def close(self) -> None:
        self._loop.close()


def store_lines(*, rounds: int) -> Iterator[str]:
    """CPU of the path for a span without a store and with one, and what the store kept."""
    criteria = CriteriaSet(read_criteria(CRITERIA_TEXT, "criteria.yaml", {}).agents)
    clock = SystemClock()
    grader = Grader(criteria=lambda: criteria, clock=clock, instance="bench")
    stage = GradingStage(grader=grader, metrics=Metrics(), clock=clock)
    bodies = bodies_of(SHAPES[0])
    metrics = Metrics()
    turns: dict[bool, list[_Turn]] = {False: [], True: []}
    with TemporaryDirectory() as folder:
        store = RunStore(StoreConfig(path=Path(folder, "runs.db")), metrics=metrics, clock=SystemClock())
        loops = {False: _PausedLoop(), True: _PausedLoop()}
        loops[True].run(store.start())
        loops[True].run(_turn(bodies, stage, store, _WARM_UP_SECONDS))
        kept = metrics.store_runs.values[("written",)]
        gc.collect()
        for number in range(rounds * _TURNS_PER_ROUND):
            for has_store in (False, True) if number % 2 else (True, False):
                work = _turn(bodies, stage, store if has_store else None, _SECONDS_PER_TURN)
                turns[has_store].append(loops[has_store].run(work))
        kept = metrics.store_runs.values[("written",)] - kept
        loops[True].run(store.shutdown(0))
        for loop in loops.values():
            loop.close()
    yield "| store | CPU µs a span | traces/s | runs kept/s |"
    yield "| --- | --- | --- | --- |"
    for has_store, name in ((False, "off"), (True, "in a file")):
        seconds = sum(turn.seconds for turn in turns[has_store])
        yield (
            f"| {name} | {with_range(_rounds_of(turns[has_store]), '.1f')} | "
            f"{sum(turn.traces for turn in turns[has_store]) / seconds:,.0f} | "
            f"{kept / seconds if has_store else 0:,.0f} |"
        )
    ratios = [on / off for on, off in zip(_rounds_of(turns[True]), _rounds_of(turns[False]), strict=True)]
    yield f"# With the store {with_range(ratios, '.3f')} times the CPU: median of {rounds} rounds."


def _rounds_of(turns: Sequence[_Turn]) -> list[float]:
    """CPU µs a span in each round, over all its turns."""
    return [
        sum(turn.cpu_seconds for turn in some) * 1e6 / sum(turn.spans for turn in some)
        for some in (
            turns[start : start + _TURNS_PER_ROUND] for start in range(0, len(turns), _TURNS_PER_ROUND)
        )
    ]


async def _turn(
    bodies: Sequence[bytes], stage: GradingStage, store: RunStore | None, seconds: float
) -> _Turn:
    spans = traces = 0
    began, used = time.perf_counter(), process_time()
    while time.perf_counter() - began < seconds:
        found = await _one_pass(bodies, stage, store)
        spans += found[0]
        traces += found[1]
    return _Turn(spans, traces, process_time() - used, time.perf_counter() - began)


async def _one_pass(bodies: Sequence[bytes], stage: GradingStage, store: RunStore | None) -> tuple[int, int]:
    """From request bytes to the bytes that leave, as the service does; how many spans and traces."""
    clock = ManualClock(unix_nano=time.time_ns())
    buffer = new_buffer(clock)
    for body in bodies:
        buffer.admit(batches_of(body))
        await asyncio.sleep(0)
    clock.advance(0.5)
    spans = traces = 0
    while buffer.spans_held:
        for trace in buffer.poll():
            graded = stage.grade_now(trace)
            join_spans(graded.spans)
            if store is not None and graded.runs:
                store.export_results(graded)
            spans += len(graded.spans)
            traces += 1
            await asyncio.sleep(0)
        clock.advance(0.5)
    return spans, traces
