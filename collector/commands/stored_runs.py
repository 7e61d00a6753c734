"""The commands `agents`, `runs` and `show`: queries over a run store, in a file or of a running service."""

import csv
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice, product
from typing import Any

from collector.commands.arguments import add_argument, add_flag, whole_number
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, unusable
from collector.commands.output import OutputConsole, moment_text, print_table, shortened
from collector.commands.run_source import (
    RunSource,
    StoredRun,
    add_filters,
    add_source,
    check_names,
    filters_of,
    with_source,
)
from collector.page import ComparedPart, compared_runs
from collector.printing import RunPrintout
from processors.annotation import graded_run_from_json
from processors.model import EvaluationResult, JsonObject, NotEvaluatedReason, encode_json

_RUNS_PER_TABLE = 500
"""As many rows share the widths of their columns."""
_MAX_NAME, _MAX_REASON, _MAX_SIDE = 48, 72, 60
_COMPARED = 2
_IDS = ("trace_id", "span_id", "agent")
_UNKNOWN, _UNCAPTURED = "unknown", "not captured"
"""Characters in a table."""
_MAX_RUNS_OF_ID, _MAX_TRACES = 200, 5
"""Runs read to resolve the beginning of a trace id, and trace ids listed where it has several."""
_CSV_COLUMNS = (
    "graded", "outcome", "agent", "version", "service", "tenant", "conversation", "finish_reason", "calls",
    "failed_calls", "seconds", "failed", "evaluations", "not_evaluated", "reason", "trace_id", "span_id",
)  # fmt: skip


def _agents(options: Namespace, source: RunSource) -> int:
    agents: Sequence[Any] = source.agents()
    if options.json:
        for agent in agents:
            print(encode_json(agent).decode())
        return EXIT_OK
    rows = []
    for agent in agents:
        outcomes = agent["outcomes"]
        decided = sum(outcomes.get(word, 0) for word in ("pass", "fail", "error"))
        passed = f"{100 * outcomes.get('pass', 0) / decided:.0f} %" if decided else ""
        missing = ", ".join(f"{reason} {count}" for reason, count in agent["missing"].items())
        name, runs = shortened(agent["name"], _MAX_NAME), str(sum(outcomes.values()))
        rows.append((name, moment_text(agent["last_milliseconds"]), runs, passed, missing))
    if not rows:
        print("the store holds no runs", file=sys.stderr)
        return EXIT_OK
    print_table(("agent", "last run", "runs", "passed", "missing"), rows)
    return EXIT_OK


def _runs(options: Namespace, source: RunSource) -> int:
    filters = filters_of(options)
    matching = _matching(options, source)
    shown = matching if options.all else islice(matching, options.limit)
    printed = _PRINTERS["json" if options.json else "csv" if options.csv else "table"](shown, options)
    if not printed:
        check_names(filters, source)
        print("no stored run matches", file=sys.stderr)
    elif next(matching, None) is not None:
        print(f"more runs match than these {printed}: see --limit and --all", file=sys.stderr)
    return EXIT_OK


def _matching(options: Namespace, source: RunSource) -> Iterator[StoredRun]:
    """The runs that match, with their lines if these decide or are printed."""
    is_for_all = bool(options.json or options.evaluation)

    def needs_line(run: Mapping[str, Any]) -> bool:
        return is_for_all or bool(run["failed"] or run["not_evaluated"])

    for run, line in source.runs(filters_of(options), needs_line):
        if line is None and needs_line(run):  # removed meanwhile
            continue
        if options.reason is None or options.reason in _reasons(line, options.evaluation):
            yield run, line


def _reasons(line: JsonObject | None, evaluation: str | None) -> Iterator[object]:
    """Why evaluations of a run, or one of them, gave no verdict."""
    results = None if line is None else line.get("evaluations")
    for result in results if isinstance(results, list) else ():
        if isinstance(result, dict) and evaluation in (None, result.get("name")):
            yield result.get("reason")


def _print_json(runs: Iterator[StoredRun], options: Namespace) -> int:
    printed = 0
    for _, line in runs:
        printed += 1
        assert line is not None  # it was read for this
        print(encode_json(line).decode())
    return printed


