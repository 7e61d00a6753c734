"""The command `tracegrade journal`: what is in a journal that no service uses, and how to save its spans."""

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, Surroundings, unusable
from collector.journal import Inspected, inspect_apart


def _add_arguments(parser: ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--inspect", type=Path, metavar="DIRECTORY", help="say what is in it")
    what.add_argument(
        "--salvage",
        type=Path,
        nargs=2,
        metavar=("DIRECTORY", "FILE"),
        help="write the spans that can be read to the new FILE.jsonl, which replay reads",
    )


def _run(options: Namespace, surroundings: Surroundings) -> int:
    if options.inspect is not None:
        directory, salvaged = options.inspect, None
    else:
        directory, salvaged = options.salvage
    _check_places(directory, salvaged)
    found = inspect_apart(directory, salvaged)
    _tell(found, directory, salvaged)
    return EXIT_FAILED if found.damage else EXIT_OK


def _check_places(directory: Path, salvaged: Path | None) -> None:
    if not (directory / "data.mdb").is_file():
        raise unusable(f"{directory}: expected the directory of a journal, found no data.mdb in it")
    if salvaged is not None and salvaged.exists():
        raise unusable(f"{salvaged}: exists already: expected the name of a new file")
    if salvaged is not None and not salvaged.parent.is_dir():
        raise unusable(f"{salvaged}: there is no folder {salvaged.parent}")


def _tell(found: Inspected, directory: Path, salvaged: Path | None) -> None:
    content = found.content
    if content:
        print(f"{directory}: {content['spans']} spans of {content['traces']} traces that are not delivered")
        print(f"  graded already: {content['graded_traces']} traces")
        print(f"  remembered as finished: {content['finished_traces']} traces")
        oldest = content["oldest_unix_nano"]
        if isinstance(oldest, int) and oldest:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(oldest / 1e9))
            print(f"  oldest span came at {moment}")
    if found.damage:
        print(f"{directory}: damaged: {found.damage}", file=sys.stderr)
    if salvaged is not None and salvaged.exists():
        with salvaged.open("rb") as lines:
            print(f"{salvaged}: {sum(1 for _ in lines)} lines written; content stands in it as it came")


COMMAND = Command("journal", "say what is in a journal, or save its spans", _add_arguments, _run)
