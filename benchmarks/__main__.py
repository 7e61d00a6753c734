"""`python -m benchmarks PART`: each part is one subject, and says with `--help` what it takes."""

import argparse
import itertools
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.child_process import MeasurementRefused
from benchmarks.hostile import hostile_lines
from benchmarks.hostile_traces import HOSTILE_KINDS
from benchmarks.journal import journal_lines
from benchmarks.kafka_records import kafka_lines
from benchmarks.load import MAX_SECONDS, Order
from benchmarks.log_flood import log_flood_lines
from benchmarks.measure import CONNECTIONS
from benchmarks.micro import micro_lines
from benchmarks.page import REFUSED, write_figures
from benchmarks.peers import peers_lines
from benchmarks.processes import processes_lines
from benchmarks.reference_package import compare
from benchmarks.scaling import SUBJECTS, scaling_lines
from benchmarks.scrape import scrape_lines
from benchmarks.servers import BENCH_ENVIRONMENT, PEERS, TRACEGRADE
from benchmarks.sizing import LEAST_SECONDS, MOST_SECONDS, sizing_lines
from benchmarks.store import store_lines
from benchmarks.versions import versions_lines
from benchmarks.workload import SHAPES


def main() -> int:
    """Run the part that was asked for; 0 when everything could be measured, 1 when something was refused."""
    arguments = _parser().parse_args()
    lines: Iterable[str] = itertools.chain([_machine()], arguments.part(arguments))
    if arguments.into is not None:
        lines = write_figures(arguments.into, arguments.figures(arguments), lines)
    refused = False
    try:
        for line in lines:
            print(line, flush=True)
            refused |= line.startswith(REFUSED)
    except MeasurementRefused as refusal:
        print(f"{REFUSED}: {refusal}", flush=True)
        refused = True
    return int(refused)


def _machine() -> str:
    return (
        f"# Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"load average {os.getloadavg()[0]:.2f} before; medians [range]."
    )


def _peers(arguments: argparse.Namespace) -> Iterator[str]:
    names = set(arguments.names)
    shapes = [shape for shape in SHAPES if shape.name in names] or list(SHAPES)
    servers = [server for server in (*TRACEGRADE, *PEERS) if server.name in names]
    seconds, rounds = (1.0, 1) if arguments.quick else (arguments.seconds, arguments.rounds)
    yield (
        f"# {CONNECTIONS} connections, {seconds:g} s a measurement, {rounds} interleaved rounds; "
        "CPU time of the whole server process."
    )
    order = Order(seconds=seconds, rate=arguments.rate)
    yield from peers_lines(servers or (*TRACEGRADE, *PEERS), shapes, order=order, rounds=rounds)


def _hostile(arguments: argparse.Namespace) -> Iterator[str]:
    chosen = [kind for kind in HOSTILE_KINDS if kind.name in arguments.kinds]
    return hostile_lines(chosen or HOSTILE_KINDS)


def _scaling(arguments: argparse.Namespace) -> Iterator[str]:
    return scaling_lines(
        arguments.subjects or list(SUBJECTS),
        rounds=arguments.rounds,
        largest=arguments.largest,
        plots=arguments.plots,
    )


def _journal(arguments: argparse.Namespace) -> Iterator[str]:
    shapes = [shape for shape in SHAPES if shape.name in arguments.shapes]
    return journal_lines(shapes or SHAPES, rounds=arguments.rounds, folder=arguments.folder)


def _reference(arguments: argparse.Namespace) -> Iterator[str]:
    return compare(arguments.python, rounds=arguments.rounds, seconds=arguments.seconds)


