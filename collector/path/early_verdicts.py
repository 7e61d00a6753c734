"""Failures that are certain while a trace goes on: searched for between requests, in a part of a core."""

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from collector.buffer import BufferGroup, EarlyReports, HeldTrace, TraceBuffer
from collector.clock import Clock
from collector.grading import EarlyFailure, Grader, GradingThread
from collector.path.delivery import ServiceTraces
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger
from collector.trace import FinishedTrace, RunningFailure
from processors.model import FinishReason

LOOK_INTERVAL_SECONDS = 1.0
"""A trace is looked at when it is this old, and again this long after the last time if it grew."""
_NOTICE_SECONDS = 0.25
"""How often buffers are searched for traces that grew."""
_PART_OF_A_CORE = 1 / 20
"""How much of one core may be spent on looking."""

_logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class EarlyVerdicts:
    """Reports each failure that no later span can undo, of evaluations that are `early`, once.

    Nothing is done while the criteria in force have none. Traces that began before this process, or this
    reader of their partition, are left out: it is not known what was reported of them. `on_failure` is
    called with each failure that is reported. `grader` is used nowhere else.
    """

    group: BufferGroup
    grader: Grader
    service_traces: ServiceTraces
    on_failure: Callable[[EarlyFailure], None]
    metrics: Metrics
    clock: Clock
    _due: deque[tuple[TraceBuffer, bytes, float]] = field(default_factory=deque, init=False)
    """Traces to be looked at, with when they became so."""
    _queued: set[tuple[int, bytes]] = field(default_factory=set, init=False)
    _followed: dict[TraceBuffer, tuple[int, float]] = field(default_factory=dict, init=False)
    """For each buffer since when it is followed (Unix nanoseconds), and where to search on, by its clock."""
    _running: list[tuple[TraceBuffer, HeldTrace, RunningFailure]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._thread = GradingThread()
        self._log = RateLimitedLogger(_logger, self.clock)

    def start(self, tasks: TaskOwner) -> None:
        """Begin to look; traces that are held by now are left out."""
        self._follow_buffers()
        tasks.create_task(self._run(), name="early verdicts")

    def running(self) -> list[RunningFailure]:
        """What was reported of traces that are not finished yet, latest first; from any thread."""
        return [failure for _, _, failure in reversed(self._running)]

    async def _run(self) -> None:
        noticed_at = -_NOTICE_SECONDS
        while True:
            if self.clock.monotonic() >= noticed_at + _NOTICE_SECONDS:
                noticed_at = self.clock.monotonic()
                self._follow_buffers()
                self._running = [each for each in self._running if each[0].held(each[1].key) is each[1]]
                if self.grader.criteria().looks_early:
                    self._notice_growth()
            pause = 0.0
            while self._due and not pause:
                pause = await self._look_at_next() / _PART_OF_A_CORE
                await self.clock.sleep(0)
            await self.clock.sleep(pause or _NOTICE_SECONDS)

    def _follow_buffers(self) -> None:
        now = self.clock.unix_nano()
        self._followed = {
            buffer: self._followed.get(buffer) or (now, buffer.finish_clock.now())
            for buffer in self.group.buffers
        }

    def _notice_growth(self) -> None:
        """Queue the traces that grew, once they are old enough, and long enough after the last look."""
        now = self.clock.monotonic()
        for buffer, (since, searched) in self._followed.items():
            clock = buffer.finish_clock
            # A trace that is too young, or was just looked at, is noticed again a little later.
            for trace in buffer.changed(searched):
                key = id(buffer), trace.key
                early = trace.early
                last = trace.first_monotonic if early is None else early.looked_at
                grew = early is None or early.count != _count(trace)
                if grew and key not in self._queued and now >= last + LOOK_INTERVAL_SECONDS:
                    self._queued.add(key)
                    self._due.append((buffer, trace.key, now))
            self._followed[buffer] = since, clock.now() - LOOK_INTERVAL_SECONDS - _NOTICE_SECONDS

    async def _look_at_next(self) -> float:
        """Look at the trace whose turn it is, if it still goes on; the processor time that took."""
        buffer, key, due = self._due.popleft()
        self._queued.discard((id(buffer), key))
        trace = buffer.held(key)
        if trace is None or buffer not in self._followed or self.service_traces.is_own(trace.trace_id):
            return 0.0
        now = self.clock.monotonic()
        if trace.early is None:
            trace.early = EarlyReports(now, 0)
        trace.early.looked_at, trace.early.count = now, _count(trace)
        if not buffer.goes_on(trace, self._followed[buffer][0]):
            return 0.0  # what was read of it, grading needs as well
        if now > due + LOOK_INTERVAL_SECONDS:
            self.metrics.early_looks_postponed.add(1)
        beginning = FinishedTrace(
            trace_id=trace.trace_id,
            spans=list(trace.spans.values()),
            reason=FinishReason.MAX_AGE,
            tenant=trace.tenant,
            records=list(trace.log_records.values()) if trace.log_records else (),
        )
        failures, seconds = await self._thread.run(partial(self._failures, beginning))
        self.metrics.early_look_seconds.add(seconds)
        for failure in failures:
            if _is_first(failure, trace.early.known):
                self.on_failure(failure)
                self._log_failure(failure)
                self._running.append((buffer, trace, _as_running(failure, self.clock.unix_nano())))
        return seconds

    def _failures(self, beginning: FinishedTrace) -> tuple[list[EarlyFailure], float]:
        started = time.thread_time()
        return self.grader.certain_failures(beginning), time.thread_time() - started

    def _log_failure(self, failure: EarlyFailure) -> None:
        run, (result,) = failure.failed.run, failure.failed.results
        self._log.warning(
            result.name,
            "A run that goes on fails an evaluation, whatever is still to come.",
            trace_id=run.trace_id.hex(),
            agent=run.agent.name,
            evaluation=result.name,
            evaluator=result.evaluator,
            severity=result.severity.value,
            explanation=result.explanation,
        )


def _as_running(failure: EarlyFailure, unix_nano: int) -> RunningFailure:
    run, (result,) = failure.failed.run, failure.failed.results
    return RunningFailure(
        trace_id=run.trace_id,
        tenant=run.tenant,
        agent=run.agent.name,
        evaluation=result.name,
        severity=result.severity.value,
        explanation=result.explanation,
        unix_nano=unix_nano,
    )


def _count(trace: HeldTrace) -> int:
    return len(trace.spans) + len(trace.log_records or ())


def _is_first(failure: EarlyFailure, reported: set[tuple[bytes | str | None, str]]) -> bool:
    """Whether the failure was not reported yet; it is from now on.

    Of agents of one name the first is reported. Once a run without a name was, it may be that of any name.
    """
    known, name = failure.known, failure.failed.results[0].name
    keys: list[tuple[bytes | str | None, str]] = [(known.key, name), (None, name)]
    if known.is_named:
        keys[1] = known.run.agent.name, name
    if (None, name) in reported or not reported.isdisjoint(keys):
        return False
    reported.update(keys)
    return True
