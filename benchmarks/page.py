"""What every report shares: how a figure is written, and how figures get into a Markdown page."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.child_process import MeasurementRefused

REFUSED = "REFUSED"
"""How a line begins that says why there are no figures."""


def with_range(values: Sequence[float], form: str) -> str:
    """The median, and the range in brackets where there are several values."""
    middle = format(median(values), form)
    return f"{middle} [{min(values):{form}}–{max(values):{form}}]" if len(values) > 1 else middle


def write_figures(page: Path, name: str, lines: Iterable[str]) -> Iterator[str]:
    """Pass `lines` on as they come, and put them between `<!-- figures: NAME -->` and `<!-- end -->`.

    Lines that begin with `#`, which say how it was measured, become text before the others. The page stays as
    it is unless everything was measured.

    Raises:
        MeasurementRefused: the page has no such marks; nothing is measured then.
    """
    begin, end = f"<!-- figures: {name} -->\n", "<!-- end -->\n"
    if begin not in page.read_text(encoding="utf-8"):
        raise MeasurementRefused(f"{page} has no mark {begin.strip()}")
    measured = []
    for line in lines:
        yield line
        measured.append(line)
    if any(line.startswith(REFUSED) for line in measured):
        return
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    told = [line.removeprefix("# ") for line in measured if line.startswith("# ")]
    text = "\n".join([*told, "", *(line for line in measured if not line.startswith("# "))])
    text = re.sub("\n{3,}", "\n\n", text).strip("\n")
    page.write_text(f"{before}{begin}\n{text}\n\n{end}{after}", encoding="utf-8")
