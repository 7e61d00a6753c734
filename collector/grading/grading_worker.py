"""A process that grades traces for the service: takes its settings, then one message of traces at a time.

Started by `collector.grading.grading_pool` with an empty environment.
"""

import os
import pickle
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from collector.clock import SystemClock
from collector.grading.grader import AwaitedTrace, Grader
from collector.grading.hand_over import Form, Question, decode_questions, encode_graded
from collector.grading.tally import Tally
from collector.otlp import EnvelopeRegistry
from collector.results_config import ResultsConfig
from collector.trace import FinishedTrace, GradedTrace
from collector.workers.protocol import ChannelClosed, end_with_the_service, frame, open_channel, read_frame
from processors.criteria import CriteriaSet
from processors.model import PriceTable
from processors.shapes import Dialect

CRITERIA, TRACES = b"C", b"T"
"""The first byte of a message says what follows: criteria, which are not answered, or traces."""


class CriteriaTexts(Protocol):
    """Criteria as the texts of their files; it can be pickled."""

    def read(self) -> CriteriaSet:
        """The criteria that they say."""
        ...


class GradingConfig(Protocol):
    """What the service file says of grading; it can be pickled."""

    def own_dialects(self) -> list[Dialect]:
        """The telemetry conventions that it describes."""
        ...

    def model_prices(self) -> PriceTable | None:
        """What models cost."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a worker grades by, but for the criteria; see `Grader`."""

    config: GradingConfig
    instance: str
    missing_parents: str
    asks_workers: bool
    results: ResultsConfig
    writes_scores: bool
    form: Form


class _ServiceClock(SystemClock):
    """Tells the time of the service as of its last message."""

    def __init__(self) -> None:
        self.now_unix_nano = 0

    def unix_nano(self) -> int:
        return self.now_unix_nano


class _Worker:
    def __init__(self, settings: WorkerSettings) -> None:
        self._clock = _ServiceClock()
        self._criteria = CriteriaSet()
        self._form = settings.form
        self._registry = EnvelopeRegistry()
        self._grader = Grader(
            criteria=lambda: self._criteria,
            clock=self._clock,
            instance=settings.instance,
            missing_parents="not_evaluated" if settings.missing_parents == "not_evaluated" else "grade",
            dialects=settings.config.own_dialects(),
            prices=settings.config.model_prices(),
            asks_workers=settings.asks_workers,
            results=settings.results,
            writes_scores=settings.writes_scores,
        )

    def take_criteria(self, message: bytes) -> None:
        texts: CriteriaTexts = pickle.loads(message)
        self._criteria = texts.read()

    def answer(self, message: bytes) -> bytes:
        questions, self._clock.now_unix_nano = decode_questions(message, self._registry)
        return encode_graded([self._graded(question) for question in questions], self._form)

    def _graded(self, question: Question) -> tuple[FinishedTrace, GradedTrace | AwaitedTrace, Tally]:
        trace, answers = question
        tally = Tally()
        found = self._grader.begin(trace, tally)
        if isinstance(found, AwaitedTrace) and answers is not None and _fits(found, question):
            found = self._grader.finish(found, answers)
        return trace, found, tally


def _fits(awaited: AwaitedTrace, question: Question) -> bool:
    """Whether the answers are those to the questions: criteria may have changed since they were asked."""
    answers = question.answers or ()
    return [set(run.questions) for run in awaited.runs] == [set(found) for found in answers]


def main() -> None:
    """Serve until the service closes the pipe."""
    questions, answers = open_channel()
    try:
        worker = _Worker(pickle.loads(read_frame(questions)))
        _send(answers, b"")
        end_with_the_service(questions)
        while True:
            message = read_frame(questions)
            if message[:1] == CRITERIA:
                worker.take_criteria(message[1:])
            else:
                _send(answers, worker.answer(message[1:]))
    except (ChannelClosed, BrokenPipeError):
        os._exit(0)


def _send(answers: BinaryIO, message: bytes) -> None:
    answers.write(frame(message))
    answers.flush()


if __name__ == "__main__":
    main()
