"""A custom evaluator as criteria see it: an evaluator like any other, whose answers come from a worker."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, JsonValue

from processors.annotation import run_to_json
from processors.comparison import ExtractorSettings
from processors.model import (
    AgentRun,
    EvaluationError,
    Evaluator,
    GradedRun,
    JsonObject,
    NotEvaluated,
    RunFacts,
    Score,
    encode_json,
)


class FreeObject(BaseModel):
    """An object of a criteria file that custom code gets as it is written."""

    model_config = ConfigDict(extra="allow", frozen=True)

    __pydantic_extra__: dict[str, JsonValue]


class WorkerEvaluator(Evaluator):
    """The evaluator of one evaluation in a criteria file; each custom evaluator is a subclass.

    It grades nothing itself: `question` makes what a worker is asked.
    """

    id: ClassVar[str] = ""
    version: ClassVar[str] = ""
    Config: ClassVar[type[BaseModel]] = FreeObject
    Criteria: ClassVar[type[BaseModel] | None] = FreeObject

    def __init__(self, config: BaseModel, criteria: BaseModel) -> None:
        head: JsonObject = {
            "evaluator": self.id,
            "config": config.model_dump(mode="json", exclude_unset=True),
            "criteria": criteria.model_dump(mode="json"),
        }
        self._head = encode_json(head)[:-1]

    def evaluate(self, run: AgentRun, facts: RunFacts) -> Score | NotEvaluated:
        """There is no answer here, but from `collector.workers.worker_evaluations`.

        Raises:
            EvaluationError: always.
        """
        raise EvaluationError(f"evaluator {self.id} runs in a worker process, and there is none")

    def question(self, run: AgentRun, run_text: bytes) -> bytes | NotEvaluated:
        """What to ask a worker about `run`, whose JSON is `run_text`; or why there is nothing to ask."""
        return b'%b,"run":%b}' % (self._head, run_text)


class SubmissionEvaluator(WorkerEvaluator):
    """An evaluator whose code takes a sample and the text that an extractor takes from the run.

    `config` holds `extractor` and `extractor_config`; `criteria` may hold `ground_truth`.
    """

    Config = ExtractorSettings

    def __init__(self, config: ExtractorSettings, criteria: BaseModel) -> None:
        super().__init__(config, criteria)
        self._extraction = config.extraction()

    def question(self, run: AgentRun, run_text: bytes) -> bytes | NotEvaluated:
        """As that of the base; without what the extractor needs there is nothing to ask."""
        submission = self._extraction.text(run)
        if isinstance(submission, NotEvaluated):
            return submission
        return b'%b,"submission":%b,"run":%b}' % (self._head, encode_json(submission), run_text)


def run_text(run: AgentRun) -> bytes:
    """`run` as custom code gets it: the JSON object of a runs file, without results."""
    entry = run_to_json(GradedRun(run=run, results=()))
    del entry["evaluations"]
    return encode_json(entry)
