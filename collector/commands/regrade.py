"""The command `tracegrade regrade`: stored runs by other criteria, and which verdicts that would change."""

import sqlite3
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Self

from collector.commands.arguments import (
    add_argument,
    add_config,
    add_flag,
    path_argument,
    path_text,
    whole_number,
)
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext, unusable
from collector.commands.compare import print_by_cause, print_changes, print_json
from collector.commands.offline import OfflineCriteria
from collector.commands.output import moment_text, print_table
from collector.commands.processes import MAX_PROCESSES, in_processes
from collector.commands.run_source import add_filters, filters_of, run_filter_of, store_path
from collector.container import usable_cores
from collector.criteria import EvaluationConfig
from collector.errors import ExportError
from collector.exporters import ScoreSender, score_exporters
from collector.recordings import Change
from collector.regrading import HIDDEN, Regraded, Regrader, verdict_requests
from collector.store import (
    RegradeRefused,
    Regrades,
    RunDatabase,
    RunQueries,
    StoreConfig,
    StoreUnusable,
    open_store_file,
)
from collector.workers.offline import OfflineWorkers
from processors.criteria import CriteriaSet
from processors.spans import RawSpan

_DESCRIPTION = """
Grade the runs in a store by other criteria, as they would have been graded then, and print which verdicts
would change: by agent, evaluation and cause. Exit code 0: no outcome differs; 1: one does, of an evaluation
that is not advisory, muted or in shadow in both; 2: unusable input or criteria, or no run matches.
"""
_STORE = "store"
_NOT_WRITTEN = "verdicts over conversations are only printed, since the store may lack runs of one"


@dataclass
class _Regrading:
    """Grades stored runs, in this process or another: there it is made anew."""

    store: Path
    evaluation: EvaluationConfig
    patterns: Sequence[str]
    environment: Mapping[str, str]
    unix_nano: int
    writes: bool
    """Whether verdicts are to be written."""
    hidden: str = ""
    """Why not all runs of a conversation are graded; empty: they are."""

    def __post_init__(self) -> None:
        self.offline = OfflineCriteria(self.evaluation, self.environment)
        self.criteria: CriteriaSet = self.offline.load(self.patterns)
        self.queries = RunQueries(open_store_file(self.store))
        self._regrader: Regrader | None = None

    @property
    def depends_on_order(self) -> bool:
        """Whether runs must be graded one after the other, here."""
        return self.criteria.looks_at_conversations or bool(self.offline.evaluators.kinds)

    def grade(self, runs: Sequence[int], workers: OfflineWorkers | None = None) -> Regraded:
        """The old and the new results of the runs with these ids, in order."""
        self._regrader = self._regrader or Regrader(
            self.criteria,
            self.evaluation,
            self.unix_nano,
            writes=self.writes,
            hidden=self.hidden,
            workers=workers,
        )
        pages = self.queries.packed_pages(runs, with_traces=self.criteria.looks_at_traces)
        return self._regrader.grade(chain.from_iterable(pages))


def _grading(make: "partial[_Regrading]") -> Callable[[Sequence[int]], Regraded]:
    return make().grade


def _add_arguments(parser: ArgumentParser) -> None:
    criteria = "the criteria to grade by (default: those of the service file)"
    jobs = "number of processes (default: one for each core; 1 for criteria over conversations)"
    add_argument(parser, "--criteria", path_text, "FILE_OR_DIR", criteria, action="append")
    add_config(parser, "the service file: its store, criteria, custom evaluators and model prices are used")
    add_argument(parser, "--store", path_argument, "FILE", "the file of a run store")
    add_filters(parser)
    add_argument(parser, "--jobs", whole_number(1, MAX_PROCESSES), "N", jobs)
    write = "also write the results: to the store, apart from live ones, or to an exporter of scores of the "
    add_argument(
        parser, "--write", str, "store|EXPORTER", f"{write}service file; may be repeated", action="append"
    )
    add_argument(parser, "--name", str, "TEXT", "with --write store: what these results are called")
    add_argument(parser, "--by", str, "NAME", "with --write store: who made them (default: $USER)")
    written = parser.add_mutually_exclusive_group()
    add_flag(written, "--list", "only list the results that are written to the store")
    add_argument(written, "--remove", whole_number(1), "ID", "only remove the results with this id from it")
    parser.add_argument("--format", choices=("table", "json"), default="table")


def _run(options: Namespace, context: CommandContext) -> int:
    manages = options.list or options.remove
    if not (options.config or options.criteria or manages):
        raise unusable("expected --criteria, or --config with criteria")
    evaluation = OfflineCriteria.from_file(options.config, context).evaluation
    filters = filters_of(options)
    exporters = [name for name in options.write or () if name != _STORE]
    patterns = options.criteria or evaluation.criteria
    path = store_path(options, context)
    make = partial(
        _Regrading,
        path,
        evaluation,
        patterns,
        dict(context.environment),
        context.clock.unix_nano(),
        bool(exporters),
        HIDDEN if filters.keys() - {"since", "until"} else "",
    )
    try:
        if manages:
            return _manage(path, options.remove)
        regrading = make()
        if exporters and regrading.criteria.looks_at_conversations:
            raise unusable(f"--write: {_NOT_WRITTEN}")
        is_stored = _STORE in (options.write or ())
        stored = (
            _StoredResults(path, options, context, regrading.criteria.hash, patterns) if is_stored else None
        )
        with OfflineWorkers(regrading.offline.evaluators) as workers, stored or nullcontext():
            pages = regrading.queries.pages(run_filter_of(filters, context.clock))
            jobs = options.jobs or usable_cores()
            if jobs > 1 and not regrading.depends_on_order:
                graded = in_processes(partial(_grading, make), pages, jobs, "spawn")
            else:
                graded = (regrading.grade(page, workers) for page in pages)
            scores = _Scores(exporters, options.config, context, workers)
            return _print(graded, scores, stored, options.format)
    except (sqlite3.Error, StoreUnusable) as error:
        raise unusable(f"the store cannot be read: {error}") from None
    except RegradeRefused as error:
        raise unusable(f"--write store: {error}") from None


