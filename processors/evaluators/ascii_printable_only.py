"""Evaluator `ascii-printable-only`: whether a text of the run is plain ASCII."""

from typing import ClassVar

from pydantic import BaseModel

from processors.comparison.letta_grading import ExtractorSettings, TextGrading
from processors.model.agent_run import AgentRun
from processors.model.evaluation_result import NotEvaluated, Score
from processors.model.evaluator_example import EvaluatorExample


class AsciiPrintableOnlyConfig(ExtractorSettings):
    """Settings of `ascii-printable-only`."""


class AsciiPrintableOnly:
    """Whether the extracted text has printable ASCII characters and line ends only.

    score = 1 when every character but line feeds and carriage returns is one of the 95 from space to tilde,
    else 0; a tab is none of them. The text is what the extractor takes from the run, by default the last
    answer. There is nothing to expect. An empty text, such as that of a run without messages, scores 0.

    Example: the answer "Total: 5 EUR" scores 1, "Total: 5 €" scores 0.
    """

    id: ClassVar[str] = "ascii-printable-only"
    version: ClassVar[str] = "1"
    Config: ClassVar[type[BaseModel]] = AsciiPrintableOnlyConfig
    Criteria: ClassVar[type[BaseModel] | None] = None
    example: ClassVar[EvaluatorExample] = EvaluatorExample(
        evaluation="""
            evaluator: ascii-printable-only
        """,
        run="""
            messages: [{role: assistant, content: 'Total: 5 €'}]
        """,
    )

    def __init__(self, config: AsciiPrintableOnlyConfig, criteria: BaseModel | None = None) -> None:
        if criteria is not None:
            raise ValueError("ascii-printable-only takes no criteria")
        self._grading = TextGrading("ascii_printable_only", None, config.extraction())

    def evaluate(self, run: AgentRun) -> Score | NotEvaluated:
        """Grade `run`; `content_not_captured` where the text may exist but is not known."""
        return self._grading.grade(run)

    def attainable(self, run: AgentRun) -> tuple[float, float]:
        """Anything: the text may be still to come."""
        return 0.0, 1.0
