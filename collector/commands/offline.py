"""What commands without a running service grade by, and the traffic that they read."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from collector.commands.command import CommandContext
from collector.configuration import load_configuration, load_criteria
from collector.recordings import Progress, RecordedStream, no_progress
from collector.workers.custom_evaluators import load_custom_evaluators
from collector.workers.offline import OfflineWorkers
from processors.criteria import CriteriaSet
from processors.documents import ProblemsFound


class OfflineCriteria:
    """The service file, its custom evaluators, and criteria files."""

    def __init__(self, service_file: Path | None, context: CommandContext) -> None:
        self.config = load_configuration(service_file, context.environment)
        self.evaluators = load_custom_evaluators(self.config.processors.evaluation)
        self._environment: Mapping[str, str] = context.environment

    def load(self, patterns: Sequence[str] | None = None) -> CriteriaSet:
        """The criteria in the files that `patterns` name; none: those of the service file."""
        return load_criteria(
            patterns or self.config.criteria_patterns(),
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
        """The recorded traffic in `paths`, read as the service file states; raises ProblemsFound."""
        stream = RecordedStream(
            unix_nano=unix_nano,
            dialects=self.config.own_dialects(),
            prices=self.config.model_prices(),
            workers=workers,
        )
        if problems := stream.read(paths, progress):
            raise ProblemsFound(problems)
        return stream
