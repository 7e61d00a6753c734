"""The README claims nothing about speed that the page of measurements does not say."""

import re
from pathlib import Path

PROJECT = Path(__file__).parent.parent.parent
_SPANS_A_TRACE = 13
_WORDS = {"half a": 500, "a": 1000, "two": 2000}


def test_the_cost_of_a_trace_in_the_readme_is_the_measured_one() -> None:
    readme = (PROJECT / "README.md").read_text()
    page = (PROJECT / "docs" / "performance.md").read_text()

    (claimed,) = re.findall(r"about (half a|a|two) milliseconds? of CPU a trace", readme)
    row = next(line for line in page.splitlines() if line.startswith("| tracegrade | ") and "[" in line)
    microseconds_a_span = float(row.split("|")[2].split()[0])

    assert f"Traces of {_SPANS_A_TRACE} spans" in page
    assert 0.7 <= _WORDS[claimed] / (microseconds_a_span * _SPANS_A_TRACE) <= 1.4


def test_no_other_figure_of_speed_is_claimed() -> None:
    readme = (PROJECT / "README.md").read_text()

    assert ["millisecond"] == re.findall(
        r"\b(?:micro|milli|nano)seconds?\b|\b[\d.,]+ ?(?:µs|ms|spans/s)\b", readme
    )
