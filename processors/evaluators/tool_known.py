"""Evaluator `tool-known`: whether every called tool is one that the agent was given."""

from pydantic import Field

from processors.comparison.tool_call_config import ToolSelectionConfig
from processors.comparison.tool_patterns import ToolPatterns
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.json_value import JsonValue
from processors.model.tool_name import canonical_tool_name

_SHOWN_TOOLS = 20


class ToolKnownConfig(ToolSelectionConfig):
    """Settings of `tool-known`."""

    also_known: tuple[str, ...] = Field(
        default=(),
        description="Tools that exist although telemetry does not list them, `*` and `?` allowed.",
        examples=[["web_search"]],
    )


class ToolKnown(Evaluator):
    """The share of calls whose tool is among those that the run could call: it was not invented.

    score = calls of available tools / calls. The available tools are those that telemetry lists for the run
    (`gen_ai.tool.definitions` and its kin), and those in `also_known`. Where it lists none, the evaluation is
    not applicable. Failed calls count as calls: a tool that does not exist mostly fails. Most frameworks do
    not even try to run one; so an unknown tool that a model asked for, and that no call went to, counts as
    one more call.

    There is nothing to expect. A run without calls scores 1.

    Example: with the tools search and book, the calls search, pay
    score 0.5.
    """

    id = "tool-known"
    Config = ToolKnownConfig
    example = EvaluatorExample(
        run="""
            available_tools: {search: null, book: null}
            tool_calls: [{name: search}, {name: pay}]
        """,
    )

    def __init__(self, config: ToolKnownConfig, criteria: None = None) -> None:
        self._categories = config.categories()
        self._also_known = ToolPatterns(config.also_known)

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; not applicable where nobody told which tools there are."""
        tools = run.available_tools
        if not tools:
            return NotEvaluated(
                NotEvaluatedReason.NOT_APPLICABLE, "the trace does not list the tools of this run"
            )
        known = set(map(canonical_tool_name, tools))
        calls = run.evaluated_calls(self._categories)
        asked_for = [name for name in run.requested_tools if self._is_unknown(name, known)]
        names = [call.name for call in calls if self._is_unknown(call.name, known)] + asked_for
        total = len(calls) + len(asked_for)
        details: dict[str, JsonValue] = {"available": [*tools], "calls": total, "unknown": [*names]}
        if not names:
            return Score(
                1.0, details, ("all calls went to available tools" if calls else "no call was made",)
            )
        shown = ", ".join(list(dict.fromkeys(names))[:_SHOWN_TOOLS])
        return Score(
            (total - len(names)) / total,
            details,
            (f"unknown tools: {shown}", f"available: {', '.join(list(tools)[:_SHOWN_TOOLS])}"),
        )

    def _is_unknown(self, name: str, known: set[str]) -> bool:
        return canonical_tool_name(name) not in known and name not in self._also_known
