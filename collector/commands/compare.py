"""Grading one recording by two sets of criteria, and printing which verdicts differ.

The traffic is read and rebuilt once; both sets see the same runs. It answers what a change of criteria would
have done to yesterday's traces.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TextIO

from rich.console import Console
from rich.text import Text

from collector.commands.output import OutputConsole, print_while_read
from collector.recordings import Progress, RecordedStream, no_progress
from processors.criteria import CriteriaSet
from processors.model import AgentRun, EvaluationResult, JsonObject, encode_json

_SCORE_TOLERANCE = 1e-9
_STYLES = {"pass": "green", "fail": "bold red", "error": "bold magenta", "not_evaluated": "yellow"}


class ChangeKind(StrEnum):
    """What differs: the outcome, only the score, or whether there is a result at all."""

    FLIP = "flip"
    SCORE = "score"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Change:
    """A result that differs; `old` or `new` is None where only one set gave one for the run."""

    kind: ChangeKind
    run: AgentRun
    evaluation: str
    old: EvaluationResult | None
    new: EvaluationResult | None

    @property
    def is_decisive(self) -> bool:
        """Whether it is a flip of an evaluation whose failures may gate something."""
        sides = [side for side in (self.old, self.new) if side is not None]
        return self.kind is ChangeKind.FLIP and any(side.counts for side in sides)


@dataclass(slots=True)
class Comparison:
    """What differs: `changes` counts results by kind of change, `same` those without one, in `runs` runs.

    `decisive` counts the flips of evaluations that are not advisory, muted or in shadow in both sets.
    """

    runs: int = 0
    same: int = 0
    decisive: int = 0
    changes: Counter[ChangeKind] = field(default_factory=Counter)


def compare(
    stream: RecordedStream,
    old: CriteriaSet,
    new: CriteriaSet,
    *,
    prints_json: bool,
    output: TextIO,
    progress: Progress = no_progress,
) -> Comparison:
    """Grade the traffic in `stream` by both sets and print every change, traces in order of first arrival.

    Results are paired by run, name and call. As JSON a change is one object a line; else each flip and each
    different score is a line, followed by totals.
    """
    comparison = Comparison()

    def differences() -> Iterator[Change]:
        for graded in stream.grade(old, progress):
            run = graded.run
            results = stream.evaluate(run, new)
            comparison.runs += 1
            for change in _changes(run, graded.results, results):
                if change is None:
                    comparison.same += 1
                else:
                    comparison.changes[change.kind] += 1
                    comparison.decisive += change.is_decisive
                    yield change

    def write(changes: Iterator[Change]) -> None:
        if not prints_json:
            _print_table(changes, comparison, OutputConsole(file=output))
            return
        for change in changes:
            output.write(encode_json(_to_json(change)).decode() + "\n")

    print_while_read(differences(), write)
    return comparison


def _changes(
    run: AgentRun, old: Sequence[EvaluationResult], new: Sequence[EvaluationResult]
) -> Iterator[Change | None]:
    """For each result that either set gives its change, None for one that is the same."""
    after = {_key(result): result for result in new}
    for result in old:
        other = after.pop(_key(result), None)
        if other is None:
            yield Change(ChangeKind.REMOVED, run, result.name, result, None)
        elif result.outcome is not other.outcome:
            yield Change(ChangeKind.FLIP, run, result.name, result, other)
        elif abs((result.score or 0.0) - (other.score or 0.0)) > _SCORE_TOLERANCE:
            yield Change(ChangeKind.SCORE, run, result.name, result, other)
        else:
            yield None
    for result in after.values():
        yield Change(ChangeKind.ADDED, run, result.name, None, result)


def _key(result: EvaluationResult) -> tuple[str, bytes | None, str | None]:
    return result.name, result.tool_span_id, result.tool_call_id


def _to_json(change: Change) -> JsonObject:
    run = change.run
    return {
        "change": change.kind.value,
        "trace_id": run.trace_id.hex(),
        "span_id": None if run.span_id is None else run.span_id.hex(),
        "agent": run.agent.name,
        "evaluation": change.evaluation,
        "old": _result_to_json(change.old),
        "new": _result_to_json(change.new),
    }


def _result_to_json(result: EvaluationResult | None) -> JsonObject | None:
    if result is None:
        return None
    reason = None if result.reason is None else result.reason.value
    return {
        "evaluator": result.evaluator,
        "outcome": result.outcome.value,
        "score": result.score,
        "explanation": result.explanation,
        "reason": reason,
    }


def _print_table(changes: Iterator[Change], comparison: Comparison, console: Console) -> None:
    flips: Counter[str] = Counter()
    one_sided: Counter[tuple[ChangeKind, str, str]] = Counter()
    for change in changes:
        if change.old is None or change.new is None:
            result = change.old or change.new
            outcome = "" if result is None else result.outcome.value
            one_sided[change.kind, change.evaluation, outcome] += 1
            continue
        if change.kind is ChangeKind.FLIP:
            flips[f"{change.old.outcome} → {change.new.outcome}"] += 1
        line = Text(f"trace {change.run.trace_id.hex()}  {change.run.agent.name}  {change.evaluation}  ")
        line.append_text(_shown(change.old)).append(" → ").append_text(_shown(change.new))
        console.print(line)
    for (kind, evaluation, outcome), count in one_sided.items():
        console.print(Text(f"{kind}: {evaluation}  {count} {outcome}", style="dim"))
    counts = comparison.changes
    directions = ", ".join(f"{count} {direction}" for direction, count in flips.items())
    parts = [f"{counts[ChangeKind.FLIP]} flips" + (f" ({directions})" if directions else "")]
    if undecisive := counts[ChangeKind.FLIP] - comparison.decisive:
        parts.append(f"{undecisive} of them advisory, muted or in shadow")
    parts.append(f"{counts[ChangeKind.SCORE]} with a different score")
    parts += [f"{counts[kind]} {kind}" for kind in (ChangeKind.ADDED, ChangeKind.REMOVED)]
    console.print(
        f"{comparison.runs} agent runs: {', '.join(parts)}, {comparison.same} the same",
        style="bold",
        highlight=False,
    )


def _shown(result: EvaluationResult) -> Text:
    score = "" if result.score is None else f" {result.score:.2f}"
    reason = "" if result.reason is None else f" ({result.reason})"
    note = f" ({result.exemption})" if result.exemption else ""
    return Text(f"{result.outcome}{score}{reason}{note}", style=_STYLES[result.outcome.value])
