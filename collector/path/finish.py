"""From the trace buffers to delivery: finished traces are taken out and graded, in turns with requests."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace

from collector.buffer import TraceBuffer
from collector.clock import Clock, ends_within
from collector.grading import GradingStage, full_collections, is_large
from collector.path.delivery import Delivery
from collector.task_supervisor import TaskOwner, start_at_once
from collector.telemetry import BEFORE_FAN_OUT, Metrics
from collector.trace import FinishedTrace, GradedTrace
from processors.model import FinishReason

FINISH_INTERVAL_SECONDS = 0.1
"""How often the buffers are polled for finished traces."""
_TRACES_AT_A_TIME = 8
_SHORTEST_TURN_SECONDS, _LONGEST_TURN_SECONDS = 0.01, 0.05
"""How long finished traces are graded before requests get their turn again."""
_ROUNDS_BETWEEN_TURNS = 4
"""Rounds of the loop between two turns: a request takes several from its first byte to its answer."""

_RUNS_AT_ONCE = 500
"""Runs of a large trace that are counted before requests get their turn: some 15 ms."""

_logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Finisher:
    """Takes finished traces out of the buffers and sends each on its way, graded.

    Attributes:
        buffer: Holds the spans of requests; buffers of partitions are added by `follow`.
        on_runs: Called with every graded trace before it leaves; with a large one, once for some of its runs.
        on_graded: Called with every trace, its graded form, and when grading began (Unix nanoseconds).
    """

    buffer: TraceBuffer
    grading: GradingStage
    delivery: Delivery
    on_runs: Callable[[GradedTrace], None]
    on_graded: Callable[[FinishedTrace, GradedTrace, int], None]
    tasks: TaskOwner
    metrics: Metrics
    clock: Clock

    def __post_init__(self) -> None:
        self._buffers = deque([self.buffer])  # the next to be polled first
        self._spans_in_grading = 0
        self._waiting: set[asyncio.Task[None]] = set()  # the tasks of traces that are not graded at once
        self._polling: asyncio.Task[None] | None = None
        self.metrics.spans_awaiting_verdict.read_from(self._spans_awaiting_verdict)
        self.metrics.spans_held.read_from(
            (lambda: self.delivery.withheld_spans) if self.buffer.streams else self._spans_awaiting_verdict,
            BEFORE_FAN_OUT,
        )

    def start(self) -> None:
        """Begin to take finished traces out of the buffers."""
        self._polling = self.tasks.create_task(self._run(), name="finish traces")

    def follow(self, buffer: TraceBuffer) -> None:
        """Take finished traces out of this buffer as well."""
        self._buffers.append(buffer)

    def leave(self, buffer: TraceBuffer) -> None:
        """Take none out of it any more."""
        self._buffers.remove(buffer)

    async def shutdown(self, deadline: float) -> None:
        """Send everything that is held on its way, with the verdicts that are possible by now.

        Nothing finishes by being quiet any more, however long all this takes: what is sent now is refused.
        What is not graded at once has half of the time until `deadline`; the exporters need the other. Where
        the journal keeps unfinished traces the next process grades them.
        """
        if self._polling is not None:
            self._polling.cancel()
        journal = self.delivery.journal
        is_kept = journal is not None and journal.config.on_shutdown == "keep"
        if not is_kept:
            for trace in self.buffer.finish_all(FinishReason.SHUTDOWN):
                self._finish(trace)
                await asyncio.sleep(0)
        if self._waiting:
            if is_kept:
                for task in self._waiting:
                    task.cancel()
            graded = asyncio.ensure_future(asyncio.wait(list(self._waiting)))
            await ends_within((deadline - self.clock.monotonic()) / 2, graded, self.clock)
            self.grading.close()
            await graded
        await self.grading.shutdown()
        if journal is not None:
            await journal.flush(deadline)
            # Verdicts that were being written already leave when that is done.
            while self.delivery.spans_to_store and self.clock.monotonic() < deadline:
                await self.clock.sleep(0.01)

    async def _run(self) -> None:
        """Finish traces until cancelled.

        Grading and receiving share the loop. A turn of grading is short; while more is due than a turn can
        do, turns get longer, so that senders are slowed down before the buffer fills up.
        """
        turn = _SHORTEST_TURN_SECONDS
        while True:
            if self._finish_until(self.clock.monotonic() + turn):
                turn = min(2 * turn, _LONGEST_TURN_SECONDS)
                for _ in range(_ROUNDS_BETWEEN_TURNS):
                    await self.clock.sleep(0)
            else:
                turn = _SHORTEST_TURN_SECONDS
                await self.clock.sleep(FINISH_INTERVAL_SECONDS)

    def _finish_until(self, turn_ends: float) -> bool:
        """Send finished traces on their way and keep no reference to any; whether more may be due."""
        if not self.grading.has_room:
            return False
        unpolled = len(self._buffers)
        while unpolled:
            finished = self._buffers[0].poll(_TRACES_AT_A_TIME)
            if not finished:
                unpolled -= 1
                self._buffers.rotate(-1)
                continue
            unpolled = len(self._buffers)
            for trace in finished:
                self._finish(trace)
            if self.clock.monotonic() >= turn_ends:
                self._buffers.rotate(-1)
                return True
        return False

    def _finish(self, trace: FinishedTrace) -> None:
        """Send the trace on its way: at once, unless something has to be waited for."""
        if self.delivery.service_traces.is_own(trace.trace_id):
            self.delivery.finish_own(trace)
            return
        if self.delivery.journal is not None:
            self.delivery.journal.finish(trace)
        task = start_at_once(self._grade_and_deliver(trace), self.tasks, name="grade")
        if task is not None:
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _grade_and_deliver(self, trace: FinishedTrace) -> None:
        self._spans_in_grading += len(trace.spans)
        permission = None if trace.receipt is None else trace.receipt.permission(trace.trace_id)
        if permission is not None and not await permission:
            self.metrics.traces_quarantined.add(1)
            _logger.error(
                "A trace was being graded when the process crashed, twice: it is forwarded ungraded.",
                extra={"trace_id": trace.trace_id.hex()},
            )
            trace = replace(trace, quarantined=True)
        started = self.clock.unix_nano()
        with full_collections.held_off() if is_large(trace) else nullcontext():
            graded = await self.grading.grade(trace)
            for part in _parts(graded):
                self.on_runs(part)
                if part is not graded:
                    await asyncio.sleep(0)
            self._spans_in_grading -= len(trace.spans)  # from here on delivery counts them
            self.on_graded(trace, graded, started)
            self.delivery.deliver(trace, graded)
            del graded, part

    def _spans_awaiting_verdict(self) -> int:
        return self.buffer.group.spans_held + self._spans_in_grading + self.delivery.spans_to_store


def _parts(graded: GradedTrace) -> Iterator[GradedTrace]:
    """A graded trace in parts of some runs each."""
    if len(graded.runs) <= _RUNS_AT_ONCE:
        yield graded
        return
    for first in range(0, len(graded.runs), _RUNS_AT_ONCE):
        part = slice(first, first + _RUNS_AT_ONCE)
        yield replace(graded, runs=graded.runs[part], hidden_runs=graded.hidden_runs[part])
