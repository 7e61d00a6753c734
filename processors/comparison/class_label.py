"""The class that an agent's output names."""

from pydantic import Field

from processors.comparison.output_target import OutputConfig, OutputTarget
from processors.comparison.output_value import python_text
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated


class ClassificationConfig(OutputConfig):
    """What evaluators of classifications share; the metric speaks of many results, not of one."""

    f_value: float = Field(
        default=1.0,
        allow_inf_nan=False,
        description="Beta of the F-score: above 1 recall weighs more, below 1 precision.",
    )


class PredictedClass:
    """Reads the predicted class from runs: the text at `target_output_key`, in lower case, not trimmed."""

    def __init__(self, config: ClassificationConfig) -> None:
        """Prepare the reading; raises ValueError when lines are asked for."""
        if config.line_by_line_evaluator and isinstance(config.target_output_key, str):
            raise ValueError("line_by_line_evaluator: an output names one class, not one in each line")
        self._target = OutputTarget(config.target_output_key)

    def in_run(self, run: AgentRun) -> str | NotEvaluated:
        """The class that `run` names; raises EvaluationError when the output does not have the key."""
        value = self._target.in_run(run)
        return value if isinstance(value, NotEvaluated) else python_text(value).lower()
