"""The command `tracegrade regrade`: stored runs by other criteria, and which verdicts that would change."""

import sqlite3
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import structs
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs

from collector.commands.arguments import add_argument, add_config, path_argument, path_text, whole_number
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext, unusable
from collector.commands.compare import Change, changes, print_by_cause, print_changes, print_json
from collector.commands.offline import OfflineCriteria
from collector.commands.processes import MAX_PROCESSES, in_processes
from collector.commands.run_source import add_filters, filters_of, run_filter_of, store_path
from collector.container import usable_cores
from collector.conversations import Conversations
from collector.criteria import EvaluationConfig
from collector.errors import ExportError
from collector.exporters import ExporterContext, SpanExporter, exporter_types, send_patiently
from collector.otlp import join_spans
from collector.recordings import RecordedStream, whole_trace
from collector.store import RunQueries, StoreUnusable, open_store_file
from collector.telemetry import Metrics
from collector.workers.offline import OfflineWorkers
from processors.annotation import graded_run_from_json, result_records
from processors.criteria import CriteriaSet, applied_criteria
from processors.model import AgentRun, EvaluationResult, GradedRun
from processors.spans import Envelope, RawSpan

_DESCRIPTION = """
Grade the runs in a store by other criteria, as they would have been graded then, and print which verdicts
would change: by agent, evaluation and cause. Exit code 0: no outcome differs; 1: one does, of an evaluation
that is not advisory, muted or in shadow in both; 2: unusable input or criteria, or no run matches.
"""
_HIDDEN = "only some runs of the store are graded"
_INSTANCE = "regrade"
"""Whose verdicts they are, as `tracegrade.instance` of each."""
_NOT_WRITTEN = "verdicts over conversations are only printed, since the store may lack runs of one"
_SCORES_PER_REQUEST, _PATIENCE_SECONDS = 200, 60.0


class _Regraded(NamedTuple):
    """Some runs: their number, that of results that stay the same, and what differs.

    `verdicts` are log records of the new verdicts, where they are to be written.
    """

    runs: int
    same: int
    differing: list[Change]
    verdicts: list[RawSpan]


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
        self._stream: RecordedStream | None = None

    @property
    def depends_on_order(self) -> bool:
        """Whether runs must be graded one after the other, here."""
        return self.criteria.looks_at_conversations or bool(self.offline.evaluators.kinds)

    def grade(self, runs: Sequence[int], workers: OfflineWorkers | None = None) -> _Regraded:
        """The old and the new results of the runs with these ids, in order."""
        differing: list[Change] = []
        verdicts: list[RawSpan] = []
        count = same = 0
        for number, line in self.queries.lines(runs).items():
            if line is None:  # removed meanwhile
                continue
            graded = graded_run_from_json(line, f"{self.store}:{number}")
            stream = self._stream or self._started(graded.graded_unix_nano, workers)
            new = self._results(stream, graded, number)
            for change in changes(graded.run, _plain(graded.results), _plain(new)):
                if change.kind:
                    differing.append(change)
                else:
                    same += 1
            if self.writes:
                verdicts += _records(graded.run, new, self.unix_nano)
            count += 1
        return _Regraded(count, same, differing, verdicts)

    def _results(self, stream: RecordedStream, graded: GradedRun, number: int) -> Sequence[EvaluationResult]:
        """The new results of a stored run; where criteria look at traces, among all stored runs of it."""
        runs, place = [graded.run], 0
        if self.criteria.looks_at_traces:
            stored = self.queries.runs_of_trace(graded.run.trace_id.hex())
            place = [summary.id for summary, _ in stored].index(number)
            runs = [graded_run_from_json(line, f"{self.store}:{summary.id}").run for summary, line in stored]
        runs = list(map(stream.priced, runs))
        run, evaluations = applied_criteria(runs, self.criteria)[place]
        return stream.evaluate(run, evaluations, self.criteria, whole_trace(runs), graded.graded_unix_nano)

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


def _records(run: AgentRun, results: Sequence[EvaluationResult], unix_nano: int) -> list[RawSpan]:
    """The verdicts among `results` as log records, as a service makes them."""
    decided = [result for result in results if result.is_verdict]
    resource = ResourceLogs()
    for key, value in run.resource.items():
        if isinstance(value, str):
            resource.resource.attributes.add(key=key).value.string_value = value
    envelope = Envelope(resource.SerializeToString(), b"")
    carriers = {result.tool_span_id or run.carrier_span_id or b"" for result in decided} - {b""}
    spans = [(span_id, b"", envelope) for span_id in sorted(carriers)]
    return result_records(spans, [(run, decided)], time_unix_nano=unix_nano, instance=_INSTANCE)


def _plain(results: Sequence[EvaluationResult]) -> list[EvaluationResult]:
    """`results` without their details, which are of no use here and made when somebody looks at them."""
    return [structs.replace(result, details={}) for result in results]