def _print_csv(runs: Iterator[StoredRun], options: Namespace) -> int:
    printed = 0
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    for run, line in runs:
        printed += 1
        fields = {
            **run,
            "graded": moment_text(run["milliseconds"]),
            "failed": _failed(run),
            "reason": _reason(line, options),
        }
        writer.writerow([_cell(fields[column]) for column in _CSV_COLUMNS])
    return printed


def _cell(value: object) -> object:
    """A text that spreadsheets take for no formula: what agents send is in it."""
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
        else value
    )


def _print_table(runs: Iterator[StoredRun], options: Namespace) -> int:
    printed = 0
    while some := list(islice(runs, _RUNS_PER_TABLE)):
        rows = [
            (
                moment_text(run["milliseconds"]),
                run["outcome"],
                shortened(" ".join(filter(None, (run["agent"], run["version"]))), _MAX_NAME),
                shortened(_failed(run), _MAX_NAME),
                str(run["calls"]),
                shortened(_reason(line, options), _MAX_REASON),
                run["trace_id"],
            )
            for run, line in some
        ]
        names = ("graded", "outcome", "agent", "failed checks", "calls", "reason", "trace")
        print_table(names, rows, has_heading=not printed)
        printed += len(rows)
    return printed


_PRINTERS = {"json": _print_json, "csv": _print_csv, "table": _print_table}


def _failed(run: Mapping[str, Any]) -> str:
    """The checks that failed, those that alert no one marked."""
    exemptions = run.get("exemptions", {})
    return ", ".join(
        [f"{name} ({exemptions[name]})" if name in exemptions else name for name in run["failed"]]
    )


def _reason(line: JsonObject | None, options: Namespace) -> str:
    """Why a run, or the evaluation of `options`, failed or was not evaluated; empty if neither holds."""
    if line is None:
        return ""
    graded = graded_run_from_json(line, "")
    results = [
        result
        for result in graded.results
        if options.evaluation in (None, result.name) and options.reason in (None, result.reason)
    ]
    is_chosen = bool(options.evaluation or options.reason)
    reported = [result for result in results if _is_reported(result, is_chosen)]
    first = min(reported, key=_unimportance, default=None)
    if first is None:
        return ""
    note = f" ({first.exemption})" if first.exemption else ""
    why = ": ".join(filter(None, (first.reason, first.explanation)))
    return why + note if options.evaluation else f"{first.name}{note}: {why}"


def _is_reported(result: EvaluationResult, is_chosen: bool) -> bool:
    """Whether it is a failure, or misses something; what does not apply only if it was chosen."""
    is_inapplicable = result.reason is NotEvaluatedReason.NOT_APPLICABLE
    return result.is_failure or (result.reason is not None and (is_chosen or not is_inapplicable))


def _unimportance(result: EvaluationResult) -> tuple[bool, bool]:
    """Failures that count come first, then those that do not, then what was not evaluated."""
    return not result.is_failure, not result.counts


def _show(options: Namespace, source: RunSource) -> int:
    if len(options.trace_id) > _COMPARED:
        raise unusable(f"expected one trace id, or two to compare, got {len(options.trace_id)}")
    of_traces = [source.lines(_trace_id(trace_id.lower(), source)) for trace_id in options.trace_id]
    for trace_id, lines in zip(options.trace_id, of_traces, strict=True):
        if not lines:
            print(f"no stored run belongs to trace {trace_id}", file=sys.stderr)
            return EXIT_FAILED
    if len(of_traces) > 1:
        return _show_two(of_traces, options)
    (lines,) = of_traces
    console = OutputConsole()
    printout = RunPrintout.for_console(console)
    for line in lines:
        if options.json:
            print(encode_json(line).decode())
        else:
            console.print(printout.block(graded_run_from_json(line, str(line.get("trace_id")))))
    return EXIT_OK


