"""Evaluator `tool-response-handling`: whether an agent handled soundly what its tools returned."""

from typing import Literal

from pydantic import Field

from processors.comparison import ToolSelectionConfig, comparable_arguments
from processors.model import (
    AgentRun,
    Evaluator,
    EvaluatorExample,
    JsonObject,
    JsonValue,
    NotEvaluated,
    NotEvaluatedReason,
    RunFacts,
    Score,
    ToolCall,
    ValueState,
    canonical_tool_name,
    json_text,
)
from processors.response_checks.agent_response import (
    MAX_CHECKED_CALLS,
    AgentResponse,
    ObservedCall,
    OverLimitError,
)
from processors.response_checks.answer_facts import AnswerFacts
from processors.response_checks.check_result import CheckResult
from processors.response_checks.checks import CHECK_IDS, check_answer, group_of
from processors.response_checks.settings import CheckSettings, ErrorClass, PersonalData
from processors.response_checks.tool_errors import ErrorClassifier

CheckName = Literal[
    "RH1", "RH2", "RH3", "RH3.1", "RH3.2", "RH3.3", "RH4", "RH5", "RH6", "RH7", "RH8",
    "RH9", "RH9.a", "RH9.b", "RH9.c", "RH9.d",
]  # fmt: skip
_MAX_VIOLATIONS = 50


class ToolResponseHandlingConfig(ToolSelectionConfig):
    """Settings of `tool-response-handling`."""

    gating: tuple[CheckName, ...] = Field(
        default=("RH3.1", "RH3.2", "RH4", "RH5", "RH6", "RH7", "RH9.a"),
        min_length=1,
        description="Checks that decide the score; RH3 stands for all parts of RH3. Others are advisory.",
    )
    advisory: bool = Field(
        default=True,
        description="Whether checks that do not decide the score are run and reported as well; false saves "
        "their work.",
    )
    require_retry: bool = Field(
        default=False,
        description="RH4: a retryable error needs another call of its tool, even where it was admitted.",
    )
    retryable_attempts: int = Field(
        default=4,
        ge=2,
        description="RH5: identical failing calls from which retrying a retryable error is futile.",
    )
    acknowledgements: tuple[str, ...] = Field(
        default=(), description="RH4, RH6, RH9: phrases that admit trouble, beside the built-in English ones."
    )
    error_words: dict[Literal["permanent", "retryable", "argument"], tuple[str, ...]] = Field(
        default_factory=dict,
        description="RH4-RH6: texts in an error that decide its class, before the built-in ones.",
        examples=[{"permanent": ["account closed"]}],
    )
    personal_data: tuple[Literal["email", "phone", "name"], ...] = Field(
        default=(),
        description="RH7: personal data of results that answers must not repeat unless the user gave it.",
    )