def _grading(make: "partial[_Regrading]") -> Callable[[Sequence[int]], _Regraded]:
    return make().grade


def _add_arguments(parser: ArgumentParser) -> None:
    criteria = "the criteria to grade by (default: those of the service file)"
    processes = "number of processes (default: one for each core; 1 for criteria over conversations)"
    add_argument(parser, "--criteria", path_text, "FILE_OR_DIR", criteria, action="append")
    add_config(parser, "the service file: its store, criteria, custom evaluators and model prices are used")
    add_argument(parser, "--store", path_argument, "FILE", "the file of a run store")
    add_filters(parser)
    add_argument(parser, "--processes", whole_number(1, MAX_PROCESSES), "N", processes)
    write = "also write the new verdicts to this exporter of scores of the service file; may be repeated"
    add_argument(parser, "--write", str, "EXPORTER", write, action="append")
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
        bool(options.write),
        _HIDDEN if filters.keys() - {"since", "until"} else "",
    )
    try:
        regrading = make()
        if regrading.writes and regrading.criteria.looks_at_conversations:
            raise unusable(f"--write: {_NOT_WRITTEN}")
        with OfflineWorkers(regrading.offline.evaluators) as workers:
            pages = regrading.queries.pages(run_filter_of(filters, context.clock))
            runs = ([run.id for run in page] for page in pages)
            processes = options.processes or usable_cores()
            if processes > 1 and not regrading.depends_on_order:
                graded = in_processes(partial(_grading, make), runs, processes, "spawn")
            else:
                graded = (regrading.grade(page, workers) for page in runs)
            scores = _Scores(options.write or (), options.config, context, workers)
            return _print(graded, scores, options.format)
    except (sqlite3.Error, StoreUnusable) as error:
        raise unusable(f"the store cannot be read: {error}") from None


class _Scores:
    """Exporters of scores of the service file, and how many verdicts they have accepted."""

    def __init__(
        self, names: Sequence[str], config: Path | None, context: CommandContext, workers: OfflineWorkers
    ) -> None:
        self._clock = context.clock
        self._workers = workers
        configured = context.service_file(config).exporters if names else {}
        exporting = ExporterContext(clock=context.clock, metrics=Metrics(), console=sys.stdout)
        self._exporters: dict[str, SpanExporter] = {}
        self._written: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        for name in names:
            component = exporter_types()[name.partition("/")[0]] if name in configured else None
            if component is None or component.kind != "scores":
                known = [
                    name for name in configured if exporter_types()[name.partition("/")[0]].kind == "scores"
                ]
                shown = ", ".join(known) or "none"
                raise unusable(
                    f'--write: "{name}" is no exporter of scores of the service file; those are: {shown}'
                )
            # What is not there now, days after the runs, will not come.
            settings = configured[name].model_copy(update={"span_wait": 0.0})
            self._exporters[name] = component.create(name, settings, exporting)

    def write(self, verdicts: Sequence[RawSpan]) -> None:
        """Send verdicts to every exporter; raises ExportError where one does not accept them."""
        for start in range(0, len(verdicts) if self._exporters else 0, _SCORES_PER_REQUEST):
            some = verdicts[start : start + _SCORES_PER_REQUEST]
            self._workers.run(self._send(join_spans(some), len(some)))

    async def _send(self, request: bytes, count: int) -> None:
        for name, exporter in self._exporters.items():
            await exporter.start()
            try:
                answer = await send_patiently(
                    exporter, request, count, "logs", self._clock, _PATIENCE_SECONDS
                )
            finally:
                await exporter.shutdown(self._clock.monotonic())
            self._written[name] += count - answer.rejected_spans
            self._rejected[name] += answer.rejected_spans

    def report(self) -> None:
        """Print how many verdicts were written."""
        for name in self._exporters:
            rejected = self._rejected[name]
            note = (
                f", {rejected} not accepted, such as those of spans that {name} does not have"
                if rejected
                else ""
            )
            print(f"{self._written[name]} verdicts written to {name}{note}", file=sys.stderr)


def _print(graded: Iterator[_Regraded], scores: _Scores, output_format: str) -> int:
    """Print what differs, and write the verdicts; the exit code."""
    counts: Counter[str] = Counter()

    def pairs() -> Iterator[Change]:
        for some in graded:
            counts["runs"] += some.runs
            counts[""] += some.same
            scores.write(some.verdicts)
            yield from some.differing

    try:
        print_them = print_json if output_format == "json" else print_by_cause
        decisive = print_changes(pairs(), counts, print_them, sys.stdout)
    except ExportError as error:
        scores.report()
        raise unusable(f"--write: not accepted: {error}") from None
    scores.report()
    if not counts["runs"]:
        raise unusable("no stored run matches")
    return EXIT_FAILED if decisive else EXIT_OK


REGRADE = Command(_add_arguments, _run, _DESCRIPTION)
