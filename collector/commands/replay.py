"""The command `tracegrade replay`: grades recorded traffic offline, with exactly the code of the service.

All files of one call are one stream (`collector.recordings.recorded_stream`).
"""

import re
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO, TypeAlias
from xml.etree import ElementTree

from rich.console import Console
from rich.text import Text

from collector.commands.arguments import (
    CRITERIA_TO_GRADE_BY,
    add_argument,
    add_config,
    add_flag,
    path_text,
    share,
    traffic_argument,
    whole_number,
)
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext, discard_stdout, unusable
from collector.commands.compare import compare
from collector.commands.offline import OfflineCriteria
from collector.commands.output import (
    OutputConsole,
    print_table,
    print_warnings,
    print_while_read,
    printable,
    progress_bar,
)
from collector.commands.pass_rates import (
    SIGNIFICANCE,
    Failure,
    JudgedRate,
    PassRates,
    markdown_summary,
    rate_table,
    summary_line,
)
from collector.commands.processes import MAX_PROCESSES, in_processes
from collector.framework_pages import content_settings
from collector.printing import RunPrintout, count_outcomes, counts_text
from collector.recordings import Progress, RecordedStream, no_progress
from collector.trace import FinishedTrace
from collector.workers.offline import OfflineWorkers
from processors.annotation import format_run
from processors.criteria import CriteriaSet
from processors.model import EvaluationResult, GradedRun, NotEvaluatedReason, Outcome, Stage
from processors.reconstruction import SpanExplanation, explain_trace, span_reader
from processors.records import trace_with_records

_TRACES_AT_A_TIME = 50
"""Traces that a process grades before it returns their text."""
_MAX_SHOWN, _MAX_FAILURES, _MAX_RUNS_OF_CASE = 200, 20, 1_000
_XML_COUNTS = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
_JunitNote: TypeAlias = tuple[str, Mapping[str, str], str]
"""The child of a test case: its tag, attributes and text."""
_JunitCase: TypeAlias = tuple[str, str, _JunitNote | None]
"""The agent and the name of a test case, and what is to note of it."""
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class ReplaySummary:
    """What a replay came to, or a part of it that a process graded.

    `failed` counts evaluations that failed or errored, without those in shadow, muted or advisory; `graded`
    those with a verdict, without those in shadow.
    """

    rates: PassRates | None = None
    """Pass rates, where they are counted."""
    runs: int = 0
    graded: int = 0
    failed: int = 0
    uncaptured: set[str] = field(default_factory=set)
    """Dialects of runs with an evaluation that needs content which was not captured."""
    failures: list[Failure] = field(default_factory=list)
    """The first of `failed`."""
    counts: Counter[str] = field(default_factory=Counter)
    """Outcomes, where these are printed."""
    cases: list[_JunitCase] = field(default_factory=list)
    """Test cases, where these are printed."""

    def count(self, run: GradedRun) -> None:
        """Count a run."""
        self.runs += 1
        if self.rates is not None:
            self.rates.add(run)
        for result in run.results:
            if result.is_verdict and result.stage is Stage.LIVE:
                self.graded += 1
            if result.is_failure and result.counts:
                self.failed += 1
                if len(self.failures) < _MAX_FAILURES:
                    agent, trace_id = run.run.agent.name, run.run.trace_id
                    self.failures.append(Failure(agent, result.name, trace_id, result.explanation))
            if result.reason is NotEvaluatedReason.CONTENT_NOT_CAPTURED:
                self.uncaptured.add(run.run.dialect)

    def add(self, part: "ReplaySummary") -> None:
        """Count what `part` counted, which comes after all that was counted before."""
        self.runs += part.runs
        self.graded += part.graded
        self.failed += part.failed
        self.uncaptured |= part.uncaptured
        self.failures += part.failures[: _MAX_FAILURES - len(self.failures)]
        self.counts.update(part.counts)
        self.cases += part.cases
        if self.rates is not None and part.rates is not None:
            self.rates.add_all(part.rates)


class _Printer:
    """How runs are printed: a text for each, and what stands below them; both are empty here."""

    def __init__(self, output: TextIO | None = None) -> None:
        pass

    def text(self, run: GradedRun, summary: ReplaySummary) -> str:
        """The text of a run; what is to be printed below all of them is noted in `summary`."""
        return ""

    def ending(self, summary: ReplaySummary) -> str:
        """What follows the last run."""
        return ""


