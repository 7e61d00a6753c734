"""Evaluator `duplicate-side-effect`: whether something that must happen once was done twice."""

import re
from collections.abc import Hashable, Sequence
from fnmatch import translate

from pydantic import Field

from processors.comparison.captured_value import comparable_arguments, is_oversized, unknown_arguments
from processors.comparison.tool_patterns import ToolPatterns
from processors.comparison.value_equality import equality_key
from processors.documents.evaluator_model import EvaluatorModel
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonObject, JsonValue
from processors.model.tool_name import canonical_tool_name

_SHOWN_TOOLS = 20


class DuplicateSideEffectConfig(EvaluatorModel):
    """Settings of `duplicate-side-effect`."""

    ignore_args: tuple[str, ...] = Field(
        default=(),
        description="Names of arguments, as globs, that do not make a call another one.",
        examples=[["request_id", "idempotency_key"]],
    )


class DuplicateSideEffectCriteria(EvaluatorModel):
    """The tools that change something."""

    tools: list[str] = Field(
        min_length=1,
        description="Tools whose call must not be repeated once it succeeded, `*` and `?` allowed.",
        examples=[["send_*", "transfer_money"]],
    )


class DuplicateSideEffect(Evaluator):
    """Whether no call with a side effect was made again, with the same arguments, after it succeeded: 1 or 0.

    score = 0 when a call of one of the `tools` follows one of the same tool with equal arguments
    (`processors.comparison.value_equality`) that ended without an error, else 1. A repetition after a failure
    is a retry. Of calls that ran side by side only those without an error repeat each other. Calls that were
    asked for and not seen to run count for nothing.

    A run without calls scores 1. Where arguments are not known the run is graded only if they cannot decide.

    Example: transfer(amount=5) succeeds, then transfer(amount=5)
    scores 0.
    """

    id = "duplicate-side-effect"
    Config = DuplicateSideEffectConfig
    Criteria = DuplicateSideEffectCriteria
    example = EvaluatorExample(
        run="""
            tool_calls:
              - {name: transfer, arguments: {amount: 5}, result: {id: T1}}
              - {name: transfer, arguments: {amount: 5}, result: {id: T2}}
        """,
        evaluation="criteria: {tools: [transfer]}",
    )

    def __init__(self, config: DuplicateSideEffectConfig, criteria: DuplicateSideEffectCriteria) -> None:
        self._tools = ToolPatterns(criteria.tools)
        ignored = config.ignore_args
        self._ignored = re.compile("|".join(map(translate, ignored))) if ignored else None

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; `content_not_captured` where arguments that are not known decide."""
        repeated, undecided = self._repeated(run)
        if not repeated and undecided is not None:
            return unknown_arguments(undecided)
        names = [call.name for call in repeated]
        shown: list[JsonValue] = [*dict.fromkeys(names)]
        if not repeated:
            return Score(1.0, {"repeated": 0, "tools": shown}, ("no side effect was repeated",))
        lines = [
            f"{name}: {names.count(name)} further with the same arguments after a success"
            for name in list(dict.fromkeys(names))[:_SHOWN_TOOLS]
        ]
        return Score(0.0, {"repeated": len(repeated), "tools": shown}, tuple(lines))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """A repetition stays one, and a further call can always be one."""
        return 0.0, 0.0 if self._repeated(run)[0] else 1.0

    def _repeated(self, run: AgentRun) -> tuple[list[ToolCall], ToolCall | None]:
        """The calls that repeat a success, and a call whose unknown arguments may make another one."""
        by_tool: dict[str, list[ToolCall]] = {}
        for call in run.tool_calls:
            if call.executed and call.name in self._tools:
                by_tool.setdefault(canonical_tool_name(call.name), []).append(call)
        repeated: list[ToolCall] = []
        undecided: ToolCall | None = None
        for calls in by_tool.values():
            groups: dict[Hashable, list[ToolCall]] = {}
            unread: ToolCall | None = None
            for call in calls:
                arguments = None if is_oversized(call.arguments_text) else comparable_arguments(call)
                if arguments is None:
                    unread = unread or call
                else:
                    groups.setdefault(equality_key(self._identifying(arguments)), []).append(call)
            for group in groups.values():
                repeated += _after_success(group)
            if unread is not None and _after_success(calls):
                undecided = undecided or unread
        return repeated, undecided

    def _identifying(self, arguments: JsonObject) -> JsonObject:
        ignored = self._ignored
        if ignored is None:
            return arguments
        return {name: value for name, value in arguments.items() if ignored.match(name) is None}


def _after_success(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls that come after the first one without an error, or succeeded beside it."""
    first = next((position for position, call in enumerate(calls) if call.error is None), None)
    if first is None:
        return []
    group = calls[first].parallel_group
    return [
        call
        for call in calls[first + 1 :]
        if call.error is None or group is None or call.parallel_group != group
    ]
