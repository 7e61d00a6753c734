"""Grading one recording by two sets of criteria, and printing which verdicts differ.

The traffic is read and rebuilt once; both sets see the same runs. It answers what a change of criteria would
have done to yesterday's traces.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.text import Text

from collector.commands.output import OutputConsole, print_while_read
from collector.recordings import Progress, RecordedStream, no_progress
from processors.criteria import CriteriaSet
from processors.model import AgentRun, EvaluationResult, JsonObject, encode_json

_SCORE_TOLERANCE = 1e-9
_STYLES = {"pass": "green", "fail": "bold red", "error": "bold magenta", "not_evaluated": "yellow"}


@dataclass(frozen=True, slots=True)
class _Change:
    """The results of one evaluation of a run; `old` or `new` is None where only one set gave one."""

    run: AgentRun
    old: EvaluationResult | None
    new: EvaluationResult | None

    @property
    def kind(self) -> str:
        """What differs: the outcome, only the score, or whether there is a result; empty: nothing."""
        old, new = self.old, self.new
        if old is None or new is None:
            return "added" if old is None else "removed"
        if old.outcome is not new.outcome:
            return "flip"
        difference = abs((old.score or 0.0) - (new.score or 0.0))
        return "score" if difference > _SCORE_TOLERANCE else ""

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
        return self.kind == "flip" and any(side is not None and side.counts for side in sides)


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

    def differences() -> Iterator[_Change]:
        for graded in stream.grade(old, progress):
            counts["runs"] += 1
            for change in _pairs(graded.run, graded.results, stream.evaluate(graded.run, new)):
                counts[change.kind] += 1
                counts["decisive"] += change.is_decisive
                if change.kind:
                    yield change

    def write(changes: Iterator[_Change]) -> None:
        if not prints_json:
            _print_table(changes, counts, OutputConsole(file=output))
            return
        for change in changes:
            output.write(encode_json(_to_json(change)).decode() + "\n")

    print_while_read(differences(), write)
    return counts["decisive"]


def _pairs(
    run: AgentRun, old: Sequence[EvaluationResult], new: Sequence[EvaluationResult]
) -> Iterator[_Change]:
    before, after = (
        {(result.name, result.tool_span_id, result.tool_call_id): result for result in results}
        for results in (old, new)
    )
    for key in {**before, **after}:
        yield _Change(run, before.get(key), after.get(key))


def _to_json(change: _Change) -> JsonObject:
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


def _print_table(changes: Iterator[_Change], counts: Counter[str], console: Console) -> None:
    flips: Counter[str] = Counter()
    one_sided: Counter[tuple[str, str]] = Counter()
    for change in changes:
        result = change.any_result
        if change.old is None or change.new is None:
            one_sided[f"{change.kind}: {result.name}", result.outcome] += 1
            continue
        if change.kind == "flip":
            flips[f"{change.old.outcome} → {change.new.outcome}"] += 1
        line = Text(f"trace {change.run.trace_id.hex()}  {change.run.agent.name}  {result.name}  ")
        line.append_text(_shown(change.old)).append(" → ").append_text(_shown(change.new))
        console.print(line)
    for (evaluation, outcome), count in one_sided.items():
        console.print(Text(f"{evaluation}  {count} {outcome}", style="dim"))
    directions = ", ".join(f"{count} {direction}" for direction, count in flips.items())
    parts = [f"{counts['flip']} flips" + (f" ({directions})" if directions else "")]
    if undecisive := counts["flip"] - counts["decisive"]:
        parts.append(f"{undecisive} of them advisory, muted or in shadow")
    parts += [f"{counts['score']} with a different score", f"{counts['added']} added"]
    parts += [f"{counts['removed']} removed", f"{counts['']} the same"]
    console.print(f"{counts['runs']} agent runs: {', '.join(parts)}", style="bold", highlight=False)


def _shown(result: EvaluationResult) -> Text:
    score = "" if result.score is None else f" {result.score:.2f}"
    reason = "" if result.reason is None else f" ({result.reason})"
    note = f" ({result.exemption})" if result.exemption else ""
    return Text(f"{result.outcome}{score}{reason}{note}", style=_STYLES[result.outcome.value])
