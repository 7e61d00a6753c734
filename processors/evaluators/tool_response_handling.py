"""Evaluator `tool-response-handling`: whether an agent handled soundly what its tools returned."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Final, Literal

from msgspec.structs import replace
from pydantic import AfterValidator, Field, WithJsonSchema

from processors.comparison import ToolSelectionConfig, comparable_arguments, without_invented
from processors.model import (
    AgentRun,
    CallCategory,
    Evaluator,
    JsonObject,
    JsonValue,
    NotEvaluated,
    OverLimitError,
    RunFacts,
    Score,
    ToolCall,
    ValueState,
    has_mask,
    json_text,
)
from processors.response_handling import (
    MAX_CALLS,
    REMOVED_RULES,
    RULE_IDS,
    RULES,
    ErrorClass,
    ErrorClassifier,
    ObservedCall,
    Response,
    Settings,
    applicable_rules,
    findings_of,
    group_of,
    open_failures,
)

_MAX_VIOLATIONS = 50
_SHORTENED = re.compile(r"\*{3,}[ -]?\w{2}|\w{2}[ -]?\*{3,}")
"""A number of which a tool or a person shows but the end, or the beginning."""
_NAMES: Final = tuple(dict.fromkeys((*map(group_of, RULE_IDS), *RULE_IDS)))


def _known(rule: str) -> str:
    """`rule`, if there is such a rule or group, or was in an earlier version."""
    if rule not in _NAMES and rule not in REMOVED_RULES:
        raise ValueError(f"there is no rule {rule}; the rules are {', '.join(_NAMES)}")
    return rule


def _any_left(rules: tuple[str, ...]) -> tuple[str, ...]:
    """`rules`, unless all of them were removed, so that nothing could fail."""
    if rules and all(rule in REMOVED_RULES for rule in rules):
        raise ValueError(f"{rules[0]} was removed: {REMOVED_RULES[rules[0]]}. Name a rule that is left.")
    return rules


_RuleName = Annotated[
    str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": [*_NAMES, *REMOVED_RULES]})
]


class ToolResponseHandlingConfig(ToolSelectionConfig):
    """Settings of `tool-response-handling`."""

    gating: (
        Literal["all"] | Annotated[tuple[_RuleName, ...], Field(min_length=1), AfterValidator(_any_left)]
    ) = Field(
        default=tuple(rule.id for rule in RULES if rule.is_gating),
        description="Rules that decide the score; RH3 stands for all parts of RH3, all for every rule. Other "
        "rules are advisory. Rules that a version removed may still be named and have no effect.",
        examples=["all", ["RH1", "RH4", "RH7"]],
    )
    advisory: bool = Field(
        default=True,
        description="Whether rules that do not decide the score are run and reported as well; false saves "
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
        default=(),
        description="RH4, RH6, RH9.a: phrases that admit trouble, beside the words of the lexicons.",
    )
    error_words: dict[Literal["permanent", "retryable", "argument"], tuple[str, ...]] = Field(
        default_factory=dict,
        description="RH4-RH6: texts in an error that decide its class, before the built-in ones.",
        examples=[{"permanent": ["account closed"]}],
    )


class ToolResponseHandling(Evaluator):
    """Checks without a model: nothing invented, no error hidden, nothing disclosed, and an answer at all.

    score = 1 without a finding of a gating rule, else 0; `graded_score` in the details is the share of gating
    rules that apply and found nothing. Findings of other rules are reported as advisory. The rules, how
    far each has held, and what no rule can see are listed in `docs/response-handling.md`.

    There is nothing to expect. A run without calls is not applicable, and requests for tools that the run did
    not have are no calls here: `tool-known` reports them. Where the input, the answer or a
    result was not captured, only the rules of errors apply; the details name the others as
    `not_applicable`. The run is not evaluated where no gating rule applies, where the answer has an error to
    admit and was not captured, and where neither the answer nor the outcome of any call was. What redaction
    masked in part was not captured; where that keeps gating rules from being applied, a run in which the
    others find nothing is not evaluated.
    """

    id = "tool-response-handling"
    version = "4"
    Config = ToolResponseHandlingConfig

    def __init__(self, config: ToolResponseHandlingConfig, criteria: None = None) -> None:
        self._categories = config.categories()
        self._gating = frozenset(
            rule
            for rule in RULE_IDS
            if config.gating == "all" or rule in config.gating or group_of(rule) in config.gating
        )
        self._selected = frozenset(RULE_IDS) if config.advisory else self._gating
        self._classifier = ErrorClassifier(
            {ErrorClass(name): words for name, words in config.error_words.items()}
        )
        self._settings = Settings(
            require_retry=config.require_retry,
            retryable_attempts=config.retryable_attempts,
            acknowledgements=config.acknowledgements,
        )
        # Evaluations that differ in what they gate alone read the same answer in the same way.
        error_words = frozenset(config.error_words.items())
        self._facts_key = (self.id, self._categories, error_words, self._settings)

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not evaluated without calls, without content for any gating rule, and over limits."""
        # What was never executed counts with what the model was told instead of a result, if anything. What
        # waits or was refused was called, and has no result that an answer could be held against.
        calls = [
            replace(call, result=None, result_text=None, result_state=ValueState.ABSENT)
            if call.is_held_back
            else call
            for call in without_invented(run, run.evaluated_calls(self._categories))
            if call.executed or call.is_held_back or call.result_state is not ValueState.ABSENT
        ]
        if not calls:
            return NotEvaluated.not_applicable(
                "no tool was called" if not run.calls else "no call has a result that an answer could rest on"
            )
        try:
            response = facts.once(self._facts_key, lambda: self._read(run, calls))
            score = self._score(response)
            is_wrong = isinstance(score, Score) and not score.value
            if is_wrong and response.is_captured and any(_hides(message.content) for message in run.messages):
                # What was said behind the masks may support the answer.
                response = self._read(run, calls, question_is_known=False)
                score = self._score(response)
        except OverLimitError as error:
            return NotEvaluated.over_limit(str(error))
        if isinstance(score, NotEvaluated):
            if run.output_state is ValueState.ABSENT and run.error is not None:
                return NotEvaluated.not_applicable("the run ended with an error, unanswered")
            return score
        if not score.value:
            return score
        is_unanswered = run.output_state is not ValueState.PRESENT and run.error is None
        if "RH4" in self._gating and is_unanswered and any(open_failures(response)):
            return NotEvaluated.not_captured("a call failed, and whether the answer admits it is unknown")
        if is_unanswered and not any(map(_has_outcome, calls, response.calls)):
            return NotEvaluated.not_captured("neither the answer nor the result of any call is known")
        if not response.is_captured and _is_masked(run, calls):
            return NotEvaluated.not_captured("redaction masked what gating rules look at")
        return score

    def _score(self, response: Response) -> Score | NotEvaluated:
        gating = self._gating
        applicable = applicable_rules(response) & self._selected
        if applicable.isdisjoint(gating):
            return NotEvaluated.not_captured("no gating rule applies to what was captured")
        findings = findings_of(response, applicable)
        violated = {finding.rule for finding in findings if finding.rule in gating}
        shown: list[JsonValue] = [
            {
                "check": finding.rule,
                "call": finding.call,
                "claim": finding.claim,
                "evidence": finding.evidence,
                "path": finding.path,
                "gating": finding.rule in gating,
            }
            for finding in findings[:_MAX_VIOLATIONS]
        ]
        not_applicable: list[JsonValue] = [*_grouped(self._selected, applicable)]
        details: JsonObject = {
            "violations": shown,
            "not_applicable": not_applicable,
            "graded_score": 1.0 - len(violated) / len(applicable & gating),
        }
        lines = [
            f"{finding.rule}{'' if finding.rule in gating else ' (advisory)'}: {finding.evidence}"
            for finding in sorted(findings, key=lambda finding: finding.rule not in gating)
        ]
        if not violated:
            lines.insert(0, "no gating rule violated")
        if not_applicable:
            lines.append(f"not applicable: {', '.join(map(str, not_applicable))}")
        return Score(0.0 if violated else 1.0, details, tuple(lines))

    def _read(self, run: AgentRun, calls: list[ToolCall], *, question_is_known: bool = True) -> Response:
        """The run's answer with its evidence.

        Raises:
            OverLimitError: there is more than can be checked in bounded time.
        """
        if len(calls) > MAX_CALLS:
            raise OverLimitError(f"more than {MAX_CALLS} calls")
        users = [message.content for message in run.messages if message.role in ("system", "user")]
        last_turn = max((message.turn for message in run.messages), default=0)
        earlier = [message for message in run.messages if message.turn < last_turn]
        answered = {message.content for message in earlier if message.role == "tool" and message.content}
        results = {call.result_text for call in calls}
        spoken = [
            message.content
            for message in earlier
            if message.role == "assistant" or (message.role == "tool" and message.content not in results)
        ]
        question = _text(run.input, run.input_state) or ("\n".join(users) if users else None)
        observed = [self._observed(call, answered) for call in calls]
        return Response(
            question=question if question_is_known else None,
            output=_text(run.output, run.output_state),
            calls=observed,
            texts=(*users, *spoken),
            is_handed_over=_is_handed_over(run, calls, observed),
            settings=self._settings,
        )

    def _observed(self, call: ToolCall, answered: Collection[str]) -> ObservedCall:
        result: JsonValue = None
        is_known = True
        if call.result_state is ValueState.PRESENT:
            result = call.result
            is_known = not _hides(result, call.result_text)
        elif call.result_state is ValueState.UNPARSED:
            result = call.result_text
        else:
            is_known = call.lenient_values and call.result_state is ValueState.ABSENT
        arguments = comparable_arguments(call)
        if arguments is not None and _hides(arguments, call.arguments_text):
            is_known = False  # what an answer says may come from there
        return ObservedCall(
            name=call.name,
            arguments=arguments,
            result=result,
            result_known=is_known,
            result_text=call.result_text,
            failure=self._classifier.failure_of(call),
            was_answered=(call.result_text or "") in answered,
        )


