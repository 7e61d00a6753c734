"""`python -m benchmarks [--seconds N] [--rounds N] [--quick] [NAME ...]`."""

import argparse
import os
import platform
import sys

from benchmarks.child_process import MeasurementRefused
from benchmarks.comparison import compare
from benchmarks.hostile import hostile_lines
from benchmarks.hostile_traces import HOSTILE_KINDS
from benchmarks.load import MAX_SECONDS
from benchmarks.measure import CONNECTIONS
from benchmarks.micro import micro_lines
from benchmarks.servers import SERVERS
from benchmarks.workload import SHAPES

MICRO, HOSTILE = "micro", "hostile"
_KINDS = {kind.name: kind for kind in HOSTILE_KINDS}
_NAMES = (
    *(shape.name for shape in SHAPES), *(server.name for server in SERVERS), MICRO, HOSTILE, *_KINDS
)  # fmt: skip


def main() -> int:
    """Run what was asked for; 0 when everything could be measured, 1 when a measurement was refused."""
    arguments = _arguments()
    names = set(arguments.names)
    shapes = [shape for shape in SHAPES if shape.name in names] or list(SHAPES)
    servers = [server for server in SERVERS if server.name in names] or list(SERVERS)
    seconds, rounds = (1.0, 1) if arguments.quick else (arguments.seconds, arguments.rounds)
    print(
        f"# Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"load average {os.getloadavg()[0]:.2f}; "
        f"{CONNECTIONS} connections, {seconds:g} s a measurement, {rounds} interleaved rounds; "
        "median [range], CPU of the whole server process"
    )
    if not names or MICRO in names:
        for line in micro_lines():
            print(line, flush=True)
    kinds = [_KINDS[name] for name in arguments.names if name in _KINDS]
    if kinds or HOSTILE in names:
        for line in hostile_lines(kinds or HOSTILE_KINDS):
            print(line, flush=True)
    refused = 0
    if not names or names - {MICRO, HOSTILE, *_KINDS}:
        for shape in shapes:
            try:
                for line in compare(servers, shape, seconds=seconds, rounds=rounds):
                    print(line, flush=True)
            except MeasurementRefused as refusal:
                refused += 1
                print(f"REFUSED {shape.name}: {refusal}", flush=True)
    return 1 if refused else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="CPU time per span.")
    parser.add_argument("--seconds", type=_seconds, default=3.0, help="of load per measurement (default 3)")
    parser.add_argument("--rounds", type=_rounds, default=4, help="interleaved rounds (default 4)")
    parser.add_argument("--quick", action="store_true", help="one round of one second: a trial, no figure")
    parser.add_argument(
        "names", nargs="*", type=_name, metavar="NAME", help=f"only these: {', '.join(_NAMES)}"
    )
    return parser.parse_args()


def _name(text: str) -> str:
    if text not in _NAMES:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(_NAMES)}")
    return text


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {MAX_SECONDS:g}")
    return seconds


def _rounds(text: str) -> int:
    rounds = int(text)
    if not 1 <= rounds <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 100")
    return rounds


if __name__ == "__main__":
    sys.exit(main())