def replay(
    stream: RecordedStream,
    criteria: CriteriaSet,
    *,
    output_format: str,
    output: TextIO,
    progress: Progress = no_progress,
    before_trace: Callable[[FinishedTrace], None] | None = None,
    rates: PassRates | None = None,
    jobs: int = 1,
) -> ReplaySummary:
    """Grade the traffic in `stream` and print every agent run to `output`, traces in order of first arrival.

    `before_trace` is called with each trace before its runs are printed; then `jobs` must be 1. With `rates`,
    pass rates are counted; as `junit` and `markdown` these are printed in place of the runs. `jobs` processes
    grade and print, unless that depends on the order of traces or on workers.
    """
    summary = ReplaySummary(rates)
    printer = (
        _Printer() if rates is not None and output_format == "junit" else _PRINTERS[output_format](output)
    )
    if jobs > 1 and not criteria.looks_at_conversations and stream.is_apart:
        texts = _texts_of_processes(stream, criteria, printer, summary, progress, jobs)
    else:
        texts = _texts(stream.grade(criteria, progress, before_trace), printer, summary)

    def write(texts: Iterable[str]) -> None:
        for text in texts:
            output.write(text)
        output.write(printer.ending(summary))

    print_while_read(texts, write)
    return summary


def _texts(graded: Iterable[GradedRun], printer: _Printer, summary: ReplaySummary) -> Iterator[str]:
    for run in graded:
        summary.count(run)
        yield printer.text(run, summary)


def _texts_of_processes(
    stream: RecordedStream,
    criteria: CriteriaSet,
    printer: _Printer,
    summary: ReplaySummary,
    progress: Progress,
    jobs: int,
) -> Iterator[str]:
    """The texts of a few traces each, in order, as processes with a copy of all that was read make them."""

    def print_part(trace_ids: Sequence[bytes]) -> tuple[str, ReplaySummary, int]:
        part, runs = ReplaySummary(summary.rates and summary.rates.anew()), stream.runs
        texts = _texts(stream.grade(criteria, among=trace_ids), printer, part)
        return "".join(texts), part, stream.runs - runs

    stream.settle()
    ids = stream.trace_ids
    parts = [ids[start : start + _TRACES_AT_A_TIME] for start in range(0, len(ids), _TRACES_AT_A_TIME)]
    for text, part, runs in in_processes(lambda: print_part, progress(parts, "Grading"), jobs, "fork"):
        summary.add(part)
        stream.runs += runs
        yield text


class _JsonLines(_Printer):
    def text(self, run: GradedRun, summary: ReplaySummary) -> str:
        return format_run(run).decode() + "\n"


class _Table(_Printer):
    def __init__(self, output: TextIO) -> None:
        self._console = OutputConsole(file=output)
        self._printout = RunPrintout.for_console(self._console)

    def text(self, run: GradedRun, summary: ReplaySummary) -> str:
        summary.counts.update(count_outcomes(run))
        if self._console.is_terminal:
            return self._printed(self._printout.block(run))
        return self._printout.plain_block(run)

    def ending(self, summary: ReplaySummary) -> str:
        if not summary.runs:
            return self._printed(Text("No agent run in this traffic."))
        counts = counts_text(summary.counts) or "none"
        return self._printed(Text(f"{summary.runs} agent runs, evaluations: {counts}", style="bold"))

    def _printed(self, text: Text) -> str:
        with self._console.capture() as capture:
            self._console.print(text)
        return capture.get()


class _Junit(_Printer):
    def text(self, run: GradedRun, summary: ReplaySummary) -> str:
        agent, trace_id = run.run.agent.name, run.run.trace_id.hex()
        summary.cases += [
            (agent, f"{result.name} [{trace_id}]", _junit_note(result)) for result in run.results
        ]
        return ""

    def ending(self, summary: ReplaySummary) -> str:
        return _junit_document(summary.cases)


def _junit_note(result: EvaluationResult) -> _JunitNote | None:
    explanation = result.explanation
    if result.is_failure and not result.counts:
        return "system-out", {}, f"{result.exemption}: {explanation}"
    if result.outcome is Outcome.FAIL:
        return "failure", {"message": explanation, "type": result.evaluator}, ""
    if result.outcome is Outcome.ERROR:
        return "error", {"message": explanation, "type": result.error_type or "error"}, ""
    if result.outcome is Outcome.NOT_EVALUATED:
        return "skipped", {"message": ": ".join(filter(None, (result.reason, explanation)))}, ""
    return None


