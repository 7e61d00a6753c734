"""The command `tracegrade journal`: inspects a journal that no service uses, and saves its spans."""

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from collector.commands.arguments import add_argument, path_argument
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext, unusable
from collector.journal import Inspection, inspect_in_child_process


def _add_arguments(parser: ArgumentParser) -> None:
    task = parser.add_mutually_exclusive_group(required=True)
    add_argument(task, "--inspect", path_argument, "DIRECTORY", "report what the journal holds")
    salvage = "write the spans that can be read to the new FILE.jsonl, which replay reads"
    add_argument(task, "--salvage", path_argument, ("DIRECTORY", "FILE"), salvage, nargs=2)


def _run(options: Namespace, context: CommandContext) -> int:
    if options.inspect is not None:
        directory, salvaged = options.inspect, None
    else:
        directory, salvaged = options.salvage
    _check_paths(directory, salvaged)
    inspected = inspect_in_child_process(directory, salvaged)
    _print(inspected, directory, salvaged)
    return EXIT_FAILED if inspected.damage else EXIT_OK


def _check_paths(directory: Path, salvaged: Path | None) -> None:
    if not (directory / "data.mdb").is_file():
        raise unusable(f"{directory}: not the directory of a journal: it has no data.mdb")
    if salvaged is not None and salvaged.exists():
        raise unusable(f"{salvaged}: already exists: expected the name of a new file")
    if salvaged is not None and not salvaged.parent.is_dir():
        raise unusable(f"{salvaged}: no such folder: {salvaged.parent}")


def _print(inspected: Inspection, directory: Path, salvaged: Path | None) -> None:
    content = inspected.content
    if content:
        print(f"{directory}: {content['spans']} undelivered spans of {content['traces']} traces")
        if content["log_records"]:
            print(f"  undelivered log records: {content['log_records']}")
        print(f"  already graded: {content['graded_traces']} traces")
        print(f"  remembered as finished: {content['finished_traces']} traces")
        oldest = content["oldest_unix_nano"]
        if isinstance(oldest, int) and oldest:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(oldest / 1e9))
            print(f"  oldest span received at {moment}")
    if inspected.damage:
        print(f"{directory}: damaged: {inspected.damage}", file=sys.stderr)
    if salvaged is not None and salvaged.exists():
        with salvaged.open("rb") as lines:
            print(f"{salvaged}: {sum(1 for _ in lines)} lines written; their content is not redacted")


JOURNAL = Command(_add_arguments, _run)
