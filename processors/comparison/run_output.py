"""What an agent answered, as far as an evaluator may rely on it."""

from processors.comparison.output_path import kind_of
from processors.model.agent_run import AgentRun, ValueState
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason
from processors.model.json_value import JsonObject


def known_output(run: AgentRun) -> str | JsonObject | NotEvaluated:
    """The final output of `run`, or why it cannot be graded.

    An output that was not captured, was hidden or cut off is unknown. One that was captured and is neither
    a text nor an object is nothing that evaluators of the output apply to.
    """
    if run.output_state is not ValueState.PRESENT:
        # Of an output, only the length keeps it from being read.
        if run.output_state is ValueState.UNPARSED:
            return NotEvaluated(NotEvaluatedReason.OVER_LIMIT, "output: too long to be read")
        return NotEvaluated(NotEvaluatedReason.CONTENT_NOT_CAPTURED, f"output: {run.output_state}")
    output = run.output
    if isinstance(output, (str, dict)):
        return output
    return NotEvaluated(
        NotEvaluatedReason.NOT_APPLICABLE, f"output: expected a text or an object, found {kind_of(output)}"
    )