def _print_rates(rates: PassRates, summary: ReplaySummary, output_format: str) -> bool:
    """Print pass rates; whether one has a problem. Where run lines are printed they are on standard error."""
    judged, has_baseline = rates.judged(), rates.has_baseline
    if output_format == "markdown":
        print(
            *markdown_summary(
                judged,
                summary.failures,
                runs=rates.runs,
                failed=summary.failed,
                has_baseline=has_baseline,
            ),
            sep="\n",
        )
    elif output_format == "junit":
        sys.stdout.write(_junit_document(map(_rate_case, judged)))
    else:
        file = sys.stdout if output_format == "table" else sys.stderr
        print_table(*rate_table(judged, has_baseline=has_baseline), file=file)
        print(summary_line(judged, rates.runs), file=file)
    return any(rate.problem for rate in judged)


def _rate_case(rate: JudgedRate) -> _JunitCase:
    text = ", ".join(
        filter(None, (f"{rate.now} passed", rate.before and f"before: {rate.before}", rate.remark))
    )
    if rate.problem:
        return (
            rate.agent,
            rate.name,
            ("failure", {"message": f"{rate.problem}: {text}", "type": "pass rate"}, ""),
        )
    return rate.agent, rate.name, ("system-out", {}, text)


def _junit_document(cases: Iterable[_JunitCase]) -> str:
    """Test cases, each of an agent, with a name and a child element, as JUnit has it."""
    suites: dict[str, ElementTree.Element] = {}
    root = ElementTree.Element("testsuites", name="tracegrade")
    for agent, name, note in cases:
        agent_name = _xml_text(agent)
        suite = suites.get(agent)
        if suite is None:
            suite = suites[agent] = ElementTree.SubElement(root, "testsuite", name=agent_name)
        case = ElementTree.SubElement(suite, "testcase", classname=agent_name, name=_xml_text(name))
        if note is not None:
            tag, attributes, text = note
            shown = {key: _xml_text(value) for key, value in attributes.items()}
            ElementTree.SubElement(case, tag, shown).text = _xml_text(text) or None
    for element in (root, *suites.values()):
        for attribute, tag in _XML_COUNTS.items():
            element.set(attribute, str(len(element.findall(f".//{tag}"))))
    ElementTree.indent(root)
    document = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{document}\n'


_PRINTERS: Mapping[str, Callable[[TextIO], _Printer]] = {
    "json": _JsonLines,
    "table": _Table,
    "junit": _Junit,
    "markdown": _Printer,
}
"""By the word of `--format`."""


