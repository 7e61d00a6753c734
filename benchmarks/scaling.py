"""What grows with held spans, with evaluations of an agent, with agents: Markdown tables and plots.

Held spans are measured in a process of their own without a network (`python -m benchmarks.scaling SPANS`
prints one point as JSON); criteria and agents on the running service.
"""

import gc
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

from benchmarks.agent_criteria import criteria_text
from benchmarks.child_process import REPOSITORY, MeasurementRefused
from benchmarks.load import Order
from benchmarks.measure import running
from benchmarks.micro import batches_of, new_buffer
from benchmarks.page import with_range
from benchmarks.servers import BENCH_ENVIRONMENT, Tracegrade, scrape
from benchmarks.workload import SHAPES, agent_name, process_requests
from collector.clock import ManualClock

Point = Mapping[str, float]
"""The figures of one size, by what they are called in the table."""

_LEAST_SECONDS = 0.3
_LEAST_FOR_MEMORY = 10_000
_PAGE = os.sysconf("SC_PAGE_SIZE")
_POLLS = 100
_POINT_SECONDS = 300
_LARGE, _MIDDLE = SHAPES[0], SHAPES[1]
_CONNECTIONS = 4


def held_point(spans: int) -> Point:
    """What the buffer takes to hold so many spans: to let them in, look for finished traces, let them out.

    Resident memory is that of the first time, in a process that has held nothing before; of few spans it
    cannot be told from the process's own.
    """
    requests = process_requests(0, _MIDDLE, time.time_ns())
    for request in requests:  # nothing is measured that is made once
        batches_of(request.for_pass(0))
    before = _resident()
    admitted, polled, released, held_bytes, buffer_bytes, resident = 0.0, 0.0, 0.0, 0, 0, 0
    times = 0
    while admitted + released < _LEAST_SECONDS:
        times += 1
        clock = ManualClock(unix_nano=time.time_ns())
        buffer = new_buffer(clock)
        held_bytes = 0
        for number in itertools.count(1):
            for body in [request.for_pass(number) for request in requests]:
                started = process_time()
                batches = batches_of(body)
                buffer.admit(batches)
                admitted += process_time() - started
                held_bytes += sum(len(span[1]) for batch in batches for span in batch.spans)
                if buffer.spans_held >= spans:
                    break
            if buffer.spans_held >= spans:
                break
        del batches, body
        if times == 1:
            gc.collect()
            resident, buffer_bytes = _resident() - before, held_bytes
        count = buffer.spans_held
        started = process_time()
        for _ in range(_POLLS):
            buffer.poll()
        polled += process_time() - started
        while buffer.spans_held:
            started = process_time()
            found = buffer.poll(100)
            used = process_time() - started
            if found:
                released += used
            else:
                clock.advance(0.5)
    point = {
        "in, CPU µs a span": admitted * 1e6 / count / times,
        "out, CPU µs a span": released * 1e6 / count / times,
        "a look for finished traces, CPU µs": polled * 1e6 / _POLLS / times,
    }
    if spans >= _LEAST_FOR_MEMORY:
        point["resident memory to bytes of the spans"] = resident / buffer_bytes
    return point


