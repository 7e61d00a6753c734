"""Worker processes for commands that grade without a running service."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Self, TypeVar

from collector.clock import SystemClock
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import Metrics
from collector.workers.custom_evaluators import CustomEvaluators
from collector.workers.pool import WorkerPool
from collector.workers.worker_evaluations import needs_workers, query_workers, question_run
from processors.criteria import Evaluation
from processors.evaluate import evaluate_run
from processors.model import AgentRun, EvaluationResult, WholeTrace

_ResultT = TypeVar("_ResultT")


class OfflineWorkers:
    """A worker pool with a loop of its own, as a context manager.

    Attributes:
        pool: The pool, or None without custom evaluators: then nothing is started.
    """

    def __init__(self, evaluators: CustomEvaluators) -> None:
        self._runner = asyncio.Runner()
        self.pool = (
            WorkerPool(evaluators, metrics=Metrics(), clock=SystemClock()) if evaluators.kinds else None
        )

    def __enter__(self) -> Self:
        if self.pool is not None:
            self._runner.run(self._start(self.pool))
        return self

    def __exit__(self, *error: object) -> None:
        if self.pool is not None:
            self._runner.run(self.pool.shutdown())
        self._runner.close()

    def run(self, work: Coroutine[object, object, _ResultT]) -> _ResultT:
        """The result of `work`, which may use the pool."""
        return self._runner.run(work)

    def evaluate(
        self, run: AgentRun, evaluations: Sequence[Evaluation], unix_nano: int, trace: WholeTrace
    ) -> Sequence[EvaluationResult]:
        """Grade one run of `trace`."""
        if self.pool is None or not needs_workers(evaluations):
            return evaluate_run(run, evaluations, unix_nano=unix_nano, trace=trace)
        questioned = question_run(run, evaluations, lambda skipped: None, trace)
        answers = self._runner.run(query_workers(questioned.questions, self.pool))
        return questioned.results(answers, unix_nano)

    async def _start(self, pool: WorkerPool) -> None:
        # Without a worker, questions end at their time limit: no failure stops anything here.
        pool.start(TaskSupervisor(on_failure=lambda: None))