def _manage(path: Path, removed: int | None) -> int:
    """List what is written to the store, or remove one of it."""
    regrades = Regrades(RunQueries(open_store_file(path))).each()
    if removed is None:
        rows = [
            (str(one.id), moment_text(one.milliseconds), str(one.runs), one.author, one.name)
            for one in regrades
        ]
        print_table(("id", "graded", "runs", "by", "name"), rows)
        return EXIT_OK
    if removed not in [one.id for one in regrades]:
        raise unusable(f"--remove: no regrade {removed} in the store: see --list")
    with closing(RunDatabase(path, 0)) as database:
        database.open()
        Regrades(RunQueries(database)).remove(removed)
    print(f"regrade {removed} removed", file=sys.stderr)
    return EXIT_OK


class _StoredResults:
    """A regrade in the store, as a context manager: without `write` within it, nothing is retained."""

    def __init__(
        self, path: Path, options: Namespace, context: CommandContext, digest: str, patterns: Sequence[str]
    ) -> None:
        config = StoreConfig() if options.config is None else context.service_file(options.config).store
        self._database = RunDatabase(path, config.model_copy(update={"path": path}).limit_bytes)
        self._database.open()
        self._regrades = Regrades(RunQueries(self._database))
        criteria = ", ".join(map(str, patterns))
        environment = context.environment
        self._author = options.by or environment.get("USER") or environment.get("LOGNAME") or ""
        self._name = options.name or criteria
        self._regrade = self._regrades.begin(
            context.clock.unix_nano() // 1_000_000,
            name=self._name,
            criteria=criteria,
            digest=digest,
            author=self._author,
            credential="store file",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with closing(self._database):
            current = self._regrades.get(self._regrade.id)
            if current is not None and not current.is_written:
                self._regrades.remove(current.id)

    def add(self, graded: Regraded) -> None:
        """Add some results."""
        self._regrades.add(self._regrade.id, *graded.to_store())

    def write(self) -> None:
        """Retain what was added, and print what it is."""
        regrade = self._regrades.write(self._regrade.id, self._name, self._author)
        results = f"{sum(change.count for change in self._regrades.changes(regrade.id))} results that differ"
        print(
            f"regrade {regrade.id} written to the store: {regrade.runs} runs, {results}; apart from live "
            f"results, found by regrade:{regrade.id} and shown with each run",
            file=sys.stderr,
        )


class _Scores:
    """Exporters of scores of the service file, and how many verdicts they have accepted."""

    def __init__(
        self, names: Sequence[str], config: Path | None, context: CommandContext, workers: OfflineWorkers
    ) -> None:
        self._workers = workers
        known = score_exporters(context.service_file(config).exporters) if names else {}
        for name in names:
            if name not in known:
                shown = ", ".join(known) or "none"
                raise unusable(
                    f'--write: "{name}" is no exporter of scores of the service file; those are: {shown}'
                )
        self._sender = ScoreSender({name: known[name] for name in names}, context.clock)

    def write(self, verdicts: Sequence[RawSpan]) -> None:
        """Send verdicts to every exporter; raises ExportError where one does not accept them."""
        for request, count in verdict_requests(verdicts):
            self._workers.run(self._sender.send(request, count))

    def report(self) -> None:
        """Print how many verdicts were written."""
        for name, accepted in self._sender.accepted.items():
            rejected = self._sender.rejected[name]
            note = (
                f", {rejected} not accepted, such as those of spans that {name} does not have"
                if rejected
                else ""
            )
            print(f"{accepted} verdicts written to {name}{note}", file=sys.stderr)


def _print(
    graded: Iterator[Regraded], scores: _Scores, stored: _StoredResults | None, output_format: str
) -> int:
    """Print what differs, and write the verdicts; the exit code."""
    counts: Counter[str] = Counter()

    def pairs() -> Iterator[Change]:
        for some in graded:
            counts["runs"] += len(some.runs)
            counts["unreadable"] += some.unreadable
            counts[""] += some.same
            if stored is not None:
                stored.add(some)
            scores.write(some.verdicts)
            yield from some.differing

    try:
        print_them = print_json if output_format == "json" else print_by_cause
        decisive = print_changes(pairs(), counts, print_them, sys.stdout)
    except ExportError as error:
        scores.report()
        raise unusable(f"--write: not accepted: {error}") from None
    scores.report()
    if counts["unreadable"]:
        print(f"{counts['unreadable']} runs left out: this version cannot read them", file=sys.stderr)
    if not counts["runs"]:
        raise unusable("no stored run matches")
    if stored is not None:
        stored.write()
    return EXIT_FAILED if decisive else EXIT_OK


REGRADE = Command(_add_arguments, _run, _DESCRIPTION)