def criteria_point(evaluations: int) -> Point:
    """The running service with so many evaluations of its one agent."""
    server = Tracegrade(criteria=criteria_text(evaluations), result_events_per_trace=evaluations)
    passes = max(1, min(20, 200 // evaluations))
    with running(server, _LARGE, connections=1) as run:
        run.send(Order(passes=1))
        measured = run.send(Order(passes=passes))
    trace = measured.cpu_seconds * 1e6 / (passes * _LARGE.traces)
    return {
        "CPU µs a trace": trace,
        "CPU µs an evaluation, all else included": trace / evaluations,
        "peak MiB": measured.peak_rss_mib,
    }


def agents_point(agents: int) -> Point:
    """The running service with so many agents named in criteria, six evaluations each, all of them busy."""
    server = Tracegrade(criteria=criteria_text(agents=[agent_name(number) for number in range(agents)]))
    passes = -(-max(agents, 2_000) // (_LARGE.traces * _CONNECTIONS))
    with running(server, _LARGE, connections=_CONNECTIONS, agents=agents) as run:
        start = run.cpu_seconds
        run.send(Order(passes=passes))
        measured = run.send(Order(passes=passes))
        url = run.endpoints["telemetry"]
        before = run.thread_seconds
        scrape(url)
        first = run.thread_seconds - before
        run.send(Order(passes=passes))
        before = run.thread_seconds
        samples = sum(not line.startswith("#") for line in scrape(url).splitlines())
        changed = run.thread_seconds - before
    return {
        "CPU µs a span": measured.cpu_micros_per_span,
        "CPU s to start": start,
        "CPU ms the first scrape": first * 1e3,
        "CPU ms a scrape, all changed": changed * 1e3,
        "samples a scrape": samples,
        "peak MiB": measured.peak_rss_mib,
    }


@dataclass(frozen=True, slots=True)
class Subject:
    """What grows: its sizes, how one of them is measured, and which figures of the table are plotted."""

    of: str
    sizes: Sequence[int]
    point: Callable[[int], Point]
    plotted: Sequence[str]


def _held_apart(spans: int) -> Point:
    command = [sys.executable, "-m", "benchmarks.scaling", str(spans)]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=_POINT_SECONDS
    )
    if done.returncode:
        raise MeasurementRefused(f"{spans} held spans: {done.stderr[-2000:]}")
    point: Point = json.loads(done.stdout)
    return point


SUBJECTS: Mapping[str, Subject] = {
    "held": Subject(
        "spans held",
        (100, 1_000, 10_000, 100_000, 1_000_000),
        _held_apart,
        ("in, CPU µs a span", "out, CPU µs a span", "resident memory to bytes of the spans"),
    ),
    "criteria": Subject(
        "evaluations of an agent",
        (1, 10, 100, 1_000),
        criteria_point,
        ("CPU µs a trace", "CPU µs an evaluation, all else included"),
    ),
    "agents": Subject(
        "agents",
        (1, 10, 100, 1_000, 10_000),
        agents_point,
        ("CPU µs a span", "CPU ms a scrape, all changed", "peak MiB"),
    ),
}


def scaling_lines(
    names: Sequence[str], *, rounds: int, largest: int, plots: Path | None = None
) -> Iterator[str]:
    """Measure each subject at its sizes up to `largest`, all once a round.

    Plots go to the folder `plots`; the links to them are right for a page in the same folder.

    Raises:
        MeasurementRefused: any of the measurements cannot be trusted.
    """
    for name in names:
        subject = SUBJECTS[name]
        sizes = [size for size in subject.sizes if size <= largest]
        measured: dict[int, list[Point]] = {size: [] for size in sizes}
        for turn in range(rounds):
            for size in sizes if turn % 2 == 0 else reversed(sizes):
                measured[size].append(subject.point(size))
        yield from _table(subject, measured)
        if plots is not None:
            yield from _plot(subject, measured, plots / f"scaling-{name}.svg")
        yield ""


def _table(subject: Subject, measured: Mapping[int, Sequence[Point]]) -> Iterator[str]:
    figures = list(dict.fromkeys(figure for points in measured.values() for figure in points[0]))
    yield f"| {subject.of} | {' | '.join(figures)} |"
    yield "| --- |" + " --- |" * len(figures)
    for size, points in measured.items():
        cells = []
        for figure in figures:
            values = [point[figure] for point in points if figure in point]
            cells.append(with_range(values, ",.0f" if median(values) >= 100 else ".2f") if values else "")
        yield f"| {size:,} | {' | '.join(cells)} |"


def _plot(subject: Subject, measured: Mapping[int, Sequence[Point]], path: Path) -> Iterator[str]:
    python = BENCH_ENVIRONMENT / "bin" / "python"
    if not python.exists():
        yield f"{path.name} is left out: matplotlib is not installed (make bench-install)"
        return
    panels = {
        figure: {
            size: [point[figure] for point in points]
            for size, points in measured.items()
            if figure in points[0]
        }
        for figure in subject.plotted
    }
    script = REPOSITORY / "benchmarks" / "plot.py"
    subprocess.run(
        [str(python), str(script), str(path)],
        input=json.dumps({"of": subject.of, "panels": panels}),
        text=True,
        check=True,
        timeout=_POINT_SECONDS,
    )
    yield ""
    yield f"![{', '.join(panels)} over {subject.of}]({path.name})"


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


if __name__ == "__main__":
    print(json.dumps(held_point(int(sys.argv[1]))))
