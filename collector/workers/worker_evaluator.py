"""A custom evaluator as criteria see it: an evaluator like any other, whose answers come from a worker."""

import math
from typing import ClassVar

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue

from processors.annotation import run_to_json
from processors.comparison import ExtractorSettings
from processors.model import (
    AgentRun,
    EvaluationError,
    Evaluator,
    GradedRun,
    JsonObject,
    NotEvaluated,
    NotEvaluatedReason,
    RunFacts,
    Score,
    encode_json,
)

_MAX_TYPE_CHARACTERS = 100
_REASONS = {reason.value: reason for reason in NotEvaluatedReason}


class FreeObject(BaseModel):
    """An object of a criteria file that custom code gets as written."""

    model_config = ConfigDict(extra="allow", frozen=True)

    __pydantic_extra__: dict[str, JsonValue]


class WorkerEvaluator(Evaluator):
    """The evaluator of one evaluation in a criteria file; each custom evaluator is a subclass.

    It grades nothing itself: `question` builds the message to a worker.
    """

    id: ClassVar[str] = ""
    version: ClassVar[str] = ""
    Config: ClassVar[type[BaseModel]] = FreeObject
    Criteria: ClassVar[type[BaseModel] | None] = FreeObject

    def __init__(self, config: BaseModel, criteria: BaseModel) -> None:
        head: JsonObject = {
            "evaluator": self.id,
            "config": config.model_dump(mode="json", exclude_unset=True),
            "criteria": criteria.model_dump(mode="json"),
        }
        self._head = encode_json(head)[:-1]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Always raises `EvaluationError`: see `collector.workers.worker_evaluations`."""
        raise EvaluationError(f"evaluator {self.id} needs a worker process, and there is none")

    def question(self, run: AgentRun, run_text: bytes) -> bytes | NotEvaluated:
        """The message about `run`, whose JSON is `run_text`, or why it cannot be graded."""
        return b'%b,"run":%b}' % (self._head, run_text)


class SubmissionEvaluator(WorkerEvaluator):
    """An evaluator whose code takes a sample and the text that an extractor takes from the run.

    `config` holds `extractor` and `extractor_config`; `criteria` may hold `ground_truth`.
    """

    Config = ExtractorSettings

    def __init__(self, config: ExtractorSettings, criteria: BaseModel) -> None:
        super().__init__(config, criteria)
        self._extraction = config.extraction()

    def question(self, run: AgentRun, run_text: bytes) -> bytes | NotEvaluated:
        """As that of the base class; not evaluated if the extractor has no text."""
        submission = self._extraction.text(run)
        if isinstance(submission, NotEvaluated):
            return submission
        return b'%b,"submission":%b,"run":%b}' % (self._head, encode_json(submission), run_text)


def run_text(run: AgentRun) -> bytes:
    """`run` as custom code gets it: the JSON object of a runs file, without results."""
    entry = run_to_json(GradedRun(run=run, results=()))
    del entry["evaluations"]
    return encode_json(entry)


class WorkerFailure(EvaluationError):
    """A custom evaluator gave no verdict; `error_type` is what its worker failed with."""

    error_type = ""

    def __init__(self, error_type: str, text: str) -> None:
        super().__init__(text)
        self.error_type = error_type


def read_answer(evaluator: str, reply: bytes) -> Score | NotEvaluated:
    """The verdict in a reply, checked: nothing from custom code is trusted. Raises `WorkerFailure`."""
    try:
        answer = orjson.loads(reply)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        answer = {}
    error = answer.get("error")
    if error is not None:
        kind = error if isinstance(error, str) and error.isidentifier() else "Exception"
        kind = kind[:_MAX_TYPE_CHARACTERS]
        raise WorkerFailure(kind, f"evaluator {evaluator} raised {kind}")
    text = answer.get("explanation", "")
    if not isinstance(text, str):
        raise _invalid(evaluator, "an explanation that is not a text")
    reason = answer.get("not_evaluated")
    if reason is not None:
        if not isinstance(reason, str) or reason not in _REASONS:
            raise _invalid(evaluator, f"a reason other than {', '.join(_REASONS)}")
        return NotEvaluated(_REASONS[reason], text)
    score = answer.get("score")
    if not isinstance(score, int | float) or not math.isfinite(score) or not 0 <= score <= 1:
        raise _invalid(evaluator, "no score from 0 to 1")
    details = answer.get("details", {})
    if not isinstance(details, dict):
        raise _invalid(evaluator, "details that are not an object")
    return Score(float(score), details, (text,) if text else ())


def _invalid(evaluator: str, problem: str) -> WorkerFailure:
    return WorkerFailure("InvalidAnswer", f"evaluator {evaluator} returned {problem}")
