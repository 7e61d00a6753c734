"""The page of all metrics is the table."""

from pathlib import Path

from docs.generate.metrics import metrics_reference

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_is_up_to_date() -> None:
    assert metrics_reference() == PAGE.read_text(), "run: make reference"


def test_every_row_has_six_columns() -> None:
    rows = [line for line in metrics_reference().splitlines() if line.startswith("| `")]

    assert len(rows) > 20
    assert {7} == {row.count("|") for row in rows}
