"""Scores, outcomes and results of evaluations."""

import re
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from processors.model.conversation import RunReference
from processors.model.json_values import JsonValue

_MAX_CAUSE_CHARACTERS = 200
_VARYING = re.compile(
    r"(?<![\w.])[-+]?\d[\w.,:]*(?<![.,:])"  # numbers and what begins as one; not the id of a rule: RH1.2
    r"|\b(?=[a-f]*\d)[0-9a-f]{8,}\b"
    r"|\b(?:call|toolu)_\w+"
    r"|(?<=: ')[^']*(?=')|(?<=: \")[^\"]*(?=\")"  # values of arguments and results
    r'|(?<=")[^":,]*\s[^":,]*(?=")'
)
"""What differs between failures of one cause: amounts, ids, values and quoted sentences."""


class Outcome(StrEnum):
    """How an evaluation of a run ended. Only `PASS` and `FAIL` carry a score and enter averages."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    NOT_EVALUATED = "not_evaluated"


class NotEvaluatedReason(StrEnum):
    """The closed list of reasons for `Outcome.NOT_EVALUATED`."""

    NO_CRITERIA = "no_criteria"
    CONTENT_NOT_CAPTURED = "content_not_captured"
    INCOMPLETE_TRACE = "incomplete_trace"
    INTERRUPTED = "interrupted"
    OVER_LIMIT = "over_limit"
    NOT_APPLICABLE = "not_applicable"


class Severity(StrEnum):
    """What a failure requires of people: wake someone, file a ticket, or only watch the rate."""

    PAGE = "page"
    TICKET = "ticket"
    ADVISORY = "advisory"


class Stage(StrEnum):
    """How much a result counts: a shadow one is shown, and neither alerts anybody nor gates anything."""

    LIVE = "live"
    SHADOW = "shadow"


class Scope(StrEnum):
    """What an evaluation looks at."""

    RUN = "run"
    CONVERSATION = "conversation"
    """The calls of all runs so far with the same conversation."""
    TRACE = "trace"
    """The calls and model calls of all runs in the same trace."""


class SkipReason(StrEnum):
    """Why an evaluation gave no result for a run."""

    WHEN = "when"
    SAMPLE = "sample"


class Score(Struct, frozen=True, tag=True):
    """The answer of an evaluator: a value in [0, 1] and the details from which a reader can recompute it.

    `details` is the evaluator's justification object. `lines` are the `key: text` pieces from which
    the explanation is joined; empty: they are built from `details`.
    """

    value: float
    details: Mapping[str, JsonValue] = {}
    lines: tuple[str, ...] = ()


class NotEvaluated(Struct, frozen=True, tag=True):
    """The evaluator's answer when the run does not hold what it needs; `text` is what was missing.

    `at_most` is the highest score that what is missing could lead to, where some of it is known to be lost:
    below the threshold it is the score, and the run fails.
    """

    reason: NotEvaluatedReason
    text: str = ""
    at_most: Score | None = None

    def unless(self, best: Score) -> "NotEvaluated":
        """This answer, unless `best`, the highest possible score, does not reach the threshold."""
        lines = *best.lines, f"not known: {self.text}"
        at_most = Score(best.value, best.details, lines) if best.value < 1 else None
        return NotEvaluated(self.reason, self.text, at_most)

    def settled(self, pass_threshold: float) -> "Score | NotEvaluated":
        """The highest possible score where it does not reach the threshold, else this answer."""
        best = self.at_most
        return self if best is None or best.value >= pass_threshold else best

    @staticmethod
    def over_limit(text: str) -> "NotEvaluated":
        """The run exceeds a cap on work."""
        return NotEvaluated(NotEvaluatedReason.OVER_LIMIT, text)

    @staticmethod
    def not_applicable(text: str) -> "NotEvaluated":
        """The evaluation does not apply to the run."""
        return NotEvaluated(NotEvaluatedReason.NOT_APPLICABLE, text)

    @staticmethod
    def not_captured(text: str) -> "NotEvaluated":
        """What decides was not captured."""
        return NotEvaluated(NotEvaluatedReason.CONTENT_NOT_CAPTURED, text)


class EvaluationResult(Struct, frozen=True, omit_defaults=True):
    """One evaluation of one agent run.

    `score` is set for `PASS` and `FAIL` only, `reason` for `NOT_EVALUATED` only, `error_type` (the class
    name of what was raised) for `ERROR` only. `explanation` has at most 1,024 characters.
    `tool_call_id` and `tool_span_id` are set for verdicts on a single call. `muted_until_unix_nano` is the
    end of the mute that was in force when the run was graded, 0 without one.
    """

    name: str
    evaluator: str
    evaluator_version: str
    outcome: Outcome
    score: float | None = None
    explanation: str = ""
    details: Mapping[str, JsonValue] = {}
    reason: NotEvaluatedReason | None = None
    error_type: str | None = None
    pass_threshold: float = 1.0
    severity: Severity = Severity.TICKET
    criteria_hash: str = ""
    stage: Stage = Stage.LIVE
    muted_until_unix_nano: int = 0
    tool_call_id: str | None = None
    tool_span_id: bytes | None = None
    conversation_runs: tuple[RunReference, ...] = ()
    """The runs that an evaluation over a conversation looked at, in order of start; empty for all others."""
    quotes_content: bool = True
    """Whether `explanation` may show what was captured."""
    scope: Scope = Scope.RUN
    """What it looked at."""

    @property
    def counts(self) -> bool:
        """Whether a failure may alert people or gate a change: not in shadow, not muted, not advisory."""
        return not self.exemption

    @property
    def exemption(self) -> str:
        """Why a failure would alert no one and gate nothing: `shadow`, `muted` or `advisory`; else empty."""
        if self.stage is Stage.SHADOW:
            return "shadow"
        if self.muted_until_unix_nano:
            return "muted"
        return "advisory" if self.severity is Severity.ADVISORY else ""

    @property
    def is_verdict(self) -> bool:
        """Whether it passed or failed."""
        return self.outcome is Outcome.PASS or self.outcome is Outcome.FAIL

    @property
    def is_failure(self) -> bool:
        """Whether it failed, or the evaluator broke."""
        return self.outcome is Outcome.FAIL or self.outcome is Outcome.ERROR

    @property
    def cause(self) -> str:
        """What failures are grouped by: the explanation without what varies, in at most 200 characters.

        The reason of what was not evaluated; empty for a pass.
        """
        if not self.is_failure:
            return "" if self.reason is None else self.reason.value
        text = self.explanation[: 2 * _MAX_CAUSE_CHARACTERS] or self.error_type or ""
        return _VARYING.sub("…", " ".join(text.split()))[:_MAX_CAUSE_CHARACTERS]