class ToolResponseHandling(Evaluator):
    """Checks without a model: nothing invented, no error hidden, nothing disclosed, nothing reversed.

    score = 1 without a violation in a gating check, else 0; `graded_score` in the details is the share of
    gating checks that apply and are not violated. Violations of other checks are reported as advisory. The
    checks are listed in `processors.response_checks.checks`.

    There is nothing to expect. A run without calls is not applicable. Where the input, the answer or a
    result was not captured, only the checks of errors apply; the details name the others as
    `not_applicable`, and where no gating check applies the run is not evaluated.

    Example: the only call fails with a timeout, and the answer is "Your inbox is empty."
    scores 0 (RH4); "I could not reach your inbox." scores 1.
    """

    id = "tool-response-handling"
    Config = ToolResponseHandlingConfig
    example = EvaluatorExample(
        run="""
            input: What is new in my inbox?
            tool_calls: [{name: list_mails, arguments: {}, error: {type: TimeoutError, message: timed out}}]
            output: Your inbox is empty.
        """,
    )

    def __init__(self, config: ToolResponseHandlingConfig, criteria: None = None) -> None:
        self._categories = config.categories()
        self._gating = frozenset(
            check for check in CHECK_IDS if check in config.gating or group_of(check) in config.gating
        )
        self._wanted = frozenset(CHECK_IDS) if config.advisory else self._gating
        self._classifier = ErrorClassifier(
            {ErrorClass(name): words for name, words in config.error_words.items()}
        )
        # Evaluations that differ in what they gate alone read the same answer in the same way.
        error_words = frozenset((name, tuple(words)) for name, words in config.error_words.items())
        self._facts_key = (self.id, self._categories, error_words)
        self._settings = CheckSettings(
            require_retry=config.require_retry,
            retryable_attempts=config.retryable_attempts,
            acknowledgements=config.acknowledgements,
            personal_data=frozenset(map(PersonalData, config.personal_data)),
        )

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated without calls, without content for any gating check, and over limits."""
        # What was never executed counts with what the model was told instead of a result, if anything.
        calls = [
            call
            for call in run.evaluated_calls(self._categories)
            if call.executed or call.result_state is not ValueState.ABSENT
        ]
        if not calls:
            return NotEvaluated(NotEvaluatedReason.NOT_APPLICABLE, "no tool was called")
        answer = facts.once(self._facts_key, lambda: self._facts(run, calls))
        if not isinstance(answer, AnswerFacts):
            return NotEvaluated(NotEvaluatedReason.OVER_LIMIT, answer)
        return self._score(check_answer(answer, self._settings, self._wanted))

    def _score(self, results: list[CheckResult]) -> Score | NotEvaluated:
        gating = self._gating
        applicable = {
            group_of(result.check) for result in results if result.applies and result.check in gating
        }
        if not applicable:
            return NotEvaluated(
                NotEvaluatedReason.CONTENT_NOT_CAPTURED, "no gating check applies to what was captured"
            )
        violations = [violation for result in results for violation in result.violations]
        violated = {group_of(violation.check) for violation in violations if violation.check in gating}
        shown: list[JsonValue] = [
            {
                "check": violation.check,
                "call": violation.call,
                "evidence": violation.evidence,
                "gating": violation.check in gating,
            }
            for violation in violations[:_MAX_VIOLATIONS]
        ]
        not_applicable: list[JsonValue] = [*_without_checks(results)]
        details: JsonObject = {
            "violations": shown,
            "not_applicable": not_applicable,
            "graded_score": 1.0 - len(violated) / len(applicable),
        }
        lines = [
            f"{violation.check}{'' if violation.check in gating else ' (advisory)'}: {violation.evidence}"
            for violation in sorted(violations, key=lambda violation: violation.check not in gating)
        ]
        if not violated:
            lines.insert(0, "no gating check violated")
        if not_applicable:
            lines.append(f"not applicable: {', '.join(map(str, not_applicable))}")
        return Score(0.0 if violated else 1.0, details, tuple(lines))

    def _facts(self, run: AgentRun, calls: list[ToolCall]) -> AnswerFacts | str:
        """The facts of the run's answer, or why there is more than can be checked."""
        if len(calls) > MAX_CHECKED_CALLS:
            return f"more than {MAX_CHECKED_CALLS} calls"
        try:
            return AnswerFacts(self._response(run, calls))
        except OverLimitError as error:
            return str(error)

    def _response(self, run: AgentRun, calls: list[ToolCall]) -> AgentResponse:
        users = [message.content for message in run.messages if message.role in ("system", "user")]
        last_turn = max((message.turn for message in run.messages), default=0)
        earlier = [
            message.content
            for message in run.messages
            if message.role in ("assistant", "tool") and message.turn < last_turn
        ]
        return AgentResponse(
            input=_text(run.input, run.input_state)
            or ("\n".join(users) if users else _text(run.input, run.input_state)),
            output=_text(run.output, run.output_state),
            calls=[self._observed(call) for call in calls],
            texts=(*users, *earlier),
        )

    def _observed(self, call: ToolCall) -> ObservedCall:
        result: JsonValue = None
        is_known = True
        if call.result_state is ValueState.PRESENT:
            result = call.result
        elif call.result_state is ValueState.UNPARSED:
            result = call.result_text
        else:
            is_known = call.lenient_values and call.result_state is ValueState.ABSENT
        return ObservedCall(
            name=canonical_tool_name(call.name),
            arguments=comparable_arguments(call),
            result=result,
            result_known=is_known,
            failure=self._classifier.failure_of(call),
        )


def _text(value: JsonValue, state: ValueState) -> str | None:
    """What was said, as text; None where it was not captured."""
    if state is not ValueState.PRESENT or value is None:
        return None
    return value if isinstance(value, str) else json_text(value)


def _without_checks(results: list[CheckResult]) -> list[str]:
    """The checks that do not apply; where no part of one applies, its id alone."""
    groups: dict[str, list[CheckResult]] = {}
    for result in results:
        groups.setdefault(group_of(result.check), []).append(result)
    found: list[str] = []
    for group, parts in groups.items():
        missing = [part.check for part in parts if not part.applies]
        found.extend([group] if len(missing) == len(parts) else missing)
    return found
