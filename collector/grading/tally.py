"""What grading counted, as a value: whoever has the metrics applies it."""

from dataclasses import dataclass, field

from processors.model import SkipReason


@dataclass(slots=True)
class Tally:
    """What came of grading one trace, beside the trace itself.

    `seconds` is how long it took, without waiting for others; None where it was not graded. `failure` is what
    was raised if the trace could not be graded and leaves unchanged.
    """

    foreign_results: int = 0
    """Results of others that its spans carried."""
    without_criteria: int = 0
    """Runs that no evaluation applies to."""
    skipped: dict[SkipReason, int] = field(default_factory=dict)
    seconds: float | None = None
    failure: Exception | None = None

    def count_skip(self, reason: SkipReason) -> None:
        """An evaluation gave no result."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
