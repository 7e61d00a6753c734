"""The processes that grade: traces wait in one line, each process takes the next few of them.

A process that ends, or takes too long, is replaced. The traces that it was at are graded by another one, each
by itself; one that was being graded when three of them ended is not graded any more.
"""

import asyncio
import pickle
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from collector.clock import Clock
from collector.errors import GradingCutShort
from collector.grading.grader import Graded, Needed
from collector.grading.grading_worker import CRITERIA, TRACES, CriteriaTexts, WorkerSettings
from collector.grading.hand_over import Question, decode_graded, encode_questions
from collector.grading.lanes import Supply
from collector.otlp import EnvelopeRegistry
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, GradedTrace
from collector.workers.worker_process import (
    WorkerDied,
    WorkerLanes,
    WorkerProcess,
    unless_ended,
    within,
    worker_command,
)
from processors.model import AgentRun

CRASHES_UNTIL_QUARANTINE = 3
"""A trace that was being graded when this many processes ended is not graded: it was tried again twice."""
SPANS_AT_A_TIME, BYTES_AT_A_TIME = 500, 1 << 20
"""A message has no more of either, but for one with a single trace: it is some 30 ms of work."""
MESSAGES_AHEAD = 2
"""Messages that a process has at a time, so that it need not wait for the loop."""
SPANS_WAITING = 10_000
"""Spans that may wait for each process: half a second of its work. All others wait in the buffer."""
ANSWER_SECONDS, SECONDS_A_SPAN = 60.0, 0.001
"""How long a message may take, and longer for each span in it."""

_LARGE_SPANS = 1000
"""Messages with more spans, and the answers to them, are written and read in a thread."""


class Quarantined(Exception):
    """Process after process ended while it graded this trace."""


@dataclass(slots=True, eq=False)
class _Job:
    question: Question
    crashes: int = 0
    size: int = field(init=False)
    outcome: asyncio.Future[Graded | Needed] = field(default_factory=asyncio.Future)

    def __post_init__(self) -> None:
        self.size = self.question.trace.size

    @property
    def spans(self) -> int:
        return len(self.question.trace.spans)


