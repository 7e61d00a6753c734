"""The scores of a release, pinned for later comparison."""

from collector.tools.baseline.release_baseline import (
    DEFAULT_WINDOW,
    MAX_NAME_LENGTH,
    MIN_SAMPLES,
    Scores,
    pin,
    scores_of_runs,
    scores_on_server,
    write_whole,
)

__all__ = [
    "DEFAULT_WINDOW", "MAX_NAME_LENGTH", "MIN_SAMPLES", "Scores", "pin", "scores_of_runs", "scores_on_server",
    "write_whole",
]  # fmt: skip
