"""Evaluator `tool-error-recovery`: whether an agent tries again, or falls back, after a failed call."""

from pydantic import Field

from processors.comparison.tool_call_config import ToolSelectionConfig
from processors.comparison.tool_call_failure import looks_failed
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonValue
from processors.model.tool_name import canonical_tool_name

_SHOWN_TOOLS = 20


class ToolErrorRecoveryConfig(ToolSelectionConfig):
    """Settings of `tool-error-recovery`."""

    fallbacks: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="For each tool the tools that may stand in for it after a failed call.",
        examples=[{"search_web": ["search_archive"]}],
    )


class ToolErrorRecovery(Evaluator):
    """The share of failed calls that a later call of the same tool, or of a declared fallback, followed.

    score = failed calls with a later call of their tool or of one of its `fallbacks` / failed calls. A
    call failed when it `looks_failed` (`processors.comparison.tool_call_failure`). The later call need not
    succeed: if it fails, it is a failed call itself. A call of the same parallel group is not later.

    There is nothing to expect. A run without failed calls, or without calls, scores 1: nothing is left
    unrecovered.

    Example: book fails, book succeeds, pay fails
    scores 0.5, since pay was not tried again.
    """

    id = "tool-error-recovery"
    Config = ToolErrorRecoveryConfig
    example = EvaluatorExample(
        run="""
            tool_calls:
              - {name: book, error: {type: TimeoutError}}
              - {name: book, result: done}
              - {name: pay, error: {type: TimeoutError}}
        """,
    )

    def __init__(self, config: ToolErrorRecoveryConfig, criteria: None = None) -> None:
        self._categories = config.categories()
        self._fallbacks: dict[str, tuple[str, ...]] = {}
        for tool, fallbacks in config.fallbacks.items():
            name = canonical_tool_name(tool)
            self._fallbacks[name] = (*self._fallbacks.get(name, ()), *map(canonical_tool_name, fallbacks))

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        calls = run.evaluated_calls(self._categories)
        failed = [position for position, call in enumerate(calls) if looks_failed(call)]
        if not failed:
            return Score(1.0, {"failed": 0, "recovered": 0, "not_recovered": []}, ("no call failed",))
        last = {canonical_tool_name(call.name): position for position, call in enumerate(calls)}
        unrecovered = []
        for position in failed:
            call = calls[position]
            name = canonical_tool_name(call.name)
            for tool in (name, *self._fallbacks.get(name, ())):
                later = last.get(tool, -1)
                group = calls[later].parallel_group
                if later > position and (group is None or group != call.parallel_group):
                    break
            else:
                unrecovered.append(call.name)
        recovered = len(failed) - len(unrecovered)
        shown = list(dict.fromkeys(unrecovered))[:_SHOWN_TOOLS]
        not_recovered: list[JsonValue] = [*shown]
        lines = [f"failed: {len(failed)}", f"recovered: {recovered}"]
        if shown:
            lines.append(f"not recovered: {', '.join(shown)}")
        return Score(
            recovered / len(failed),
            {"failed": len(failed), "recovered": recovered, "not_recovered": not_recovered},
            tuple(lines),
        )
