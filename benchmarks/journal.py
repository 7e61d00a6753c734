"""What the journal adds to the path of a span, side by side in one process, and to an acknowledgement.

Sixteen senders with one request in flight each go through the real pipeline: admitted, written and synced,
acknowledged, graded, sent by a real queue to an exporter that drops everything, and deleted from the journal.
Beside it stands the same without a journal. Both take turns of half a second in one process, because a
machine's speed changes by more than the journal costs within seconds. Each has an event loop of its own and a
clock that stands still while the other has its turn.
"""

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import count
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import process_time
from typing import TypeVar

import uvloop

from benchmarks.agent_criteria import CRITERIA_TEXT
from benchmarks.page import with_range
from benchmarks.workload import DISTINCT_PROCESSES, Shape, TemplateRequest, process_requests
from collector.buffer import GroupByTraceConfig, TraceBuffer
from collector.exporters import FanOut
from collector.exporters.counts import ExportCounts
from collector.exporters.exporter import ExportResponse
from collector.exporters.sending_queue import SendingQueue
from collector.exporters.sink import exporter_sink
from collector.exporters.span_exporter_config import RetryConfig, SendingQueueConfig
from collector.grading import Grader, GradingStage
from collector.journal import Journal, JournalConfig
from collector.journal_file.store import file_system_of
from collector.memory_limiter import MemoryLimiter
from collector.otlp import EnvelopeRegistry
from collector.path import Delivery, Finisher, Intake
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, Signal
from processors.criteria import CriteriaSet, read_criteria
from processors.spans import RawRecord

_SENDERS = 16
_SECONDS_PER_TURN = 0.5
_TURNS_PER_ROUND = 10
_WARM_UP_TURNS = 6
_SPANS_IN_STOCK = 30_000
"""Spans in the requests that are made before a turn: more than are sent in it."""
_HELD_SPANS = 20_000
"""Senders wait while the service has more: it takes spans in faster than it grades them."""
_HELD_BYTES = 1 << 31

_Answer = TypeVar("_Answer")


class _Turn:
    """What one side did in half a second."""

    def __init__(self) -> None:
        self.spans = 0
        self.requests = 0
        self.transactions = 0.0
        self.cpu_seconds = 0.0
        self.answer_seconds: list[float] = []


class _PausedClock:
    """Time that goes on only while its side has its turn."""

    def __init__(self) -> None:
        self._paused_seconds = 0.0
        self._left = time.monotonic()

    def resume(self) -> None:
        self._paused_seconds += time.monotonic() - self._left

    def pause(self) -> None:
        self._left = time.monotonic()

    def monotonic(self) -> float:
        return time.monotonic() - self._paused_seconds

    def unix_nano(self) -> int:
        return time.time_ns() - int(self._paused_seconds * 1e9)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _DroppingExporter:
    """Takes every request at once, and says how many spans came."""

    name = "dropping"

    def __init__(self, note: Callable[[int], None]) -> None:
        self.endpoints: dict[Signal, str] = {"traces": self.name}
        self._note = note

    async def start(self) -> None:
        pass

    async def export(self, request: bytes, span_count: int, signal: Signal = "traces") -> ExportResponse:
        self._note(span_count)
        return ExportResponse()

    async def shutdown(self, deadline: float) -> None:
        pass


class _NoServiceTraces:
    def is_own(self, trace_id: bytes) -> bool:
        return False

    def finish(self, trace: FinishedTrace) -> None:
        raise AssertionError("none was made here")

    def drop_records(self, records: Sequence[RawRecord]) -> None:
        raise AssertionError("none was made here")


