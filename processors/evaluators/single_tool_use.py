"""Evaluator `single-tool-use`: whether a tool was called at all."""

from pydantic import Field

from processors.documents.evaluator_model import EvaluatorModel
from processors.documents.lenient_bool import LenientBool
from processors.model.agent_run import AgentRun, ToolCall
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts
from processors.model.tool_name import ToolKeys


class SingleToolUseConfig(EvaluatorModel):
    """Settings of `single-tool-use`."""

    include_failed: LenientBool = Field(
        default=True, description="Whether calls that ended in an error count as calls."
    )


class SingleToolUseCriteria(EvaluatorModel):
    """The tool to expect."""

    tool_name: str = Field(
        min_length=1, description="Tool name (or call id).", examples=["search_knowledge_base"]
    )


class SingleToolUse(Evaluator):
    """Whether one tool was called at least once: 1 or 0; order, arguments and number play no part.

    score = 1 when a call of the tool is there, else 0. Failed calls count as calls unless
    `include_failed: false`. A run without calls scores 0; there is no empty expectation.

    Example: book over the calls search, book, book
    scores 1.
    """

    id = "single-tool-use"
    Config = SingleToolUseConfig
    Criteria = SingleToolUseCriteria
    example = EvaluatorExample(
        run="tool_calls: [{name: search}, {name: book}, {name: book}]",
        evaluation="criteria: {tool_name: book}",
    )

    def __init__(self, config: SingleToolUseConfig, criteria: SingleToolUseCriteria) -> None:
        self._include_failed = config.include_failed
        self._tool_name = criteria.tool_name
        self._keys = ToolKeys([criteria.tool_name])

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; always a score."""
        count = len(self._calls(run))
        calls = f"{count} call" if count == 1 else f"{count} calls"
        return Score(
            float(count > 0),
            {"tool": self._tool_name, "calls": count},
            (f"{self._tool_name}: {calls}, at least 1 expected",),
        )

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Once called, a tool stays called."""
        return float(bool(self._calls(run))), 1.0

    def _calls(self, run: AgentRun) -> list[ToolCall]:
        return [
            call for call in run.tool_calls if call in self._keys and (self._include_failed or not call.error)
        ]
