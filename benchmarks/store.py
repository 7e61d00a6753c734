"""Keeping runs in the store: what it adds to the path of a span, side by side in one process.

At saturation the store cannot keep every run: it takes its share of one core and drops the rest, counted. So
its cost is a share of the whole path's CPU, threads included, beside the same path without a store. Both take
short turns in one process; the figures of the running service vary more between two processes than the store
costs.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks.agent_criteria import CRITERIA_TEXT
from benchmarks.micro import batches_of, bodies_of, new_buffer
from benchmarks.page import with_range
from collector.clock import ManualClock, SystemClock
from collector.otlp import join_spans
from collector.pipeline import EvaluationStage
from collector.store import RunStore, StoreConfig
from collector.telemetry import Metrics
from collector.tools.bench.workload import SHAPES
from processors.criteria import CriteriaSet, read_criteria

_SECONDS_PER_TURN = 3.0
_WARM_UP_SECONDS = 2.0
"""In which as many runs wait to be written as may, which is a burst of its own."""


@dataclass(frozen=True, slots=True)
class _Turn:
    micros_per_span: float
    traces: int
    kept: int
    seconds: float


def store_lines(*, rounds: int) -> Iterator[str]:
    """CPU of the path for a span without a store and with one, and what the store kept."""
    pairs = asyncio.run(_measured(rounds))
    ratios = [on.micros_per_span / off.micros_per_span for off, on in pairs]
    yield "| store | CPU µs a span | traces/s | runs kept/s |"
    yield "| --- | --- | --- | --- |"
    for name, turns in (("off", [off for off, _ in pairs]), ("in a file", [on for _, on in pairs])):
        yield (
            f"| {name} | {with_range([turn.micros_per_span for turn in turns], '.1f')} | "
            f"{median(turn.traces / turn.seconds for turn in turns):,.0f} | "
            f"{median(turn.kept / turn.seconds for turn in turns):,.0f} |"
        )
    yield f"# with the store {with_range(ratios, '.3f')} times the CPU, median of {rounds} pairs of turns."


async def _measured(rounds: int) -> Sequence[tuple[_Turn, _Turn]]:
    criteria = CriteriaSet(read_criteria(CRITERIA_TEXT, "criteria.yaml", {}))
    bodies = bodies_of(SHAPES[0])
    stage = EvaluationStage(
        criteria=lambda: criteria, metrics=Metrics(), clock=SystemClock(), instance="bench"
    )
    await _turn(bodies, stage, has_store=True)  # nothing is measured that is done once
    pairs = []
    for number in range(rounds):
        first = bool(number % 2)
        turns = {first: await _turn(bodies, stage, has_store=first)}
        turns[not first] = await _turn(bodies, stage, has_store=not first)
        pairs.append((turns[False], turns[True]))
    return pairs


async def _turn(bodies: Sequence[bytes], stage: EvaluationStage, *, has_store: bool) -> _Turn:
    metrics = Metrics()
    with TemporaryDirectory() as folder:
        store = None
        if has_store:
            store = RunStore(StoreConfig(path=Path(folder, "runs.db")), metrics=metrics, clock=SystemClock())
            await store.start()
        await _passes(bodies, stage, store, _WARM_UP_SECONDS)
        kept = metrics.store_runs.values.get(("written",), 0)
        began, used = time.perf_counter(), process_time()
        spans, traces = await _passes(bodies, stage, store, _SECONDS_PER_TURN)
        cpu, seconds = process_time() - used, time.perf_counter() - began
        kept = round(metrics.store_runs.values.get(("written",), 0) - kept)
        if store is not None:
            await store.shutdown(0)
    return _Turn(cpu * 1e6 / spans, traces, kept, seconds)


async def _passes(
    bodies: Sequence[bytes], stage: EvaluationStage, store: RunStore | None, seconds: float
) -> tuple[int, int]:
    spans = traces = 0
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        found = await _one_pass(bodies, stage, store)
        spans += found[0]
        traces += found[1]
    return spans, traces


async def _one_pass(
    bodies: Sequence[bytes], stage: EvaluationStage, store: RunStore | None
) -> tuple[int, int]:
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
            graded = stage.grade(trace)
            join_spans(graded.spans)
            if store is not None and graded.runs:
                store.export_results(graded)
            spans += len(graded.spans)
            traces += 1
            await asyncio.sleep(0)
        clock.advance(0.5)
    return spans, traces