class _Side:
    """The service from the receivers' call to the exporters', with a journal in `directory` or without."""

    def __init__(self, templates: Sequence[Sequence[TemplateRequest]], directory: Path | None) -> None:
        self._loop = uvloop.new_event_loop()
        self._clock = _PausedClock()
        self._templates = templates
        self._stock: list[deque[tuple[bytes, int]]] = [deque() for _ in range(_SENDERS)]
        self._passes = count(1)
        self._held_spans = 0
        self._has_room = asyncio.Event()
        self._tasks = TaskSupervisor(lambda: None)
        self.metrics = Metrics()
        self.journal = (
            None
            if directory is None
            else Journal(JournalConfig(directory=directory), metrics=self.metrics, clock=self._clock)
        )
        self._run(self._start())

    def close(self) -> None:
        self._run(self._close())
        self._loop.close()

    def turn(self) -> _Turn:
        """Half a second of requests, and until the last of them is acknowledged."""
        self._fill_stock()
        gc.collect()
        return self._run(self._turn())

    def _run(self, work: Coroutine[object, object, _Answer]) -> _Answer:
        self._clock.resume()
        try:
            return self._loop.run_until_complete(work)
        finally:
            self._clock.pause()

    async def _start(self) -> None:
        envelopes = EnvelopeRegistry()
        limiter = MemoryLimiter(_HELD_BYTES, envelopes.bytes_held)
        criteria = CriteriaSet(read_criteria(CRITERIA_TEXT, "criteria.yaml", {}).agents)
        metrics, clock = self.metrics, self._clock
        sink = exporter_sink(_DroppingExporter(self._note_left))
        queue = SendingQueue(
            sink,
            SendingQueueConfig(),
            RetryConfig(),
            counts=ExportCounts(metrics, sink.name),
            clock=clock,
            is_required=True,
        )
        fan_out = FanOut({"traces": [queue]}, [], limiter)
        await fan_out.start(self._tasks)
        buffer = TraceBuffer(
            config=GroupByTraceConfig.model_validate({"root_grace": "250ms"}),
            limiter=limiter,
            metrics=metrics,
            clock=clock,
            has_receipts=self.journal is not None,
        )
        delivery = Delivery(
            fan_out=fan_out,
            limiter=limiter,
            service_traces=_NoServiceTraces(),
            journal=self.journal,
        )
        grader = Grader(criteria=lambda: criteria, clock=clock, instance="bench")
        finisher = Finisher(
            buffer=buffer,
            grading=GradingStage(grader=grader, metrics=metrics, clock=clock, journal=self.journal),
            delivery=delivery,
            on_runs=lambda graded: None,
            on_graded=lambda trace, graded, started: None,
            tasks=self._tasks,
            metrics=metrics,
            clock=clock,
        )
        self._intake = Intake(
            buffer=buffer,
            envelopes=envelopes,
            delivery=delivery,
            finisher=finisher,
            metrics=metrics,
            clock=clock,
        )
        if self.journal is not None:
            self.journal.open(envelopes)
            self.journal.start(self._tasks)
        finisher.start()

    async def _close(self) -> None:
        if self.journal is not None:
            await self.journal.shutdown()
        await self._tasks.cancel()
        if self._tasks.failures:
            raise self._tasks.failures[0]

    def _fill_stock(self) -> None:
        while sum(spans for requests in self._stock for _, spans in requests) < _SPANS_IN_STOCK:
            for number, requests in enumerate(self._stock):
                which = next(self._passes)
                requests.extend(
                    (template.for_pass(which), template.spans)
                    for template in self._templates[number % DISTINCT_PROCESSES]
                )

    def _note_left(self, spans: int) -> None:
        self._held_spans -= spans
        if self._held_spans <= _HELD_SPANS:
            self._has_room.set()

    async def _turn(self) -> _Turn:
        turn = _Turn()
        transactions = self._transactions()
        ends, used = time.perf_counter() + _SECONDS_PER_TURN, process_time()
        await asyncio.gather(*[self._send(requests, turn, ends) for requests in self._stock])
        if self.journal is not None:  # its thread is idle when the other side's turn begins
            await self.journal.flush(self._clock.monotonic() + 30)
        turn.cpu_seconds = process_time() - used
        turn.transactions = self._transactions() - transactions
        return turn

    async def _send(self, requests: "deque[tuple[bytes, int]]", turn: _Turn, ends: float) -> None:
        while requests and time.perf_counter() < ends:
            if self._held_spans > _HELD_SPANS:
                self._has_room.clear()
                await self._has_room.wait()
                continue
            body, spans = requests.popleft()
            began = time.perf_counter()
            outcome = self._intake.consume_traces(body)
            if outcome.stored is not None:
                await outcome.stored
            turn.answer_seconds.append(time.perf_counter() - began)
            turn.spans += spans
            turn.requests += 1
            self._held_spans += spans
            await asyncio.sleep(0)

    def _transactions(self) -> float:
        return sum(self.metrics.journal_commit_seconds.values[()][:-1])


def journal_lines(shapes: Sequence[Shape], *, rounds: int, folder: Path | None) -> Iterator[str]:
    """CPU of the path for a span without a journal and with one, and the time until it is acknowledged.

    The journal is written below `folder`, by default where temporary files are.
    """
    with TemporaryDirectory(dir=folder) as directory:
        system = file_system_of(Path(directory)) or "an unknown file system"
    yield f"# {_SENDERS} senders; journal on {system}, `fsync: always`; median of {rounds} rounds."
    yield (
        "| spans a request | journal | CPU µs a span | added | acknowledged p50 / p99, ms "
        "| requests a transaction |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    for shape in shapes:
        yield from _lines(shape, rounds, folder)


def _lines(shape: Shape, rounds: int, folder: Path | None) -> Iterator[str]:
    templates = [process_requests(each, shape, time.time_ns()) for each in range(DISTINCT_PROCESSES)]
    with TemporaryDirectory(dir=folder) as directory:
        sides = _Side(templates, None), _Side(templates, Path(directory, "journal"))
        turns: tuple[list[_Turn], list[_Turn]] = ([], [])
        for number in range(_WARM_UP_TURNS + rounds * _TURNS_PER_ROUND):
            for which in (0, 1) if number % 2 else (1, 0):
                turns[which].append(sides[which].turn())
        for side in sides:
            side.close()
    without, with_journal = (each[_WARM_UP_TURNS:] for each in turns)
    off, on = _rounds_of(without), _rounds_of(with_journal)
    added = [one - other for one, other in zip(on, off, strict=True)]
    requests = sum(turn.requests for turn in with_journal) / sum(turn.transactions for turn in with_journal)
    yield f"| {shape.name} | off | {with_range(off, '.1f')} | | {_answers(without)} | |"
    yield (
        f"| {shape.name} | on | {with_range(on, '.1f')} | {with_range(added, '+.1f')} | "
        f"{_answers(with_journal)} | {requests:.1f} |"
    )


def _answers(turns: Sequence[_Turn]) -> str:
    milliseconds = quantiles([seconds * 1e3 for turn in turns for seconds in turn.answer_seconds], n=100)
    return f"{milliseconds[49]:.1f} / {milliseconds[98]:.1f}"


def _rounds_of(turns: Sequence[_Turn]) -> list[float]:
    """CPU µs a span in each round, over all its turns."""
    return [
        sum(turn.cpu_seconds for turn in some) * 1e6 / sum(turn.spans for turn in some)
        for some in (
            turns[start : start + _TURNS_PER_ROUND] for start in range(0, len(turns), _TURNS_PER_ROUND)
        )
    ]
