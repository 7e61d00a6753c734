"""The simulation behind docs/scaling.md says what stands there."""

import math
from pathlib import Path

from benchmarks.scale_simulation import commit_size, killed, lines

PROJECT = Path(__file__).parent.parent.parent


def test_its_output_is_the_one_that_is_shown() -> None:
    text = "\n".join(lines())

    assert (PROJECT / "benchmarks" / "scale_simulation.txt").read_text() == text + "\n"
    assert text in (PROJECT / "docs" / "scaling.md").read_text()


def test_smaller_shares_are_caught_up_with_and_large_ones_are_not() -> None:
    assert math.isinf(killed(168, 2).catch_up_seconds)
    assert killed(168, 6).catch_up_seconds < 60
    assert math.isinf(killed(130, 6).catch_up_seconds)


def test_the_metadata_of_a_commit_fits_up_to_500_records_a_second() -> None:
    assert 0 == commit_size(500)[2]
    assert 0 < commit_size(1000)[2]