class GradingPool(WorkerLanes):
    """Grades traces in processes of its own; nothing runs before `start`.

    `criteria` returns those in force, another object once they have changed; `read_run` reads the line of a
    run.
    """

    command = worker_command("collector.grading.grading_worker")
    load_seconds = 60.0
    max_reply_bytes = 1 << 31
    failures = ("grading_timeout", "grading_died")

    def __init__(
        self,
        settings: WorkerSettings,
        *,
        processes: int,
        criteria: Callable[[], CriteriaTexts],
        read_run: Callable[[bytes], AgentRun],
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        super().__init__(processes, pickle.dumps(settings), metrics, clock)
        self._criteria = criteria
        self._read_run = read_run
        self._holds_spans = settings.results.mode != "stream"
        self._registry = EnvelopeRegistry()
        self._waiting: deque[_Job] = deque()
        self._spans_waiting = 0
        self._arrived = asyncio.Event()
        self.pids: set[int] = set()
        """The processes that grade now."""

    @property
    def has_room(self) -> bool:
        """Whether further traces should be handed over."""
        return self._spans_waiting < SPANS_WAITING * self._size

    async def grade(self, trace: FinishedTrace, supply: Supply) -> Graded:
        """Grade the trace; see `collector.grading.lanes.Lane`.

        Raises:
            Quarantined: it is not graded, since processes end over it.
            GradingCutShort: this was closed before.
        """
        question = Question(trace)
        while isinstance(outcome := await self._outcome(question), Needed):
            supplied = await supply(outcome)
            if outcome.runs:
                question = question._replace(conversations=supplied.conversations)
            else:
                question = question._replace(answers=supplied.answers)
        return outcome

    async def _outcome(self, question: Question) -> Graded | Needed:
        if self._is_closed:
            raise GradingCutShort
        job = _Job(question)
        self._unsettled.add(job.outcome)
        self._wait(job)
        try:
            return await job.outcome
        finally:
            self._unsettled.discard(job.outcome)

    def _end_early(self, future: asyncio.Future[Graded | Needed]) -> None:
        future.set_exception(GradingCutShort())

    async def _work_with(self, worker: WorkerProcess) -> None:
        """Send messages ahead and take the answers, until the process ends or is of no more use."""
        sent: deque[list[_Job]] = deque()
        criteria: CriteriaTexts | None = None
        self.pids.add(worker.pid)
        reason = ""
        ended = asyncio.ensure_future(worker.wait())
        try:
            while True:
                while len(sent) < MESSAGES_AHEAD and (self._waiting or not sent):
                    jobs = self._next()
                    if not jobs:
                        await unless_ended(self._arrived.wait(), ended)
                        continue
                    sent.append(jobs)
                    message = TRACES + await self._encoded(jobs)
                    try:
                        if self._criteria() is not criteria:
                            criteria = self._criteria()
                            worker.send(CRITERIA + pickle.dumps(criteria))
                        worker.send(message)
                    except WorkerDied:
                        self._take_back(sent.pop(), has_crashed=False)
                        raise
                limit = ANSWER_SECONDS + SECONDS_A_SPAN * sum(job.spans for jobs in sent for job in jobs)
                answer = await within(limit, worker.receive(), self._clock)
                await self._settle(sent[0], answer)
                sent.popleft()
        except WorkerDied:
            reason = "grading_died"
        except TimeoutError:
            reason = "grading_timeout"
        finally:
            ended.cancel()
            self.pids.discard(worker.pid)
            if reason:
                self._metrics.worker_failures.add(1, reason)
                self._log.warning("lost", "A grading process was lost; another replaces it.")
            for place, jobs in reversed(list(enumerate(sent))):
                self._take_back(jobs, has_crashed=bool(reason) and place == 0)  # it was at the first only

    def _next(self) -> list[_Job]:
        """The next traces to be graded; if there is none, `_arrived` is set when there is."""
        jobs: list[_Job] = []
        spans = size = 0
        while self._waiting:
            job = self._waiting[0]
            spans += job.spans
            size += job.size
            is_alone = job.crashes or (jobs and jobs[0].crashes)
            if jobs and (is_alone or spans > SPANS_AT_A_TIME or size > BYTES_AT_A_TIME):
                break
            self._waiting.popleft()
            self._spans_waiting -= job.spans
            if not job.outcome.done():
                jobs.append(job)
        if not self._waiting:
            self._arrived.clear()
        return jobs

    async def _encoded(self, jobs: list[_Job]) -> bytes:
        questions, now = [job.question for job in jobs], self._clock.unix_nano()

        def encoded() -> bytes:
            conversations = [question.conversations for question in questions]
            return pickle.dumps((encode_questions(questions, now), conversations))

        return await asyncio.to_thread(encoded) if _spans_in(jobs) > _LARGE_SPANS else encoded()

    async def _settle(self, jobs: list[_Job], answer: bytes) -> None:
        questions = [job.question for job in jobs]

        def decoded() -> list[Graded | Needed]:
            encoded, runs = pickle.loads(answer)
            graded = decode_graded(
                encoded, questions, self._registry, self._read_run, holds_spans=self._holds_spans
            )
            return [
                Graded(content, tally, of_trace)
                if isinstance(content, GradedTrace)
                else Needed(of_trace, content)
                for (content, tally), of_trace in zip(graded, runs, strict=True)
            ]

        is_large = _spans_in(jobs) > _LARGE_SPANS
        for job, outcome in zip(
            jobs, await asyncio.to_thread(decoded) if is_large else decoded(), strict=True
        ):
            if not job.outcome.done():
                job.outcome.set_result(outcome)

    def _take_back(self, jobs: list[_Job], *, has_crashed: bool) -> None:
        """Let others grade what a process has not graded."""
        for job in reversed(jobs):
            if job.outcome.done():
                continue
            job.crashes += has_crashed
            if job.crashes < CRASHES_UNTIL_QUARANTINE:
                self._wait(job, first=True)
            else:
                job.outcome.set_exception(Quarantined())

    def _wait(self, job: _Job, *, first: bool = False) -> None:
        if first:
            self._waiting.appendleft(job)
        else:
            self._waiting.append(job)
        self._spans_waiting += job.spans
        self._arrived.set()


def _spans_in(jobs: list[_Job]) -> int:
    return sum([job.spans for job in jobs])
