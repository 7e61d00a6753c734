"""Worker processes for commands that grade without a running service."""

import asyncio
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Self, TypeVar

from collector.clock import SystemClock
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import Metrics
from collector.workers.custom_evaluators import CustomEvaluators
from collector.workers.pool import WorkerPool
from collector.workers.worker_evaluations import evaluate_with_workers, need_workers
from processors.criteria import Evaluation
from processors.evaluate import evaluate_run
from processors.model import AgentRun, EvaluationResult, SkipReason

_ResultT = TypeVar("_ResultT")


class OfflineWorkers:
    """A pool with a loop of its own, to be used as a context; without custom evaluators nothing is started.

    Attributes:
        pool: What to ask, or None where there is nobody.
    """

    def __init__(self, evaluators: CustomEvaluators) -> None:
        self._runner = asyncio.Runner()
        self.pool = (
            WorkerPool(evaluators, metrics=Metrics(), clock=SystemClock()) if evaluators.kinds else None
        )

    def __enter__(self) -> Self:
        if self.pool is not None:
            self._runner.run(_start(self.pool))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.pool is not None:
            self._runner.run(self.pool.shutdown())
        self._runner.close()

    def run(self, work: Coroutine[object, object, _ResultT]) -> _ResultT:
        """What `work` returns, which may ask the pool."""
        return self._runner.run(work)

    def evaluate(
        self, run: AgentRun, evaluations: Sequence[Evaluation], unix_nano: int
    ) -> Sequence[EvaluationResult]:
        """Grade one run."""
        if self.pool is None or not need_workers(evaluations):
            return evaluate_run(run, evaluations, unix_nano=unix_nano)
        return self._runner.run(
            evaluate_with_workers(run, evaluations, self.pool, unix_nano=unix_nano, on_skip=_ignore)
        )


async def _start(pool: WorkerPool) -> None:
    pool.start(TaskSupervisor(on_failure=_stop_nothing))


def _stop_nothing() -> None:
    """A worker that is gone leaves its questions to the time limit."""


def _ignore(_: SkipReason) -> None:
    """Skips are counted by the service only."""
