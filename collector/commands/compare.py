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
    """The results of one evaluation of a run; `old` or `new` is None where only one set gave one."""

    run: AgentRun
    old: EvaluationResult | None
    new: EvaluationResult | None

    @property
    def kind(self) -> ChangeKind | None:
        """What differs; None where nothing does."""
        old, new = self.old, self.new
        if old is None or new is None:
            return ChangeKind.ADDED if old is None else ChangeKind.REMOVED
        if old.outcome is not new.outcome:
            return ChangeKind.FLIP
        difference = abs((old.score or 0.0) - (new.score or 0.0))
        return ChangeKind.SCORE if difference > _SCORE_TOLERANCE else None

    @property
    def any_result(self) -> EvaluationResult:
        """One of the results, for what both have in common."""
        result = self.old or self.new
        assert result is not None
        return result

    @property
    def is_decisive(self) -> bool:
        """Whether it is a flip of an evaluation whose failures may gate something."""
        sides = (self.old, self.new)
        return self.kind is ChangeKind.FLIP and any(side is not None and side.counts for side in sides)


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
            comparison.runs += 1
            for change in _pairs(graded.run, graded.results, stream.evaluate(graded.run, new)):
                if change.kind is None:
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


def _pairs(
    run: AgentRun, old: Sequence[EvaluationResult], new: Sequence[EvaluationResult]
) -> Iterator[Change]:
    before, after = ({_key(result): result for result in results} for results in (old, new))
    for key in {**before, **after}:
        yield Change(run, before.get(key), after.get(key))


def _key(result: EvaluationResult) -> tuple[str, bytes | None, str | None]:
    return result.name, result.tool_span_id, result.tool_call_id


def _to_json(change: Change) -> JsonObject:
    run = change.run
    return {
        "change": change.kind,
        "trace_id": run.trace_id.hex(),
        "span_id": None if run.span_id is None else run.span_id.hex(),
        "agent": run.agent.name,
        "evaluation": change.any_result.name,
        "old": _result_to_json(change.old),
        "new": _result_to_json(change.new),
    }


def _result_to_json(result: EvaluationResult | None) -> JsonObject | None:
    if result is None:
        return None
    return {
        "evaluator": result.evaluator,
        "outcome": result.outcome,
        "score": result.score,
        "explanation": result.explanation,
        "reason": result.reason,
    }


def _print_table(changes: Iterator[Change], comparison: Comparison, console: Console) -> None:
    flips: Counter[str] = Counter()
    one_sided: Counter[tuple[str, str]] = Counter()
    for change in changes:
        result = change.any_result
        if change.old is None or change.new is None:
            one_sided[f"{change.kind}: {result.name}", result.outcome] += 1
            continue
        if change.kind is ChangeKind.FLIP:
            flips[f"{change.old.outcome} → {change.new.outcome}"] += 1
        line = Text(f"trace {change.run.trace_id.hex()}  {change.run.agent.name}  {result.name}  ")
        line.append_text(_shown(change.old)).append(" → ").append_text(_shown(change.new))
        console.print(line)
    for (evaluation, outcome), count in one_sided.items():
        console.print(Text(f"{evaluation}  {count} {outcome}", style="dim"))
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
