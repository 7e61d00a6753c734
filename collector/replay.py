"""Grading recorded traffic offline, with exactly the code of the service.

All files of one call are one stream: spans of a trace may lie in several of them. There is no clock: every
trace finishes with the reason that unlimited quiet would give it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

import orjson
from rich.console import Console
from rich.progress import track

from collector.buffer.finish_policy import FinishPolicy, GroupByTraceConfig
from collector.buffer.trace_buffer import TraceBuffer
from collector.clock import ManualClock
from collector.evaluation import EvaluationStage
from collector.memory_limiter import MemoryLimiter
from collector.recorded_traffic import RecordedTraffic, find_recorded_files
from collector.run_table import RunTable, outcome_counts
from collector.runs_file import run_to_json
from collector.telemetry.metrics import Metrics
from collector.trace import FinishedTrace, GradedRun, SpanBatch
from processors.agent_run import AgentRun
from processors.criteria import CriteriaSet
from processors.evaluate import evaluate_run
from processors.evaluation_result import Outcome, Severity
from processors.json_value import JsonObject
from processors.problem import Problem, ProblemsFound

_NO_LIMIT = 1 << 62


class Format(Enum):
    """How results are printed."""

    JSON = "json"
    TABLE = "table"
    JUNIT = "junit"


@dataclass(slots=True)
class ReplaySummary:
    """What was read and how it ended.

    `failed` counts evaluations that failed or errored, advisory ones left out; `graded` those with a
    verdict. `warnings` name spans that were left out.
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
) -> ReplaySummary:
    """Grade the traffic in `paths` and print every agent run, traces in order of first arrival.

    Raises:
        ProblemsFound: something could not be read; nothing was printed.
    """
    files, problems = find_recorded_files(paths)
    traffic = RecordedTraffic()
    summary = ReplaySummary()
    stream = _Stream()
    for file in track(files, "Reading", console=progress, transient=True) if progress else files:
        for item in traffic.read(file):
            if isinstance(item, AgentRun):
                summary.runs += 1
                stream.add_run(item)
            else:
                summary.spans += item.accepted
                stream.add_spans([SpanBatch(trace_id, spans) for trace_id, spans in item.traces.items()])
    problems += traffic.problems
    if problems:
        raise ProblemsFound(problems)
    summary.warnings = traffic.warnings

    graded = _counted(stream.grade(criteria, progress), summary)
    _PRINTERS[output_format](graded, output)
    return summary


class _Stream:
    """The traffic of one call: spans in a real trace buffer, runs beside it, in order of first arrival."""

    def __init__(self) -> None:
        self._clock = ManualClock()
        self._metrics = Metrics()
        config = GroupByTraceConfig(max_spans_per_trace=_NO_LIMIT, max_bytes_per_trace=_NO_LIMIT)
        self._buffer = TraceBuffer(
            config=config,
            policy=FinishPolicy(config),
            limiter=MemoryLimiter(_NO_LIMIT),
            metrics=self._metrics,
            clock=self._clock,
        )
        self._runs: dict[bytes, list[AgentRun]] = {}
        self._order: dict[bytes, None] = {}

    def add_spans(self, batches: Sequence[SpanBatch]) -> None:
        self._order.update(dict.fromkeys(batch.trace_id for batch in batches))
        self._buffer.admit(batches)

    def add_run(self, run: AgentRun) -> None:
        self._order.setdefault(run.trace_id)
        self._runs.setdefault(run.trace_id, []).append(run)

    def grade(self, criteria: CriteriaSet, progress: Console | None) -> Iterator[GradedRun]:
        finished: dict[bytes, FinishedTrace] = {trace.trace_id: trace for trace in self._buffer.settle()}
        stage = EvaluationStage(
            criteria=lambda: criteria, metrics=self._metrics, clock=self._clock, instance="replay"
        )
        trace_ids = list(self._order)
        for trace_id in (
            track(trace_ids, "Grading", console=progress, transient=True) if progress else trace_ids
        ):
            trace = finished.pop(trace_id, None)
            if trace is not None:
                yield from stage.grade(trace).runs
            for run in self._runs.get(trace_id, ()):
                yield GradedRun(
                    run=run, results=evaluate_run(run, criteria.evaluations_for(run.agent.name, run.tenant))
                )


def _counted(graded: Iterable[GradedRun], summary: ReplaySummary) -> Iterator[GradedRun]:
    for run in graded:
        for result in run.results:
            if result.outcome in (Outcome.PASS, Outcome.FAIL):
                summary.graded += 1
            if result.outcome in (Outcome.FAIL, Outcome.ERROR) and result.severity is not Severity.ADVISORY:
                summary.failed += 1
        yield run


def _print_json(graded: Iterable[GradedRun], output: TextIO) -> None:
    for run in graded:
        output.write(orjson.dumps(run_to_json(run), option=orjson.OPT_APPEND_NEWLINE).decode())


def _print_table(graded: Iterable[GradedRun], output: TextIO) -> None:
    console = Console(file=output)
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
            if result.outcome is Outcome.FAIL and result.severity is not Severity.ADVISORY:
                ElementTree.SubElement(case, "failure", message=explanation, type=result.evaluator)
            elif result.outcome is Outcome.FAIL:
                ElementTree.SubElement(case, "system-out").text = f"advisory: {explanation}"
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
