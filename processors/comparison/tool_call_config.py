"""Settings that all evaluators of tool calls share."""

from typing import Literal

from pydantic import Field

from processors.documents.models import EvaluatorModel
from processors.model.agent_run import EVALUATED_CATEGORIES, CallCategory


class ToolSelectionConfig(EvaluatorModel):
    """Which calls an evaluator sees."""

    include_categories: tuple[Literal["handoff", "final_answer"], ...] = Field(
        default=(),
        description="Categories of calls to see beside ordinary ones, also without being named by criteria.",
    )

    def categories(self) -> frozenset[CallCategory]:
        """All categories that are seen without being named."""
        return EVALUATED_CATEGORIES | {CallCategory(name) for name in self.include_categories}


class ToolCallConfig(ToolSelectionConfig):
    """Settings of the evaluators that hold calls against expectations."""

    strict: bool = Field(
        default=False, description="All or nothing: 1 when every expectation is met, else 0."
    )
