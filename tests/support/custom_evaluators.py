"""Custom evaluators written for a test, loaded as a service file would name them."""

import textwrap
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from collector.clock import Clock, SystemClock
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import Metrics
from collector.workers.config import WorkersConfig
from collector.workers.custom_evaluators import CustomEvaluators, load_custom_evaluators
from collector.workers.pool import WorkerPool
from collector.workers.worker_evaluator import WorkerEvaluator


def loaded(folder: Path, codes: Mapping[str, str], **settings: object) -> CustomEvaluators:
    """The evaluators whose code is in `codes` by name, each with `grade` in a file of its own."""
    sources = {}
    for name, code in codes.items():
        file = folder / f"{name}.py"
        file.write_text(textwrap.dedent(code))
        sources[name] = {"file": file}
    return load_custom_evaluators(
        WorkersConfig.model_validate({"custom_evaluators": sources, "timeout": "5s"} | settings)
    )


def evaluator(
    evaluators: CustomEvaluators, name: str, config: object = None, criteria: object = None
) -> WorkerEvaluator:
    """The custom evaluator as criteria make it."""
    kind = evaluators.kinds[name]
    assert kind.Criteria is not None
    return kind(kind.Config.model_validate(config or {}), kind.Criteria.model_validate(criteria or {}))


@asynccontextmanager
async def running_pool(
    evaluators: CustomEvaluators, metrics: Metrics | None = None, clock: Clock | None = None
) -> AsyncIterator[WorkerPool]:
    """A pool with real worker processes."""
    pool = WorkerPool(evaluators, metrics=metrics or Metrics(), clock=clock or SystemClock())
    pool.start(TaskSupervisor(on_failure=_fail))
    try:
        yield pool
    finally:
        await pool.shutdown()


def _fail() -> None:
    raise AssertionError("a task of the pool died")
