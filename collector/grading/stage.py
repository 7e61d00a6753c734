"""The stage that grades finished traces, each in one of its lanes, and counts what grading came to."""

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.clock import Clock
from collector.conversations import Conversations
from collector.errors import GradingCutShort
from collector.grading.grader import Graded, Grader, Needed, Supplied, advance
from collector.grading.grading_pool import GradingPool, Quarantined
from collector.grading.lanes import Lane, LoopLane, ThreadLane, is_large
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger
from collector.trace import FinishedTrace, GradedTrace
from collector.workers.pool import WorkerPool
from collector.workers.worker_evaluations import query_workers
from processors.model import NotEvaluatedReason

if TYPE_CHECKING:  # offline grading does without a journal and its library
    from collector.journal import Journal, StoredVerdicts

_logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class GradingStage:
    """Grades finished traces.

    Attributes:
        grader: Grades in this process.
        workers: Answer for custom evaluators.
        conversations: What is known of them; without it nothing is.
        pool: Grades all traces in processes, if there is one.
        thread: Grades large traces where there is no pool.
    """

    grader: Grader
    metrics: Metrics
    clock: Clock
    workers: WorkerPool | None = None
    conversations: Conversations | None = None
    pool: GradingPool | None = None
    thread: ThreadLane | None = None
    journal: "Journal | None" = None

    def __post_init__(self) -> None:
        self._loop = LoopLane(self.grader, self.journal)
        self._log = RateLimitedLogger(_logger, self.clock)

    async def grade(self, trace: FinishedTrace) -> GradedTrace:
        """Grade one trace; never raises for what a trace can hold.

        Returns without waiting where the loop grades it and no custom evaluator has to be asked.
        """
        try:
            try:
                graded = await self._lane(trace).grade(trace, self._supply)
            except Quarantined:
                self.metrics.traces_quarantined.add(1)
                _logger.error(
                    "Process after process ended while it graded a trace: it is forwarded ungraded.",
                    extra={"trace_id": trace.trace_id.hex()},
                )
                trace = replace(trace, quarantined=True)
                graded = await self._lane(trace).grade(trace, self._supply)
        except GradingCutShort as error:
            graded = self.grader.unchanged(trace, error)
        return self._counted(graded)

    def grade_now(self, trace: FinishedTrace) -> GradedTrace:
        """As `grade`, outside of any loop; for a stage that grades in the loop and asks no workers."""
        try:
            self.grade(trace).send(None)
        except StopIteration as end:
            graded: GradedTrace = end.value
            return graded
        raise RuntimeError("grading waits for something, which takes a loop")

    async def restore(self, trace: FinishedTrace, verdicts: "StoredVerdicts") -> GradedTrace:
        """The trace as it was graded by a process before, without grading it again.

        If its runs cannot be rebuilt as they were, which takes another version of the service, it is graded.
        """
        restored = self.grader.restore(
            trace, verdicts.results, unix_nano=verdicts.unix_nano, instance=verdicts.instance
        )
        return await self.grade(trace) if restored is None else self._counted(restored)

    def regrade(self, trace: FinishedTrace) -> GradedTrace | None:
        """What the verdicts on a trace would be now, uncounted; None where that takes custom evaluators."""
        steps = self.grader.steps(trace)
        outcome = advance(steps)
        if isinstance(outcome, Needed) and outcome.runs:
            outcome = advance(steps, self._conversations_of(outcome))
        if isinstance(outcome, Needed) or outcome.tally.failure is not None:
            return None
        return outcome.trace

    @property
    def has_room(self) -> bool:
        """Whether further traces should be graded; if not they wait in the buffer."""
        return self.pool is None or self.pool.has_room

    def start(self, tasks: TaskOwner) -> None:
        """Start the processes that grade, and the workers, if there are any."""
        for processes in (self.pool, self.workers):
            if processes is not None:
                processes.start(tasks)

    def close(self) -> None:
        """Wait for nothing any more: traces that are not graded yet leave unchanged, or without answers."""
        for part in (self.thread, self.pool, self.workers):
            if part is not None:
                part.close()

    async def shutdown(self) -> None:
        """Close, and end the processes."""
        self.close()
        if self.journal is not None:
            self.journal.end(in_background=True)  # what is left of work did not crash
        for processes in (self.pool, self.workers):
            if processes is not None:
                await processes.shutdown()

    def _lane(self, trace: FinishedTrace) -> Lane:
        if self.pool is not None and not trace.quarantined:
            return self.pool
        return self.thread if self.thread is not None and is_large(trace) else self._loop

    async def _supply(self, needed: Needed) -> Supplied:
        if needed.runs:
            return self._conversations_of(needed)
        workers = self.workers
        assert workers is not None  # else the grader asks no questions
        return Supplied(
            answers=await asyncio.gather(*[query_workers(of_run, workers) for of_run in needed.questions])
        )

    def _conversations_of(self, needed: Needed) -> Supplied:
        if self.conversations is None:
            return Supplied([None for _ in needed.runs])
        known = self.conversations.look_up(needed.runs, self.clock.unix_nano())
        return Supplied([run.conversation for run in known])

    def _counted(self, graded: Graded) -> GradedTrace:
        """Add a graded trace to the metrics, the log and its conversations."""
        metrics, tally = self.metrics, graded.tally
        if graded.runs and self.conversations is not None:
            self.conversations.look_up(graded.runs, self.clock.unix_nano())
        if tally.foreign_results:
            metrics.foreign_results.add(tally.foreign_results)
        if tally.without_criteria:
            metrics.not_evaluated.add(tally.without_criteria, NotEvaluatedReason.NO_CRITERIA.value)
        for reason, count in tally.skipped.items():
            metrics.evaluations_skipped.add(count, reason.value)
        if tally.failure is not None:
            metrics.traces_failed.add(1)
            self._log.exception(
                "trace_failed",
                "A trace could not be evaluated; it is forwarded unchanged.",
                tally.failure,
                trace_id=graded.trace.trace_id.hex(),
            )
        if tally.seconds is not None:
            metrics.evaluation_seconds.observe(tally.seconds)
        return graded.trace
