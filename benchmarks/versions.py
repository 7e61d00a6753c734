"""This checkout against another one of the project, in one interleaved run: CPU time a trace.

Each checkout works in a process of its own under the same interpreter. The two take short turns over the same
traces, the order reversed every other round, so that a busy spell of the machine hits both; equal code comes
out at 0.99 to 1.01. Both must come to the same verdicts. Where their graded spans differ otherwise, which is
said, one of them tells more or in other words, and the ratio holds what that costs.
"""

import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import time_ns

from benchmarks.agent_criteria import CRITERIA_TEXT
from benchmarks.child_process import REPOSITORY, ChildProcess, MeasurementRefused
from benchmarks.workload import DISTINCT_PROCESSES, SHAPES, process_requests

STEPS = ("reconstruct", "stage")
"""What is measured, methods of the worker: the runs alone; the runs, their evaluations and the events."""

FEW, REPEATS, PART = 8, 8, 60
"""Few traces stay in every cache and are repeated in a turn; of all traces a turn takes the next part."""

WARM_UP = 8
"""Rounds that are not counted."""

_READY_SECONDS, _TURN_SECONDS = 120.0, 120.0


def versions_lines(other: Path, *, rounds: int) -> Iterator[str]:
    """Measure both checkouts and report each step, one line each.

    Raises:
        MeasurementRefused: a checkout could not be measured, or they grade differently.
    """
    if not (other / "processors").is_dir():
        raise MeasurementRefused(f"{other} is no checkout of the project")
    with tempfile.TemporaryDirectory(prefix="tracegrade-benchmark-") as folder, ExitStack() as stack:
        _write_inputs(Path(folder))
        workers = [
            stack.enter_context(_worker(name, checkout, Path(folder)))
            for name, checkout in (("this", REPOSITORY), ("other", other.resolve()))
        ]
        this, that = (worker.ready(_READY_SECONDS) for worker in workers)
        if this | {"spans": ""} != that | {"spans": ""}:
            raise MeasurementRefused(f"the checkouts grade differently: {this} and {that}")
        count = int(this["traces"])
        alike = "equal graded spans" if this == that else "equal verdicts, but graded spans differ"
        yield f"# this checkout / the other one, CPU time: {count} traces, {alike}"
        again = itertools.repeat(f"0 {FEW} {REPEATS}")
        fresh = itertools.cycle(f"{first} {PART} 1" for first in range(0, count - PART + 1, PART))
        for step in STEPS:
            yield _line(f"{step}, few traces", _measured(workers, step, again, rounds))
            yield _line(f"{step}, fresh traces", _measured(workers, step, fresh, rounds))


def _write_inputs(folder: Path) -> None:
    (folder / "criteria.yaml").write_text(CRITERIA_TEXT)
    start = time_ns()
    for process in range(DISTINCT_PROCESSES):
        for number, request in enumerate(process_requests(process, SHAPES[0], start)):
            (folder / f"{process}-{number:04d}.request").write_bytes(request.for_pass(1))


def _worker(name: str, checkout: Path, folder: Path) -> ChildProcess:
    script = Path(__file__).with_name("version_worker.py")
    return ChildProcess(name, [sys.executable, "-B", str(script), str(checkout), str(folder)])


def _measured(
    workers: Sequence[ChildProcess], step: str, chosen: Iterator[str], rounds: int
) -> list[tuple[float, float]]:
    """The figures of both in every round; the first few warm up."""
    measured = []
    for turn in range(-WARM_UP, rounds):
        line = f"{step} {next(chosen)}"
        figures = {
            worker.name: float(worker.ask(line, _TURN_SECONDS))
            for worker in (workers if turn % 2 else reversed(workers))
        }
        if turn >= 0:
            measured.append((figures["this"], figures["other"]))
    return measured


def _line(name: str, measured: list[tuple[float, float]]) -> str:
    this, other = ([pair[side] for pair in measured] for side in (0, 1))
    ratios = sorted(of_this / of_other for of_this, of_other in measured)
    return (
        f"versions    {name:<28} {median(this):7.1f} / {median(other):7.1f} us/trace"
        f"  ratio {median(ratios):.3f} [{ratios[0]:.3f}-{ratios[-1]:.3f}]"
        f"  of the least {min(this):.1f} / {min(other):.1f}: {min(this) / min(other):.3f}"
    )