def _show_two(of_traces: Sequence[Sequence[JsonObject]], options: Namespace) -> int:
    """Print two runs side by side: of two traces, the first ones of one agent, else the first of each."""
    left, right = next(
        (pair for pair in product(*of_traces) if _agent(pair[0]) == _agent(pair[1])),
        (of_traces[0][0], of_traces[1][0]),
    )
    compared = compared_runs(left, right)
    if options.json:
        runs: list[JsonObject] = [{key: line.get(key) for key in _IDS} for line in (left, right)]
        print(encode_json({"runs": [*runs], **asdict(compared)}).decode())
        return EXIT_OK
    rows = [(" ", "agent", _agent(left), _agent(right))]
    sections = {
        "": [*compared.facts, *compared.texts],
        "verdict ": compared.verdicts,
        "call ": compared.calls,
    }
    for prefix, parts in sections.items():
        rows += [row for part in parts for row in _compared_rows(prefix, part)]
    print_table(("", "", str(left.get("trace_id")), str(right.get("trace_id"))), rows)
    if compared.calls_left_out:
        print(f"{compared.calls_left_out} more calls are not compared", file=sys.stderr)
    return EXIT_OK


def _compared_rows(kind: str, part: ComparedPart) -> Iterator[tuple[str, str, str, str]]:
    """What two runs have under one name, and a row for each place at which that differs, all marked."""
    is_unknown = part.differs == [_UNKNOWN]
    mark = "?" if is_unknown else "≠" if part.differs else " "
    sides = [part.left, part.right]
    if part.left_number or part.right_number:
        sides = [f"call {number}" if number else None for number in (part.left_number, part.right_number)]
        if "call" in part.differs:
            sides = [part.left, part.right]
    shown = [_UNCAPTURED if is_unknown and not side else _side(side) for side in sides]
    yield mark, f"{kind}{shortened(part.name, _MAX_NAME)}", shown[0], shown[1]
    for one in part.differences:
        if one.place == part.name:  # the whole of it
            continue
        yield mark, f"  {shortened(one.place or 'explanation', _MAX_NAME)}", _side(one.left), _side(one.right)


def _side(text: str | None) -> str:
    return "none" if text is None else shortened(" ".join(text.split()), _MAX_SIDE)


def _agent(line: JsonObject) -> str:
    agent = line.get("agent")
    return str(agent.get("name") or "") if isinstance(agent, dict) else ""


def _trace_id(beginning: str, source: RunSource) -> str:
    """The one stored trace id that begins so; `beginning` itself if there is none."""
    if len(beginning) >= len("00" * 16) or not beginning:
        return beginning
    runs = islice(source.runs({"trace": beginning}, lambda run: False), _MAX_RUNS_OF_ID)
    traces = list(dict.fromkeys(run["trace_id"] for run, _ in runs))
    if len(traces) > 1:
        raise unusable(f"{beginning}: several trace ids begin with it: {', '.join(traces[:_MAX_TRACES])}")
    return traces[0] if traces else beginning


def _add_agents(parser: ArgumentParser) -> None:
    add_source(parser)
    add_flag(parser, "--json", "print JSON, an object for each agent")


def _add_runs(parser: ArgumentParser) -> None:
    add_source(parser)
    add_filters(parser)
    reasons = [reason.value for reason in NotEvaluatedReason]
    parser.add_argument(
        "--reason", choices=reasons, help="runs with an evaluation that was not evaluated for this reason"
    )
    number = parser.add_mutually_exclusive_group()
    most = "how many at most, newest first (default: %(default)s)"
    add_argument(number, "--limit", whole_number(1), "N", most, default=50)
    add_flag(number, "--all", "all that match")
    form = parser.add_mutually_exclusive_group()
    add_flag(form, "--json", "print JSON, one run line each")
    add_flag(form, "--csv", "print comma-separated values, a row each")


def _add_show(parser: ArgumentParser) -> None:
    add_source(parser)
    add_flag(parser, "--json", "print JSON: the run line of each run of the trace, or what differs")
    trace_id = "a trace id or its beginning, as `tracegrade runs` shows it; with two, their runs side by side"
    add_argument(parser, "trace_id", str, "TRACE_ID", trace_id, nargs="+")


AGENTS = Command(_add_agents, with_source(_agents))
RUNS = Command(_add_runs, with_source(_runs))
SHOW = Command(_add_show, with_source(_show))
