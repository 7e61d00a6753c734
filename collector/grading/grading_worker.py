"""A process that grades traces for the service: takes its settings, then one message of traces at a time.

Started by `collector.grading.grading_pool` with an empty environment.
"""

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from collector.clock import Clock, SystemClock
from collector.grading.grader import Graded, Grader, Needed, Supplied, Tally, advance
from collector.grading.hand_over import Form, Question, decode_questions, encode_graded
from collector.otlp import EnvelopeRegistry
from collector.results_config import ResultsConfig
from collector.workers.protocol import serve
from processors.criteria import CriteriaSet
from processors.model import PriceTable
from processors.shapes import Dialect

CRITERIA, TRACES = b"C", b"T"
"""The first byte of a message: criteria follow, which are not answered, or traces."""


class CriteriaTexts(Protocol):
    """Criteria as the texts of their files; it can be pickled."""

    def read(self) -> CriteriaSet:
        """The criteria in them."""


class GradingConfig(Protocol):
    """What the service file specifies for grading; it can be pickled."""

    def own_dialects(self) -> list[Dialect]:
        """The telemetry conventions that it describes."""

    def price_table(self) -> PriceTable | None:
        """What models cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What traces are graded by, except for the criteria; see `Grader`."""

    config: GradingConfig
    instance: str
    missing_parents: Literal["grade", "not_evaluated"]
    uses_workers: bool
    results: ResultsConfig
    writes_scores: bool
    form: Form

    def grader(self, criteria: Callable[[], CriteriaSet], clock: Clock) -> Grader:
        """A grader with these settings."""
        return Grader(
            criteria=criteria,
            clock=clock,
            instance=self.instance,
            missing_parents=self.missing_parents,
            dialects=self.config.own_dialects(),
            prices=self.config.price_table(),
            uses_workers=self.uses_workers,
            results=self.results,
            writes_scores=self.writes_scores,
        )


class _ServiceClock(SystemClock):
    """The time of the service as of its last message."""

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
        self._grader = settings.grader(lambda: self._criteria, self._clock)

    def answer(self, message: bytes) -> bytes | None:
        kind, content = message[:1], pickle.loads(memoryview(message)[1:])
        if kind == CRITERIA:
            texts: CriteriaTexts = content
            self._criteria = texts.read()
            return None
        encoded, conversations = content
        questions, self._clock.now_unix_nano = decode_questions(encoded, self._registry)
        outcomes = [
            self._graded(question._replace(conversations=known))
            for question, known in zip(questions, conversations, strict=True)
        ]
        graded = [
            (question.trace, each, Tally())
            if isinstance(each, Needed)
            else (question.trace, each.trace, each.tally)
            for question, each in zip(questions, outcomes, strict=True)
        ]
        return pickle.dumps((encode_graded(graded, self._form), [each.runs for each in outcomes]))

    def _graded(self, question: Question) -> Graded | Needed:
        steps = self._grader.steps(question.trace)
        outcome = advance(steps)
        # What was supplied may be that for other criteria, which have changed since it was needed.
        if isinstance(outcome, Needed) and outcome.runs and len(outcome.runs) == len(question.conversations):
            outcome = advance(steps, Supplied(conversations=question.conversations))
        answers = question.answers or ()
        if isinstance(outcome, Needed) and outcome.questions and _keys(answers) == _keys(outcome.questions):
            outcome = advance(steps, Supplied(answers=answers))
        return outcome


def _keys(by_run: Sequence[Mapping[str, object]]) -> list[set[str]]:
    return [set(of_run) for of_run in by_run]


if __name__ == "__main__":
    serve(lambda order: (b"", _Worker(pickle.loads(order)).answer))
