"""Evaluator `ascii-printable-only`: whether a text of the run is plain ASCII."""

from processors.comparison.letta_grading import ExtractorSettings, TextGrading
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator import Evaluator, EvaluatorExample, RunFacts


class AsciiPrintableOnlyConfig(ExtractorSettings):
    """Settings of `ascii-printable-only`."""


class AsciiPrintableOnly(Evaluator):
    """Whether the extracted text has printable ASCII characters and line ends only.

    score = 1 when every character but line feeds and carriage returns is one of the 95 from space to tilde,
    else 0; a tab is none of them. The text is what the extractor takes from the run, by default the last
    answer. There is nothing to expect. An empty text, such as that of a run without messages, scores 0.

    Example: the answer "Total: 5 EUR" scores 1, "Total: 5 €" scores 0.
    """

    id = "ascii-printable-only"
    Config = AsciiPrintableOnlyConfig
    example = EvaluatorExample(
        run="messages: [{role: assistant, content: 'Total: 5 €'}]",
    )

    def __init__(self, config: AsciiPrintableOnlyConfig, criteria: None = None) -> None:
        self._grading = TextGrading("ascii_printable_only", None, config.extraction())

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """Grade `run`; `content_not_captured` where the text may exist but is not known."""
        return self._grading.grade(run)