def _is_handed_over(run: AgentRun, calls: Sequence[ToolCall], observed: Sequence[ObservedCall]) -> bool:
    """Whether the conversation was passed on, to another agent or to a person, after the last failure."""
    failed = [call for call, one in zip(calls, observed, strict=True) if one.failure is not None]
    for call in reversed(run.calls) if failed else ():
        if call.category is CallCategory.HANDOFF or call is failed[-1]:
            return call.category is CallCategory.HANDOFF
    return False


def _has_outcome(call: ToolCall, observed: ObservedCall) -> bool:
    """Whether it is known what came of a call."""
    return call.result_state is not ValueState.ABSENT or observed.failure is not None or call.is_held_back


def _is_masked(run: AgentRun, calls: Iterable[ToolCall]) -> bool:
    """Whether redaction masked a part of something that rules look at."""
    texts = (run.input, run.output, *(message.content for message in run.messages))
    values = ((call.arguments, call.arguments_text) for call in calls)
    results = ((call.result, call.result_text) for call in calls)
    return any(map(_hides, texts)) or any(_hides(value, text) for value, text in (*values, *results))


def _hides(value: JsonValue, text: str | None = None) -> bool:
    """Whether redaction masked a part of `value`, which was read from `text`.

    A number of which a tool shows the end, as `**** 4410`, is what everybody saw.
    """
    if text is None:
        text = value if isinstance(value, str) else json_text(value)
    return has_mask(text) and has_mask(_SHORTENED.sub("", text))


def _text(value: JsonValue, state: ValueState) -> str | None:
    """What was said, as text; None where it was not captured, or where redaction masked a part of it."""
    if state is not ValueState.PRESENT or value is None or _hides(value):
        return None
    return value if isinstance(value, str) else json_text(value)


@lru_cache(maxsize=256)
def _grouped(selected: frozenset[str], applicable: frozenset[str]) -> tuple[str, ...]:
    """The selected rules that do not apply; where no part of one applies, its id alone."""
    missing = [rule for rule in RULE_IDS if rule in selected - applicable]
    partly = {group_of(rule) for rule in selected & applicable}
    groups = (rule if group_of(rule) in partly else group_of(rule) for rule in missing)
    return tuple(dict.fromkeys(groups))
