"""Draws growth: `PYTHON plot.py FILE.svg` (an interpreter that has matplotlib), the figures as JSON on stdin.

The same figures give the same file, so that a renewed plot differs only where its figures do.
"""

import json
import sys
from statistics import median

from matplotlib import pyplot, rcParams

_INCHES = (3.6, 2.8)


def main() -> None:
    """One panel beside the other, sizes on a logarithmic scale; medians as a line, the range as a band."""
    pyplot.switch_backend("svg")
    rcParams.update({"svg.hashsalt": "tracegrade", "svg.fonttype": "none", "font.size": 9})
    drawn = json.load(sys.stdin)
    panels = drawn["panels"]
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(_INCHES[0] * len(panels), _INCHES[1]), layout="constrained", squeeze=False
    )
    for axis, (title, values) in zip(axes[0], panels.items(), strict=True):
        sizes = [int(size) for size in values]
        axis.plot(sizes, [median(found) for found in values.values()], marker="o", color="#1f77b4")
        axis.fill_between(
            sizes, [min(found) for found in values.values()], [max(found) for found in values.values()],
            color="#1f77b4", alpha=0.2, linewidth=0,
        )  # fmt: skip
        axis.set(title=title, xlabel=drawn["of"], xscale="log")
        if max(map(max, values.values())) > 20 * min(map(min, values.values())) > 0:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
    figure.savefig(sys.argv[1], metadata={"Date": None})


if __name__ == "__main__":
    main()
