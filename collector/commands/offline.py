"""What commands without a running service grade by, and the traffic that they read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from collector.commands.command import CommandContext
from collector.criteria import EvaluationConfig, load_criteria
from collector.recordings import Progress, RecordedStream, no_progress
from collector.workers.custom_evaluators import load_custom_evaluators
from collector.workers.offline import OfflineWorkers
from processors.criteria import CriteriaSet
from processors.documents import InvalidInput


class OfflineCriteria:
    """How a service file has agents graded: its criteria, custom evaluators, dialects and prices."""

    def __init__(self, evaluation: EvaluationConfig, environment: Mapping[str, str]) -> None:
        self.evaluation = evaluation
        self.evaluators = load_custom_evaluators(evaluation)
        self._environment = environment

    @classmethod
    def from_file(cls, service_file: Path | None, context: CommandContext) -> Self:
        """Those of a service file; without one, the defaults."""
        if service_file is None:
            return cls(EvaluationConfig(), context.environment)
        return cls(context.service_file(service_file).processors.evaluation, context.environment)

    def load(self, patterns: Sequence[str] | None = None) -> CriteriaSet:
        """The criteria in the files that `patterns` name; none: those of the service file."""
        return load_criteria(
            patterns or self.evaluation.criteria,
            environment=self._environment,
            evaluators=self.evaluators.known,
        )

    def read(
        self,
        paths: Sequence[Path],
        *,
        unix_nano: int = 0,
        workers: OfflineWorkers | None = None,
        progress: Progress = no_progress,
    ) -> RecordedStream:
        """The recorded traffic in `paths`, read as the service file states; raises InvalidInput."""
        stream = RecordedStream(
            unix_nano=unix_nano,
            dialects=self.evaluation.own_dialects(),
            prices=self.evaluation.price_table(),
            workers=workers,
        )
        if problems := stream.read(paths, progress):
            raise InvalidInput(problems)
        return stream
