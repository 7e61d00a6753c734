"""What a worker answered, checked: nothing that custom code says is taken on trust."""

import math
from collections.abc import Mapping

from processors.model import EvaluationError, NotEvaluated, NotEvaluatedReason, Score

_MAX_TYPE_CHARACTERS = 100
_REASONS = {reason.value: reason for reason in NotEvaluatedReason}


class WorkerFailure(EvaluationError):
    """A custom evaluator gave no verdict."""

    def __init__(self, error_type: str, text: str) -> None:
        super().__init__(text)
        self._error_type = error_type

    @property
    def error_type(self) -> str:
        """What the worker failed with, in place of the class."""
        return self._error_type


def read_answer(evaluator: str, answer: Mapping[str, object]) -> Score | NotEvaluated:
    """The verdict that an answer of `evaluator` holds.

    Raises:
        WorkerFailure: the code raised something, or the answer is none.
    """
    error = answer.get("error")
    if error is not None:
        kind = error if isinstance(error, str) and error.isidentifier() else "Exception"
        kind = kind[:_MAX_TYPE_CHARACTERS]
        raise WorkerFailure(kind, f"evaluator {evaluator} raised {kind}")
    text = answer.get("explanation", "")
    if not isinstance(text, str):
        raise _invalid(evaluator, "an explanation that is no text")
    reason = answer.get("not_evaluated")
    if reason is not None:
        if not isinstance(reason, str) or reason not in _REASONS:
            raise _invalid(evaluator, f"a reason that is none of {', '.join(_REASONS)}")
        return NotEvaluated(_REASONS[reason], text)
    score = answer.get("score")
    if not isinstance(score, int | float) or not math.isfinite(score) or not 0 <= score <= 1:
        raise _invalid(evaluator, "no score from 0 to 1")
    details = answer.get("details", {})
    if not isinstance(details, dict):
        raise _invalid(evaluator, "details that are no object")
    return Score(float(score), details, (text,) if text else ())


def _invalid(evaluator: str, found: str) -> WorkerFailure:
    return WorkerFailure("InvalidAnswer", f"evaluator {evaluator} returned {found}")
