"""Grading recorded traffic offline, with exactly the code of the service, and printing what was found.

All files of one call are one stream (`collector.recordings.recorded_stream`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

from rich.console import Console

from collector.commands.output_console import OutputConsole
from collector.commands.run_table import RunTable, outcome_counts
from collector.commands.trace_printout import print_explanation
from collector.recordings.recorded_stream import RecordedStream
from collector.trace import FinishedTrace
from collector.workers.offline import OfflineWorkers
from processors.annotation.run_line import format_run, run_to_json
from processors.criteria.agent_criteria import CriteriaSet
from processors.documents.problem import Problem, ProblemsFound
from processors.frameworks.dialect import Dialect
from processors.model.evaluation_result import EvaluationResult, Outcome, Stage
from processors.model.graded_run import GradedRun
from processors.model.json_value import JsonObject
from processors.reconstruction.reconstruct import span_reader
from processors.reconstruction.trace_explanation import explain_trace


class Format(Enum):
    """How results are printed."""

    JSON = "json"
    TABLE = "table"
    JUNIT = "junit"


@dataclass(slots=True)
class ReplaySummary:
    """What was read and how it ended.

    `failed` counts evaluations that failed or errored, without those in shadow, muted or advisory; `graded`
    those with a verdict, without those in shadow. `warnings` name spans that were left out.
    """

    spans: int = 0
    runs: int = 0
    graded: int = 0
    failed: int = 0
    warnings: list[Problem] = field(default_factory=list)


def replay(
    paths: Sequence[Path],
    criteria: CriteriaSet,
    *,
    output_format: Format,
    output: TextIO,
    progress: Console | None = None,
    unix_nano: int = 0,
    dialects: Sequence[Dialect] = (),
    explanation: Console | None = None,
    workers: OfflineWorkers | None = None,
) -> ReplaySummary:
    """Grade the traffic in `paths` and print every agent run, traces in order of first arrival.

    Args:
        paths: Files and folders.
        criteria: What runs are graded by.
        output_format: How runs are printed.
        output: Where they are printed.
        progress: Shows how far reading and grading are.
        unix_nano: The time of grading, by which mutes are in force.
        dialects: Telemetry conventions of the user's own.
        explanation: Shows how the spans of each trace were understood, before its runs.
        workers: What runs custom evaluators.

    Raises:
        ProblemsFound: something could not be read; nothing was printed.
    """
    stream = RecordedStream(unix_nano=unix_nano, dialects=dialects, workers=workers)
    problems = stream.read(paths, progress)
    if problems:
        raise ProblemsFound(problems)
    summary = ReplaySummary(spans=stream.spans, runs=stream.runs, warnings=stream.warnings)

    reader = span_reader(dialects)

    def explain(trace: FinishedTrace) -> None:
        if explanation is not None:
            print_explanation(explanation, trace.trace_id, explain_trace(trace.spans, reader))

    graded = _counted(stream.grade(criteria, progress, explain), summary)
    _PRINTERS[output_format](graded, output)
    return summary


def _counted(graded: Iterable[GradedRun], summary: ReplaySummary) -> Iterator[GradedRun]:
    for run in graded:
        for result in run.results:
            if result.outcome in (Outcome.PASS, Outcome.FAIL) and result.stage is Stage.LIVE:
                summary.graded += 1
            if result.outcome in (Outcome.FAIL, Outcome.ERROR) and result.counts:
                summary.failed += 1
        yield run


def _print_json(graded: Iterable[GradedRun], output: TextIO) -> None:
    for run in graded:
        output.write(format_run(run).decode() + "\n")


def _print_table(graded: Iterable[GradedRun], output: TextIO) -> None:
    console = OutputConsole(file=output)
    table = RunTable(console)
    lines: list[JsonObject] = []
    for run in graded:
        line = run_to_json(run)
        table.print(line)
        lines.append({"evaluations": line["evaluations"]})
    if lines:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcome_counts(lines).items() if count)
        console.print(
            f"{len(lines)} agent runs, evaluations: {counts or 'none'}", style="bold", highlight=False
        )
    else:
        console.print("No agent run was found in this traffic.", highlight=False)


def _print_junit(graded: Iterable[GradedRun], output: TextIO) -> None:
    suites: dict[str, ElementTree.Element] = {}
    root = ElementTree.Element("testsuites", name="tracegrade")
    for run in graded:
        agent = run.run.agent.name
        suite = suites.get(agent)
        if suite is None:
            suite = suites[agent] = ElementTree.SubElement(root, "testsuite", name=_xml_text(agent))
        for result in run.results:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=_xml_text(agent),
                name=_xml_text(f"{result.name} [{run.run.trace_id.hex()}]"),
            )
            explanation = _xml_text(result.explanation)
            if result.outcome is Outcome.FAIL and result.counts:
                ElementTree.SubElement(case, "failure", message=explanation, type=result.evaluator)
            elif result.outcome in (Outcome.FAIL, Outcome.ERROR) and not result.counts:
                note = _xml_text(f"{_exemption(result)}: {result.explanation}")
                ElementTree.SubElement(case, "system-out").text = note
            elif result.outcome is Outcome.ERROR:
                ElementTree.SubElement(case, "error", message=explanation, type=result.error_type or "error")
            elif result.outcome is Outcome.NOT_EVALUATED:
                reason = result.reason.value if result.reason else ""
                ElementTree.SubElement(
                    case, "skipped", message=f"{reason}: {explanation}" if explanation else reason
                )
    for element in (root, *suites.values()):
        element.set("tests", str(len(element.findall(".//testcase"))))
        element.set("failures", str(len(element.findall(".//failure"))))
        element.set("errors", str(len(element.findall(".//error"))))
        element.set("skipped", str(len(element.findall(".//skipped"))))
    ElementTree.indent(root)
    output.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    output.write(ElementTree.tostring(root, encoding="unicode"))
    output.write("\n")


_PRINTERS: dict[Format, Callable[[Iterable[GradedRun], TextIO], None]] = {
    Format.JSON: _print_json,
    Format.TABLE: _print_table,
    Format.JUNIT: _print_junit,
}


def _exemption(result: EvaluationResult) -> str:
    """Why a failure decides nothing."""
    if result.stage is Stage.SHADOW:
        return "shadow"
    return "muted" if result.muted_until_unix_nano else "advisory"


def _xml_text(text: str) -> str:
    """`text` without the characters that XML cannot hold."""
    return "".join(
        character
        if character in "\t\n\r"
        or " " <= character <= "\ud7ff"
        or "\ue000" <= character <= "\ufffd"
        or character > "\uffff"
        else "\ufffd"
        for character in text
    )
