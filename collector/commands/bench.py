"""The command `tracegrade bench`: what a configuration costs on this machine."""

import argparse
import sys
from collections.abc import Callable
from functools import partial

from collector.commands.command import (
    EXIT_OK,
    Command,
    OfflineCriteria,
    Surroundings,
    add_argument,
    add_config,
    traffic_argument,
)
from collector.tools.bench import (
    LEAST_SECONDS,
    MOST_SECONDS,
    Bench,
    Figures,
    Traffic,
    recorded_traffic,
    scripted_traffic,
)

_DESCRIPTION = """
Measure what a configuration costs on this machine: CPU time a span, the largest rate that one service held,
and its memory. A scratch service with the criteria, processors and results of the configuration gets a
bounded load; it listens on free ports of the loopback interface, and what leaves it ends in a local sink. No
backend of yours is reached, and nothing of yours is written: a journal and a store lie in a temporary folder.
Run it while the machine is otherwise idle: senders and sink take a part of its cores.
"""
_ANYBODY = "order_support_agent"
"""An agent that only patterns apply to, where criteria name none."""
_MIB = 1024 * 1024


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_argument(
        parser,
        "--seconds",
        _seconds,
        "SECONDS",
        "how long it takes, about (%(default)g)",
        default=30.0,
    )
    add_argument(
        parser,
        "--traffic",
        traffic_argument,
        "PATH",
        "recorded traffic to send (as for replay), over and over as new traces; default: runs of 13 spans "
        "with four tool calls by the agents that the criteria name",
        action="append",
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def _run(options: argparse.Namespace, surroundings: Surroundings) -> int:
    criteria = OfflineCriteria(options.config, surroundings).load()
    traffic: Callable[[], Traffic] = partial(scripted_traffic, criteria.exact_names() or (_ANYBODY,))
    if options.traffic:
        traffic = partial(recorded_traffic, options.traffic)
    progress = _Progress()
    try:
        figures = Bench(options.config, traffic, options.seconds, progress.tell).run()
    finally:
        progress.end()
    print(figures.to_json() if options.json else _text(figures))
    return EXIT_OK


def _text(figures: Figures) -> str:
    rate = figures.spans_a_second
    held = (
        f"{rate:,.0f} spans/s, {rate / figures.spans_a_trace:,.0f} traces/s"
        + ("" if figures.is_limit else ", and there was no time to try more")
        + f"; {figures.cpu_at_rate:.2f} cores of {figures.cores} in use, {figures.processes} processes"
        if rate
        else "none that was tried: the machine is too busy for a figure, or --seconds too short"
    )
    return "\n".join(
        (
            f"CPU        {figures.cpu_micros_a_span:.0f} µs a span, "
            f"{figures.cpu_micros_a_span * figures.spans_a_trace / 1000:.2f} ms a trace of "
            f"{figures.spans_a_trace:.0f} spans of {figures.bytes_a_span:.0f} bytes; "
            f"a whole core is {1e6 / figures.cpu_micros_a_span:,.0f} spans/s",
            f"Rate held  {held}",
            f"Memory     {figures.resident_bytes / _MIB:.0f} MiB at the start, at most "
            f"{figures.peak_bytes / _MIB:.0f} MiB",
        )
    )


class _Progress:
    """A line on standard error that says what goes on: over itself on a terminal, else one a step."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()

    def tell(self, text: str) -> None:
        if self._is_terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._is_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"expected {LEAST_SECONDS:g} to {MOST_SECONDS:g}, got {text!r}")
    return seconds


COMMAND = Command(
    "bench",
    "measure what a configuration costs on this machine: CPU a span, the largest rate, memory",
    _add_arguments,
    _run,
    _DESCRIPTION,
)