def _versions(arguments: argparse.Namespace) -> Iterator[str]:
    return versions_lines(arguments.other, rounds=arguments.rounds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What the service costs.")
    parser.set_defaults(into=None)
    parts = parser.add_subparsers(required=True, metavar="PART")

    peers = parts.add_parser("peers", help="CPU time a span of the running service beside its peers")
    peers.set_defaults(
        part=_peers, figures=lambda arguments: "peers at a fixed rate" if arguments.rate else "peers"
    )
    _add_page(peers)
    _add_rounds(peers, 4)
    peers.add_argument(
        "--seconds", type=_between(0.001, MAX_SECONDS), default=3.0, help="of load a measurement (default 3)"
    )
    peers.add_argument("--quick", action="store_true", help="one round of one second: a trial, no figure")
    peers.add_argument("--rate", type=float, default=0.0, help="spans/s to send, in place of saturation")
    names = [shape.name for shape in SHAPES] + [server.name for server in (*TRACEGRADE, *PEERS)]
    peers.add_argument("names", nargs="*", type=_one_of(names), metavar="NAME", help="shapes and servers")

    micro = parts.add_parser("micro", help="the steps of the data path in process, no network")
    micro.set_defaults(part=lambda arguments: micro_lines(), figures=lambda arguments: "micro")
    _add_page(micro)

    kafka = parts.add_parser("kafka", help="receiving and splitting records; needs the extra kafka")
    kafka.set_defaults(
        part=lambda arguments: kafka_lines(arguments.brokers), figures=lambda arguments: "kafka"
    )
    _add_page(kafka)
    kafka.add_argument("--brokers", metavar="HOST:PORT", help="not a cluster in memory, but these")

    logs = parts.add_parser("logs", help="a flood of log lines: CPU a record on the loop, what is held")
    logs.set_defaults(part=lambda arguments: log_flood_lines(), figures=lambda arguments: "logs")
    _add_page(logs)

    hostile = parts.add_parser("hostile", help="traces made to be costly, 1,000 to 100,000 spans")
    hostile.set_defaults(part=_hostile)
    kinds = [kind.name for kind in HOSTILE_KINDS]
    hostile.add_argument("kinds", nargs="*", type=_one_of(kinds), metavar="KIND", help="only these")

    scaling = parts.add_parser(
        "scaling", help="10^2 to 10^6 held spans, 1 to 1,000 criteria, 1 to 10,000 agents"
    )
    scaling.set_defaults(part=_scaling, figures=lambda arguments: " ".join(["scaling", *arguments.subjects]))
    _add_page(scaling)
    _add_rounds(scaling, 3)
    scaling.add_argument("--largest", type=int, default=10**6, metavar="SIZE", help="leave larger ones out")
    scaling.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the figures there, as SVG")
    scaling.add_argument("subjects", nargs="*", type=_one_of(list(SUBJECTS)), metavar="SUBJECT")

    processes = parts.add_parser("processes", help="grading in 0, 1 and 2 processes of its own")
    processes.set_defaults(
        part=lambda arguments: processes_lines(rounds=arguments.rounds), figures=lambda arguments: "processes"
    )
    _add_page(processes)
    _add_rounds(processes, 5)

    store = parts.add_parser("store", help="keeping runs beside the path of a span, in pairs of turns")
    store.set_defaults(
        part=lambda arguments: store_lines(rounds=arguments.rounds), figures=lambda arguments: "store"
    )
    _add_page(store)
    _add_rounds(store, 9)

    journal = parts.add_parser("journal", help="the path of a span with and without the journal, in turns")
    journal.set_defaults(part=_journal, figures=lambda arguments: "journal")
    _add_page(journal)
    _add_rounds(journal, 5)
    journal.add_argument("--folder", type=Path, help="on whose disk the journal is written")
    journal.add_argument(
        "shapes",
        nargs="*",
        type=_one_of([shape.name for shape in SHAPES]),
        metavar="SHAPE",
        help="only these",
    )

    sizing = parts.add_parser("sizing", help="your configuration: CPU a span, the largest rate held, memory")
    sizing.set_defaults(
        part=lambda arguments: sizing_lines(arguments.config, arguments.traffic, arguments.seconds)
    )
    sizing.add_argument("--config", type=Path, metavar="FILE", help="service file (default: none)")
    sizing.add_argument(
        "--seconds",
        type=_between(LEAST_SECONDS, MOST_SECONDS),
        default=30.0,
        help="about how long it takes (default 30)",
    )
    sizing.add_argument(
        "--traffic",
        type=Path,
        metavar="PATH",
        action="append",
        default=[],
        help="recorded traffic to send repeatedly as new traces, as `tracegrade replay` reads it; default: "
        "runs of 13 spans with four tool calls by the agents that the criteria name",
    )

    scrape = parts.add_parser("scrape", help="scrapes of 500 agents, and what they cost senders; 90 s")
    scrape.set_defaults(part=lambda arguments: scrape_lines())

    reference = parts.add_parser("reference", help="evaluators beside those of the package they agree with")
    reference.set_defaults(part=_reference)
    _add_rounds(reference, 5)
    reference.add_argument(
        "--seconds", type=_between(0.001, MAX_SECONDS), default=0.1, help="of a measurement (default 0.1)"
    )
    python = BENCH_ENVIRONMENT / "bin" / "python"
    reference.add_argument("--python", default=str(python), help="an interpreter that has the package")

    versions = parts.add_parser("versions", help="this checkout against another one, in process")
    versions.set_defaults(part=_versions)
    _add_rounds(versions, 80)
    versions.add_argument("other", type=Path, metavar="OTHER_CHECKOUT")
    return parser


def _add_rounds(parser: argparse.ArgumentParser, rounds: int) -> None:
    parser.add_argument("--rounds", type=_rounds, default=rounds, help=f"interleaved (default {rounds})")


def _add_page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--into", type=Path, metavar="PAGE", help="write the figures between their marks in this page as well"
    )


def _one_of(names: Sequence[str]) -> Callable[[str], str]:
    """A name out of a list; `choices` of argparse refuses a list of no positional names."""

    def name(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(names)}")
        return text

    return name


def _between(least: float, most: float) -> Callable[[str], float]:
    def seconds(text: str) -> float:
        value = float(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between {least:g} and {most:g}")
        return value

    return seconds


def _rounds(text: str) -> int:
    rounds = int(text)
    if not 1 <= rounds <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 1000")
    return rounds


if __name__ == "__main__":
    sys.exit(main())
