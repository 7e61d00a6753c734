"""Grading an extracted text as letta-evals does: four functions of a text, over a run or turn by turn."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from processors.comparison.extractors import Extraction, ExtractorConfig, ExtractorName
from processors.documents.evaluator_model import EvaluatorModel
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.json_value import JsonObject
from processors.model.limits import MAX_SEARCHED_CHARACTERS
from processors.texts.linear_regex import compile_linear

GradeFunction: TypeAlias = Literal["exact_match", "contains", "regex_match", "ascii_printable_only"]

_Verdict: TypeAlias = tuple[bool, str]
_PRINTABLE = frozenset(map(chr, range(32, 127))) | {"\n", "\r"}
_MAX_OFFENDERS = 5


class ExtractorSettings(EvaluatorModel):
    """Which text of the run is graded."""

    extractor: ExtractorName = Field(
        default="last_assistant",
        description="Where the graded text comes from: an answer of the agent, or one of its tool calls.",
    )
    extractor_config: ExtractorConfig = Field(
        default_factory=ExtractorConfig, description="Settings of the extractor."
    )

    @model_validator(mode="after")
    def _settings_fit_the_extractor(self) -> "ExtractorSettings":
        self.extraction()
        return self

    @property
    def extractor_is_given(self) -> bool:
        """Whether an extractor or settings of one were written."""
        return not self.model_fields_set.isdisjoint(("extractor", "extractor_config"))

    def extraction(self) -> Extraction:
        """The extractor, ready to use."""
        return Extraction(self.extractor, self.extractor_config)


class TextGrading:
    """One grading function with its ground truth behind an extractor.

    A text passes with 1 or fails with 0: `exact_match` when it equals the truth after both are trimmed,
    `contains` when the truth is in it regardless of case, `regex_match` when the truth as a regular
    expression is found in it, `ascii_printable_only` when all of it but line ends is printable ASCII. An
    empty text fails with all four; a tool that was never called gives an empty text.

    With a list of truths, turn i alone is graded against truth i and the score is the mean; a turn that
    never came fails.

    Raises:
        ValueError: the truth is missing or empty, does not compile, or is a list where the extractor reads
            tool calls, which belong to no turn; one line for people.
    """

    def __init__(
        self, function: GradeFunction, ground_truth: str | Sequence[str] | None, extraction: Extraction
    ) -> None:
        self._extraction = extraction
        self._per_turn = ground_truth is not None and not isinstance(ground_truth, str)
        truths = [ground_truth] if ground_truth is None or isinstance(ground_truth, str) else [*ground_truth]
        if not truths:
            raise ValueError("ground_truth: expected at least one text, found an empty list")
        if self._per_turn and extraction.reads_calls:
            raise ValueError(
                "ground_truth: expected one text, since tool calls belong to no turn; found a list"
            )
        self._judges = [_judge(function, truth) for truth in truths]

    def grade(self, run: AgentRun) -> Score | NotEvaluated:
        """The score of `run` with details `submission` and `rationale`; the rationale is the explanation."""
        if not self._per_turn:
            graded = self._graded(run, None, self._judges[0])
            if isinstance(graded, NotEvaluated):
                return graded
            (passed, rationale), submission = graded
            return _score(float(passed), submission, rationale)
        passes: list[bool] = []
        submissions: list[str] = []
        for turn, judge in enumerate(self._judges):
            graded = self._graded(run, turn, judge)
            if isinstance(graded, NotEvaluated):
                return graded
            passes.append(graded[0][0])
            submissions.append(f"[Turn {turn}] {graded[1]}")
        marks = " ".join(["✓" if passed else "✗" for passed in passes])
        rationale = f"{sum(passes)}/{len(passes)} passed: {marks}"
        return _score(sum(passes) / len(passes), " | ".join(submissions), rationale)

    def _graded(
        self, run: AgentRun, turn: int | None, judge: "Callable[[str], _Verdict | NotEvaluated]"
    ) -> tuple[_Verdict, str] | NotEvaluated:
        submission = self._extraction.text(run, turn)
        if isinstance(submission, NotEvaluated):
            return submission
        if submission == "":
            return (False, _nothing_found(run, turn)), ""
        verdict = judge(submission)
        return verdict if isinstance(verdict, NotEvaluated) else (verdict, submission)


def _nothing_found(run: AgentRun, turn: int | None) -> str:
    messages = any(turn is None or message.turn == turn for message in run.messages)
    if messages or (turn is None and run.tool_calls):
        return "Empty submission - extractor found no content"
    return "Empty trajectory - agent produced no messages"


def _score(value: float, submission: str, rationale: str) -> Score:
    details: JsonObject = {"submission": submission, "rationale": rationale}
    return Score(value, details, (rationale,))


def _judge(function: GradeFunction, truth: str | None) -> "Callable[[str], _Verdict | NotEvaluated]":
    if function == "ascii_printable_only":
        return _is_printable
    if not truth:
        raise ValueError("ground_truth: expected a text that is not empty")
    match function:
        case "exact_match":
            trimmed = truth.strip()
            return lambda submission: _told("Exact match", submission.strip() == trimmed)
        case "contains":
            lowered = truth.lower()
            return lambda submission: _told("Contains ground_truth", lowered in submission.lower())
        case "regex_match":
            return _search(truth)


def _search(truth: str) -> "Callable[[str], _Verdict | NotEvaluated]":
    try:
        pattern = compile_linear(truth)
    except ValueError as refusal:
        raise ValueError(f"ground_truth: {refusal}") from None

    def judge(submission: str) -> _Verdict | NotEvaluated:
        if len(submission) > MAX_SEARCHED_CHARACTERS:
            text = f"the text has more than {MAX_SEARCHED_CHARACTERS} characters"
            return NotEvaluated(NotEvaluatedReason.OVER_LIMIT, text)
        return _told("Regex match", pattern.search(submission) is not None)

    return judge


def _is_printable(submission: str) -> _Verdict:
    offenders = sorted(set(submission) - _PRINTABLE)
    if not offenders:
        return True, "All characters printable ASCII (ignoring newlines)"
    listed = ", ".join(map(repr, offenders[:_MAX_OFFENDERS]))
    more = f" (+{len(offenders) - _MAX_OFFENDERS} more)" if len(offenders) > _MAX_OFFENDERS else ""
    return False, f"Found non-printable ASCII characters: {listed}{more}"


def _told(what: str, passed: bool) -> _Verdict:
    return passed, f"{what}: {passed}"
