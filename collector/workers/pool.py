"""The workers of custom evaluators: questions wait in one queue, each worker takes the next one.

Every question is answered in time, whatever custom code does: a worker that takes too long or ends is
replaced, and its question ends in an error.
"""

import asyncio
from dataclasses import dataclass, field

from collector.clock import Clock
from collector.config_fields import format_duration
from collector.telemetry import Metrics
from collector.workers.custom_evaluators import LOAD_SECONDS, CustomEvaluators
from collector.workers.protocol import MAX_REPLY_BYTES
from collector.workers.worker_evaluator import WorkerFailure, read_answer
from collector.workers.worker_process import (
    COMMAND,
    WorkerDied,
    WorkerLanes,
    WorkerProcess,
    back_off,
    unless_ended,
    within,
)
from processors.model import NotEvaluated, Score

WAIT_SECONDS = 10.0
"""How long a question waits for a free worker before the run counts as not evaluated."""

MAX_QUESTION_BYTES = 16 << 20
"""A longer run is not evaluated: reading it takes a worker a multiple of that in memory."""

_TOLERATED_FAILURES = 3


class Suspensions:
    """Custom evaluators that are not run for now: they broke three workers in a row or more.

    When the time is over an evaluator is run again; the next failure suspends it for twice as long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def remaining(self, evaluator: str) -> float:
        """Seconds for which `evaluator` is still suspended, else 0."""
        until = self._until.get(evaluator)
        return 0.0 if until is None else max(0.0, until - self._clock.monotonic())

    def note_answer(self, evaluator: str) -> None:
        """Its worker answered."""
        if self._failures.pop(evaluator, None) is not None:
            self._until.pop(evaluator, None)

    def note_failure(self, evaluator: str) -> None:
        """It broke a worker."""
        failures = self._failures[evaluator] = self._failures.get(evaluator, 0) + 1
        if failures >= _TOLERATED_FAILURES:
            pause = back_off(failures - _TOLERATED_FAILURES + 1)
            self._until[evaluator] = self._clock.monotonic() + pause


@dataclass(slots=True, eq=False)
class _Question:
    evaluator: str
    message: bytes
    answer: asyncio.Future[Score | NotEvaluated] = field(default_factory=asyncio.Future)


class WorkerPool(WorkerLanes):
    """Runs custom evaluators; nothing runs before `start`."""

    command = COMMAND
    load_seconds = LOAD_SECONDS
    max_reply_bytes = MAX_REPLY_BYTES
    failures = ("timeout", "died")

    def __init__(self, evaluators: CustomEvaluators, *, metrics: Metrics, clock: Clock) -> None:
        super().__init__(evaluators.config.workers, evaluators.order, metrics, clock)
        self._timeout = evaluators.config.timeout
        self._suspensions = Suspensions(clock)
        self._waiting: asyncio.Queue[_Question] = asyncio.Queue()

    async def request(self, evaluator: str, message: bytes) -> Score | NotEvaluated:
        """The verdict of a custom evaluator.

        Not evaluated if no worker is free within `WAIT_SECONDS` or before the pool is closed, or if the
        message is longer than `MAX_QUESTION_BYTES`.

        Raises:
            WorkerFailure: there is none, at the latest after that time plus the time limit of a question.
        """
        if self._is_closed:
            return NotEvaluated.over_limit("the service is stopping")
        if len(message) > MAX_QUESTION_BYTES:
            return NotEvaluated.over_limit(f"the run has more than {MAX_QUESTION_BYTES >> 20} MiB")
        if self._suspensions.remaining(evaluator) > 0:
            raise WorkerFailure(
                "EvaluatorSuspended",
                f"evaluator {evaluator} broke several workers in a row and is suspended for a while",
            )
        question = _Question(evaluator, message)
        self._unsettled.add(question.answer)
        self._waiting.put_nowait(question)
        try:
            return await within(WAIT_SECONDS + self._timeout, question.answer, self._clock)
        except TimeoutError:
            return NotEvaluated.over_limit(f"no worker was free within {format_duration(WAIT_SECONDS)}")
        finally:
            self._unsettled.discard(question.answer)
            question.message = b""

    def _end_early(self, future: asyncio.Future[Score | NotEvaluated]) -> None:
        future.set_result(NotEvaluated.over_limit("the service stopped before a worker answered"))

    async def _work_with(self, worker: WorkerProcess) -> None:
        ended = asyncio.ensure_future(worker.wait())
        try:
            while True:
                question = await unless_ended(self._waiting.get(), ended)
                if question.answer.done():
                    continue
                try:
                    worker.send(question.message)
                except WorkerDied:
                    self._waiting.put_nowait(question)
                    raise
                if not await self._has_answered(worker, question):
                    return
        except WorkerDied:  # it had no question, so because of none
            self._metrics.worker_failures.add(1, "died")
        finally:
            ended.cancel()

    async def _has_answered(self, worker: WorkerProcess, question: _Question) -> bool:
        """Settle a question that was sent; False if the worker is lost over it."""
        answer, name = question.answer, question.evaluator
        try:
            reply = await within(self._timeout, worker.receive(), self._clock)
        except (TimeoutError, WorkerDied) as error:
            if isinstance(error, TimeoutError):
                limit = format_duration(self._timeout)
                kind, text = "WorkerTimeout", f"evaluator {name} did not answer within {limit}"
            else:
                kind, text = "WorkerDied", f"evaluator {name} crashed its worker process"
            self._suspensions.note_failure(name)
            self._metrics.worker_failures.add(1, kind.removeprefix("Worker").lower())
            self._log.warning(
                "lost", "A custom evaluator crashed or timed out; its worker was restarted.", evaluator=name
            )
            if not answer.done():
                answer.set_exception(WorkerFailure(kind, text))
            return False
        self._suspensions.note_answer(name)
        if not answer.done():
            try:
                answer.set_result(read_answer(name, reply))
            except WorkerFailure as failure:
                answer.set_exception(failure)
        return True
