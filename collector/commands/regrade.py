"""The command `tracegrade regrade`: stored runs by other criteria, and which verdicts that would change."""

import multiprocessing
import sqlite3
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from msgspec import structs

from collector.commands.arguments import add_argument, add_config, path_argument, path_text, whole_number
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext, unusable
from collector.commands.compare import Change, changes, print_by_cause, print_changes, print_json
from collector.commands.offline import OfflineCriteria
from collector.commands.run_source import add_filters, filters_of, run_filter_of, store_path
from collector.container import usable_cores
from collector.conversations import Conversations
from collector.criteria import EvaluationConfig
from collector.recordings import RecordedStream
from collector.store import RunFilter, RunQueries, StoreUnusable, open_store_file
from collector.workers.offline import OfflineWorkers
from processors.annotation import graded_run_from_json
from processors.criteria import CriteriaSet
from processors.model import EvaluationResult

_DESCRIPTION = """
Grade the runs in a store by other criteria, as they would have been graded then, and print which verdicts
would change: by agent, evaluation and cause. Exit code 0: no outcome differs; 1: one does, of an evaluation
that is not advisory, muted or in shadow in both; 2: unusable input or criteria, or no run matches.
"""
_HIDDEN = "only some runs of the store are graded"
_PAGES_AHEAD = 2
"""Pages of runs in work or waiting, for each process."""

_Regraded: TypeAlias = tuple[int, int, list[Change]]
"""The number of runs, of results that stay the same, and what differs."""


@dataclass
class _Regrading:
    """Grades stored runs, in this process or another: there it is made anew."""

    store: Path
    evaluation: EvaluationConfig
    patterns: Sequence[str]
    environment: Mapping[str, str]
    unix_nano: int
    hidden: str = ""
    """Why not all runs of a conversation are graded; empty: they are."""

    def __post_init__(self) -> None:
        self.offline = OfflineCriteria(self.evaluation, self.environment)
        self.criteria: CriteriaSet = self.offline.load(self.patterns)
        self.queries = RunQueries(open_store_file(self.store))
        self._stream: RecordedStream | None = None

    @property
    def depends_on_order(self) -> bool:
        """Whether runs must be graded one after the other, here."""
        return self.criteria.looks_at_conversations or bool(self.offline.evaluators.kinds)

    def grade(self, runs: Sequence[int], workers: OfflineWorkers | None = None) -> _Regraded:
        """The old and the new results of the runs with these ids, in order."""
        differing: list[Change] = []
        count = same = 0
        for number, line in self.queries.lines(runs).items():
            if line is None:  # removed meanwhile
                continue
            graded = graded_run_from_json(line, f"{self.store}:{number}")
            stream = self._stream or self._started(graded.graded_unix_nano, workers)
            new = stream.evaluate(stream.priced(graded.run), self.criteria, graded.graded_unix_nano)
            for change in changes(graded.run, _plain(graded.results), _plain(new)):
                if change.kind:
                    differing.append(change)
                else:
                    same += 1
            count += 1
        return count, same, differing

    def _started(self, first_unix_nano: int, workers: OfflineWorkers | None) -> RecordedStream:
        """What runs are graded with: of conversations it knows what is graded from the first one on."""
        conversations = Conversations(self.evaluation.conversations, hidden=self.hidden)
        conversations.follow(self.criteria.looks_at_conversations, first_unix_nano)
        conversations.open(first_unix_nano)
        self._stream = RecordedStream(
            unix_nano=self.unix_nano,
            prices=self.evaluation.price_table(),
            workers=workers,
            conversations=conversations,
        )
        return self._stream


def _plain(results: Sequence[EvaluationResult]) -> list[EvaluationResult]:
    """`results` without their details, which are of no use here and made when somebody looks at them."""
    return [structs.replace(result, details={}) for result in results]


_regrading: _Regrading | None = None
"""What a process of the pool grades with."""


def _start_process(make: "partial[_Regrading]") -> None:
    global _regrading
    _regrading = make()


def _grade_in_process(runs: Sequence[int]) -> _Regraded:
    assert _regrading is not None
    return _regrading.grade(runs)


def _in_processes(
    make: "partial[_Regrading]", pages: Iterable[Sequence[int]], processes: int
) -> Iterator[_Regraded]:
    """Each page graded in one of the processes, in the order of the pages."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        processes, mp_context=context, initializer=_start_process, initargs=(make,)
    ) as pool:
        waiting: deque[Future[_Regraded]] = deque()
        for page in pages:
            waiting.append(pool.submit(_grade_in_process, page))
            if len(waiting) >= _PAGES_AHEAD * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _add_arguments(parser: ArgumentParser) -> None:
    criteria = "the criteria to grade by (default: those of the service file)"
    processes = "number of processes (default: one for each core; 1 for criteria over conversations)"
    add_argument(parser, "--criteria", path_text, "FILE_OR_DIR", criteria, action="append")
    add_config(parser, "the service file: its store, criteria, custom evaluators and model prices are used")
    add_argument(parser, "--store", path_argument, "FILE", "the file of a run store")
    add_filters(parser)
    add_argument(parser, "--processes", whole_number(1, 64), "N", processes)
    parser.add_argument("--format", choices=("table", "json"), default="table")


def _run(options: Namespace, context: CommandContext) -> int:
    if options.config is None and not options.criteria:
        raise unusable("expected --criteria, or --config with criteria")
    evaluation = OfflineCriteria.from_file(options.config, context).evaluation
    filters = filters_of(options)
    make = partial(
        _Regrading,
        store_path(options, context),
        evaluation,
        options.criteria or evaluation.criteria,
        dict(context.environment),
        context.clock.unix_nano(),
        _HIDDEN if filters.keys() - {"since", "until"} else "",
    )
    try:
        return _regrade(make, options, run_filter_of(filters, context.clock))
    except (sqlite3.Error, StoreUnusable) as error:
        raise unusable(f"the store cannot be read: {error}") from None


def _regrade(make: "partial[_Regrading]", options: Namespace, run_filter: RunFilter) -> int:
    regrading = make()
    counts: Counter[str] = Counter()
    pages = ([run.id for run in page] for page in regrading.queries.pages(run_filter))
    processes = options.processes or usable_cores()
    with OfflineWorkers(regrading.offline.evaluators) as workers:
        if processes > 1 and not regrading.depends_on_order:
            graded = _in_processes(make, pages, processes)
        else:
            graded = (regrading.grade(page, workers) for page in pages)

        def pairs() -> Iterator[Change]:
            for runs, same, differing in graded:
                counts["runs"] += runs
                counts[""] += same
                yield from differing

        print_them = print_json if options.format == "json" else print_by_cause
        decisive = print_changes(pairs(), counts, print_them, sys.stdout)
    if not counts["runs"]:
        raise unusable("no stored run matches")
    return EXIT_FAILED if decisive else EXIT_OK


REGRADE = Command(_add_arguments, _run, _DESCRIPTION)
