"""Evaluator `tool-repetition`: whether an agent repeats the very same call."""

from collections.abc import Hashable

from pydantic import Field

from processors.comparison.captured_value import comparable_arguments, is_oversized, unknown_arguments
from processors.comparison.tool_call_config import ToolSelectionConfig
from processors.comparison.value_equality import equality_key
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.tool_name import canonical_tool_name


class ToolRepetitionConfig(ToolSelectionConfig):
    """Settings of `tool-repetition`."""

    threshold: int = Field(
        default=3,
        ge=2,
        description="Identical calls from which the score is 0.5; from twice as many it is 0.",
    )


class ToolRepetition(Evaluator):
    """How far the most repeated call, same tool and same arguments, stays below the threshold.

    With k the largest number of identical calls and t the threshold: score = 1 when k < t, 0.5 when
    t <= k < 2t, else 0. Arguments are equal by value; other calls in between do not matter. The rule is
    the repetition part of DeepEval's agent loop detection.

    There is nothing to expect. A run without calls scores 1 (k is 0). Where arguments are not known, the
    run is graded only if they could not change the score.

    Example: with the default threshold of 3, search("a"), search("b"), search("a"), search("a")
    scores 0.5, since one call was made 3 times.
    """

    id = "tool-repetition"
    Config = ToolRepetitionConfig
    example = EvaluatorExample(
        run="""
            tool_calls:
              - {name: search, arguments: {query: a}}
              - {name: search, arguments: {query: b}}
              - {name: search, arguments: {query: a}}
              - {name: search, arguments: {query: a}}
        """,
    )

    def __init__(self, config: ToolRepetitionConfig, criteria: None = None) -> None:
        self._threshold = config.threshold
        self._categories = config.categories()

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; `content_not_captured` where arguments that are not known decide."""
        count, tool, doubtful, unread = self._largest_group(run)
        value = self._value(count)
        if unread is not None and self._value(doubtful) != value:
            return unknown_arguments(unread)
        details = {"threshold": self._threshold, "identical_calls": count, "tool": tool or None}
        if count < 2:
            return Score(value, details, ("no call was repeated",))
        return Score(value, details, (f"{tool}: {count} identical calls, threshold {self._threshold}",))

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Further calls can only repeat more."""
        return 0.0, self._value(self._largest_group(run)[0])

    def _value(self, count: int) -> float:
        if count < self._threshold:
            return 1.0
        return 0.5 if count < 2 * self._threshold else 0.0

    def _largest_group(self, run: AgentRun) -> tuple[int, str, int, ToolCall | None]:
        """The largest group of identical calls: its size and its tool.

        Then how large a group could be if the calls of a tool whose arguments are not known were all
        identical, and the first such call, if there is any.
        """
        by_tool: dict[str, list[ToolCall]] = {}
        for call in run.evaluated_calls(self._categories):
            by_tool.setdefault(canonical_tool_name(call.name), []).append(call)
        count, doubtful, tool = 0, 0, ""
        unread: ToolCall | None = None
        for calls in by_tool.values():
            if len(calls) <= count:
                continue
            known: dict[Hashable, int] = {}
            not_known = 0
            for call in calls:
                arguments = None if is_oversized(call.arguments_text) else comparable_arguments(call)
                if arguments is None:
                    not_known += 1
                    unread = unread or call
                    continue
                # A single call is compared with none.
                key = equality_key(arguments) if len(calls) > 1 else None
                known[key] = known.get(key, 0) + 1
            # A call is identical with itself, also where its arguments are not known.
            largest = max(known.values(), default=1)
            doubtful = max(doubtful, max(known.values(), default=0) + not_known)
            if largest > count:
                count, tool = largest, calls[0].name
        return count, tool, doubtful, unread
