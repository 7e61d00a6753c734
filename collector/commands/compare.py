"""Grading one recording by two sets of criteria, and printing which verdicts differ.

The traffic is read and rebuilt once; both sets see the same runs. It answers what a change of criteria would
have done to yesterday's traces.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TextIO

from rich.console import Console
from rich.text import Text

from collector.commands.output import OutputConsole, print_table, print_while_read, shortened
from collector.recordings import Change, Progress, RecordedStream, changes, no_progress, whole_trace
from processors.criteria import CriteriaSet
from processors.model import AgentRun, EvaluationResult, encode_json

_MAX_GROUPS, _MAX_ROWS, _MAX_CAUSE = 10_000, 50, 80
_STYLES = {"pass": "green", "fail": "bold red", "error": "bold magenta", "not_evaluated": "yellow"}


def compare(
    stream: RecordedStream,
    old: CriteriaSet,
    new: CriteriaSet,
    *,
    prints_json: bool,
    output: TextIO,
    progress: Progress = no_progress,
) -> int:
    """Grade the traffic in `stream` by both sets and print every change, traces in order of first arrival.

    Results are paired by run, name and call. As JSON a change is one object a line; else each flip and each
    different score is a line, followed by totals. Returns the number of flips of evaluations that are not
    advisory, muted or in shadow in both sets.
    """
    counts: Counter[str] = Counter()

    def pairs() -> Iterator[Change]:
        for _, of_trace in groupby(stream.grade(old, progress), key=lambda graded: graded.run.trace_id):
            by_old = {_key(graded.run): graded for graded in of_trace}
            counts["runs"] += len(by_old)
            runs = whole_trace([graded.run for graded in by_old.values()]).runs
            for graded in stream.evaluate_trace(runs, new):
                before = by_old.pop(_key(graded.run), None)
                yield from changes(graded.run, () if before is None else before.results, graded.results)
            for before in by_old.values():  # what stood for the trace and does no more
                yield from changes(before.run, before.results, ())

    return print_changes(pairs(), counts, print_json if prints_json else print_each, output)


def _key(run: AgentRun) -> object:
    return run.agent.name if run.stands_for_trace else id(run)


def print_changes(
    pairs: Iterator[Change],
    counts: Counter[str],
    print_them: Callable[[Iterator[Change], Console], object],
    output: TextIO,
) -> int:
    """Print what differs, and add to the `counts` of changes by their kind; the number of decisive ones."""

    def differences() -> Iterator[Change]:
        for change in pairs:
            counts[change.kind] += 1
            counts["decisive"] += change.is_decisive
            if change.kind == "flip" and change.old is not None and change.new is not None:
                counts[f"{change.old.outcome} → {change.new.outcome}"] += 1
            if change.kind:
                yield change

    def write(differing: Iterator[Change]) -> None:
        console = OutputConsole(file=output)
        print_them(differing, console)
        if print_them is not print_json:
            console.print(_totals(counts), style="bold", highlight=False)

    print_while_read(differences(), write)
    return counts["decisive"]


def print_json(differing: Iterator[Change], console: Console) -> None:
    """Print each change as an object on a line."""
    for change in differing:
        console.file.write(encode_json(change.to_json()).decode() + "\n")


def print_each(differing: Iterator[Change], console: Console) -> None:
    """Print each flip and each different score, and how often results were added and removed."""
    one_sided: Counter[tuple[str, str]] = Counter()
    for change in differing:
        result = change.any_result
        if change.old is None or change.new is None:
            one_sided[f"{change.kind}: {result.name}", result.outcome] += 1
            continue
        line = Text(f"trace {change.trace_id}  {change.agent}  {result.name}  ")
        line.append_text(_shown(change.old)).append(" → ").append_text(_shown(change.new))
        console.print(line)
    for (evaluation, outcome), count in one_sided.items():
        console.print(Text(f"{evaluation}  {count} {outcome}", style="dim"))


def print_by_cause(differing: Iterator[Change], console: Console) -> None:
    """Print how often a verdict of an evaluation of an agent changes for the same cause, with a trace.

    Results that only the old criteria gave, and scores that differ without another outcome, are not listed.
    """
    groups: dict[tuple[str, ...], tuple[int, str]] = {}
    for change in differing:
        if change.new is not None and change.kind != "score":
            old = "no result" if change.old is None else change.old.outcome.value
            key = (change.agent, change.new.name, f"{old} → {change.new.outcome}", change.cause)
            if key in groups or len(groups) < _MAX_GROUPS:
                count, trace_id = groups.get(key, (0, change.trace_id))
                groups[key] = count + 1, trace_id
    largest = sorted(groups.items(), key=lambda item: (-item[1][0], item[0]))
    rows = [
        (str(count), *(shortened(text, _MAX_CAUSE) for text in key), trace_id)
        for key, (count, trace_id) in largest[:_MAX_ROWS]
    ]
    if rows:
        heading = ("runs", "agent", "evaluation", "change", "cause", "such as trace")
        print_table(heading, rows, file=console.file)
    if len(largest) > _MAX_ROWS:
        console.print(f"and {len(largest) - _MAX_ROWS} rarer changes", highlight=False)


def _totals(counts: Counter[str]) -> str:
    directions = ", ".join(f"{count} {kind}" for kind, count in counts.items() if " → " in kind)
    parts = [f"{counts['flip']} flips" + (f" ({directions})" if directions else "")]
    if undecisive := counts["flip"] - counts["decisive"]:
        parts.append(f"{undecisive} of them advisory, muted or in shadow")
    parts += [f"{counts['score']} with a different score", f"{counts['added']} added"]
    parts += [f"{counts['removed']} removed", f"{counts['']} the same"]
    return f"{counts['runs']} agent runs: {', '.join(parts)}"


def _shown(result: EvaluationResult) -> Text:
    score = "" if result.score is None else f" {result.score:.2f}"
    reason = "" if result.reason is None else f" ({result.reason})"
    note = f" ({result.exemption})" if result.exemption else ""
    return Text(f"{result.outcome}{score}{reason}{note}", style=_STYLES[result.outcome.value])