def _xml_text(text: str) -> str:
    """`text` without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("\ufffd", text)


def _print_explanation(console: Console, trace_id: bytes, spans: Sequence[SpanExplanation]) -> None:
    """Print a line for each span of a trace: its name, which dialects read it as what, and what it became."""
    console.print(Text(f"trace {trace_id.hex()}", style="bold"))
    for span in spans:
        line = Text("  " * (span.depth + 1))
        line.append(
            printable(span.name[:_MAX_SHOWN]) or "(no name)", style="dim" if span.is_left_out else "cyan"
        )
        line.append(f"  {span.span_id.hex()}", style="dim")
        if span.role is not None:
            line.append(f"  {', '.join(span.dialects)}: {span.role.name.lower()}")
        line.append("  left out: " if span.is_left_out else "  ", style="yellow")
        line.append(printable(span.meaning[:_MAX_SHOWN]))
        console.print(line)


def _print_settings(console: Console, dialects: Iterable[str]) -> None:
    """Print by which settings the frameworks that these dialects read send content."""
    for dialect in sorted(dialects):
        settings = content_settings().get(dialect, ())
        if settings:
            console.print(Text(f"content was not captured ({dialect}); it is sent with:", style="yellow"))
        for frameworks, setting in settings:
            console.print(Text("  ").append(f"{frameworks}: ", style="bold").append(setting))


def _add_arguments(parser: ArgumentParser) -> None:
    traffic = (
        "*.binpb, *.otlp.json, *.jsonl, *.runs.jsonl, each also with .gz or .zst, a folder of them, or - "
        "(stdin); a file given by itself may have any name, or be an answer of Tempo's or Jaeger's API"
    )
    two_sets = "grade by two criteria files or folders, and print only the differences"
    add_argument(parser, "paths", traffic_argument, "PATH", traffic, nargs="+")
    add_argument(parser, "--criteria", path_text, "FILE_OR_DIR", CRITERIA_TO_GRADE_BY)
    add_argument(parser, "--compare", path_text, ("OLD", "NEW"), two_sets, nargs=2)
    parser.add_argument("--format", choices=list(_PRINTERS), default="table")
    add_config(
        parser,
        "a service file: its dialects and model prices are used, and its criteria unless --criteria is given",
    )
    add_flag(
        parser,
        "--explain",
        "show which dialect read which span as what, why spans were left out, and how content that was not "
        "captured is sent (on standard error unless the format is table)",
    )
    add_flag(parser, "--require-evaluated", "exit with 1 when nothing was graded")
    jobs = (
        "number of processes that grade and print, with the same output (default: 1; it stays 1 for criteria "
        "over conversations and with custom evaluators)"
    )
    add_argument(parser, "--jobs", whole_number(1, MAX_PROCESSES), "N", jobs, default=1)
    rates = parser.add_argument_group("pass rates, which decide in place of single failures")
    least = "the least share of passes of each evaluation of each agent, such as 95%%"
    baseline = (
        "recorded traffic of before: it is a failure if the pass rate of an evaluation dropped by more than "
        f"chance (Fisher's exact test, {SIGNIFICANCE:.0%} over all evaluations); may be given more than once"
    ).replace("%", "%%")
    power = "also judge pass^K: that K runs with the same input all pass"
    add_argument(rates, "--min-pass-rate", share(may_be_all=True), "SHARE", least)
    add_argument(rates, "--baseline", traffic_argument, "PATH", baseline, action="append")
    add_argument(rates, "--pass-k", whole_number(1, _MAX_RUNS_OF_CASE), "K", power)


def _run(options: Namespace, context: CommandContext) -> int:
    if options.compare:
        for name in ("criteria", "explain", "require_evaluated", "min_pass_rate", "baseline", "pass_k"):
            if getattr(options, name):
                raise unusable(f"--compare cannot be used with --{name.replace('_', '-')}")
        if options.format not in ("json", "table"):
            raise unusable(f"--compare prints json or table, not {options.format}")
    if options.jobs > 1 and (options.compare or options.explain):
        raise unusable(f"--jobs cannot be used with --{'compare' if options.compare else 'explain'}")
    offline = OfflineCriteria.from_file(options.config, context)
    sets = [offline.load([path]) for path in options.compare or ()] or [
        offline.load([options.criteria] if options.criteria else None)
    ]
    progress = no_progress if options.explain else progress_bar()
    with OfflineWorkers(offline.evaluators) as workers:
        now = context.clock.unix_nano()
        has_gate = bool(options.min_pass_rate or options.baseline)
        rates = None
        if has_gate or options.pass_k or options.format == "markdown":
            rates = PassRates(options.min_pass_rate, options.pass_k)
        if options.baseline and rates is not None:
            before = offline.read(options.baseline, unix_nano=now, workers=workers, progress=progress)
            for graded in before.grade(sets[0], progress):
                rates.add_baseline(graded)
            print_warnings(before.warnings)
            del before  # what it holds is as large as the traffic
            if not rates.has_baseline:
                raise unusable(f"no agent runs in {', '.join(map(str, options.baseline))}")
        stream = offline.read(options.paths, unix_nano=now, workers=workers, progress=progress)
        if options.compare:
            prints_json = options.format == "json"
            flips = compare(stream, *sets, prints_json=prints_json, output=sys.stdout, progress=progress)
            has_failed = flips > 0
        else:
            console = OutputConsole(stderr=options.format != "table")
            reader = span_reader(offline.evaluation.own_dialects())

            def explain(trace: FinishedTrace) -> None:
                try:
                    spans = trace_with_records(trace.spans, trace.records, trace.trace_id, reader.read)
                    _print_explanation(console, trace.trace_id, explain_trace(spans, reader))
                except BrokenPipeError:  # grading continues: it decides the exit code
                    discard_stdout()

            summary = replay(
                stream,
                *sets,
                output_format=options.format,
                output=sys.stdout,
                progress=progress,
                before_trace=explain if options.explain else None,
                rates=rates,
                jobs=options.jobs,
            )
            has_problem = rates is not None and _print_rates(rates, summary, options.format)
            if options.explain:
                _print_settings(console, summary.uncaptured)
            has_failed = has_problem if has_gate else bool(summary.failed or has_problem)
            has_failed |= options.require_evaluated and not summary.graded
    print_warnings(stream.warnings)
    if not stream.spans and not stream.runs:
        only = ", only log records" if stream.records else ""
        raise unusable(f"no spans and no agent runs in {', '.join(map(str, options.paths))}{only}")
    return EXIT_FAILED if has_failed else EXIT_OK


REPLAY = Command(
    _add_arguments,
    _run,
    "Grade recorded traffic with exactly the code of the service. Exit code 0: every evaluation passed or "
    "was not evaluated; 1: one failed or errored; 2: unusable input or criteria, or nothing to read. With "
    "--min-pass-rate or --baseline, 1: a pass rate is too low or dropped by more than chance. With "
    "--compare, 0: no outcome differs; 1: one does, of an evaluation that both sets gave and that is not "
    "advisory, muted or in shadow in both; 2: as above.",
)
