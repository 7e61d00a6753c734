"""The worker processes: questions wait in one line, each worker takes the next one.

Every question is answered in time, whatever custom code does: a worker that takes too long or ends is
replaced, and its question ends in an error.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, TypeVar

import orjson

from collector.clock import Clock
from collector.config_fields import format_duration
from collector.telemetry import Metrics, RateLimitedLogger
from collector.workers.answer import WorkerFailure, read_answer
from collector.workers.custom_evaluators import LOAD_SECONDS, CustomEvaluators
from collector.workers.lanes import WorkerLanes, within
from collector.workers.protocol import MAX_REPLY_BYTES
from collector.workers.suspension import Suspensions
from collector.workers.worker_process import COMMAND, WorkerDied, WorkerProcess
from processors.model import NotEvaluated, Score

WAIT_SECONDS = 10.0
"""How long a question waits for a free worker; then the run is not evaluated, as beyond any other limit."""

MAX_QUESTION_BYTES = 16 << 20
"""A run that is longer as JSON is not evaluated: reading it takes a worker a multiple of that in memory."""

_logger = logging.getLogger(__name__)
_ResultT = TypeVar("_ResultT")


class _Question:
    __slots__ = ("answer", "evaluator", "message")

    def __init__(self, evaluator: str, message: bytes) -> None:
        self.evaluator = evaluator
        self.message = message
        self.answer: asyncio.Future[Score | NotEvaluated] = asyncio.get_running_loop().create_future()


class WorkerPool(WorkerLanes):
    """Asks custom evaluators; nothing runs before `start`."""

    def __init__(self, evaluators: CustomEvaluators, *, metrics: Metrics, clock: Clock) -> None:
        super().__init__(
            COMMAND,
            size=evaluators.config.workers,
            order=evaluators.order,
            load_seconds=LOAD_SECONDS,
            max_reply_bytes=MAX_REPLY_BYTES,
            metrics=metrics,
            clock=clock,
            log=RateLimitedLogger(_logger, clock),
        )
        self._timeout = evaluators.config.timeout
        self._suspensions = Suspensions(clock)
        self._waiting: deque[_Question] = deque()
        self._unanswered: set[_Question] = set()
        self._arrivals = asyncio.Semaphore(0)
        self._is_closed = False
        for reason in ("timeout", "died"):
            metrics.worker_failures.add(0, reason)

    async def ask(self, evaluator: str, message: bytes) -> Score | NotEvaluated:
        """The verdict of a custom evaluator.

        Not evaluated when no worker gets to it in `WAIT_SECONDS` or before the pool is closed, and beyond
        `MAX_QUESTION_BYTES`.

        Raises:
            WorkerFailure: there is none; at the latest after that time and the time limit of a question.
        """
        if self._is_closed:
            return NotEvaluated.over_limit("the service is stopping")
        if len(message) > MAX_QUESTION_BYTES:
            return NotEvaluated.over_limit(f"the run has more than {MAX_QUESTION_BYTES >> 20} MiB")
        if self._suspensions.remaining(evaluator) > 0:
            raise WorkerFailure(
                "EvaluatorSuspended",
                f"evaluator {evaluator} ended several workers in a row and is left alone for a while",
            )
        question = _Question(evaluator, message)
        self._unanswered.add(question)
        self._waiting.append(question)
        self._arrivals.release()
        try:
            return await within(WAIT_SECONDS + self._timeout, _result(question.answer), self._clock)
        except TimeoutError:
            return NotEvaluated.over_limit(f"no worker was free within {format_duration(WAIT_SECONDS)}")
        finally:
            self._unanswered.discard(question)
            question.message = b""

    def close(self) -> None:
        """Answer all questions that are open, and every later one: not evaluated."""
        self._is_closed = True
        for question in self._unanswered:
            if not question.answer.done():
                question.answer.set_result(
                    NotEvaluated.over_limit("the service stopped before a worker had answered")
                )

    async def shutdown(self) -> None:
        """Close, and end the workers; safe at any time."""
        self.close()
        await self._end_workers()

    async def _work_with(self, worker: WorkerProcess) -> None:
        while True:
            await self._arrivals.acquire()
            question = self._waiting.popleft()
            answer, name = question.answer, question.evaluator
            if answer.done():
                continue
            try:
                found = _object_in(await within(self._timeout, worker.ask(question.message), self._clock))
            except (TimeoutError, WorkerDied) as error:
                is_late = isinstance(error, TimeoutError)
                self._suspensions.note_failure(name)
                self._metrics.worker_failures.add(1, "timeout" if is_late else "died")
                text = (
                    f"evaluator {name} did not answer within {format_duration(self._timeout)}"
                    if is_late
                    else f"evaluator {name} ended its worker process"
                )
                self._log.warning("lost", "A custom evaluator cost its worker process.", evaluator=name)
                if not answer.done():
                    answer.set_exception(WorkerFailure("WorkerTimeout" if is_late else "WorkerDied", text))
                return
            self._suspensions.note_answer(name)
            if answer.done():
                continue
            try:
                answer.set_result(read_answer(name, found))
            except WorkerFailure as failure:
                answer.set_exception(failure)


def _object_in(answer: bytes) -> Mapping[str, Any]:
    try:
        content = orjson.loads(answer)
    except orjson.JSONDecodeError:
        content = None
    return content if isinstance(content, dict) else {"score": None}


async def _result(answer: asyncio.Future[_ResultT]) -> _ResultT:
    return await answer
