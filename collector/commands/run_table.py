"""Graded agent runs as a table for people.

Works on the objects that `processors.annotation.run_line` writes, so the same table shows what was graded in
this process, in another one, or yesterday.
"""

from collections.abc import Iterable, Mapping

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from processors.model.json_value import JsonObject, JsonValue

_MARKS: Mapping[str, tuple[str, str]] = {
    "pass": ("pass", "green"),
    "fail": ("FAIL", "bold red"),
    "error": ("ERROR", "bold magenta"),
    "not_evaluated": ("not evaluated", "yellow"),
}


class RunTable:
    """Prints runs one by one: a heading, the tool calls, a line for each evaluation."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def print(self, run: JsonObject, note: str = "") -> None:
        """Print one run; `note` stands beside the agent's name."""
        heading = Text.assemble((_agent_name(run), "bold"), (f"  {note}" if note else "", "italic"))
        heading.append(f"  trace {run.get('trace_id')}  finished: {run.get('finish_reason')}", style="dim")
        self._console.print(heading, soft_wrap=True)
        self._console.print(Padding(Group(_calls(run), _verdicts(run)), (0, 0, 1, 2)))


def outcome_counts(runs: Iterable[JsonObject]) -> dict[str, int]:
    """How many evaluations of `runs` ended in each outcome.

    Those in shadow count as `shadow` alone, failures under a mute as `muted`.
    """
    counts = dict.fromkeys((*_MARKS, "shadow", "muted"), 0)
    for run in runs:
        for evaluation in _objects(run.get("evaluations")):
            outcome = str(evaluation.get("stage", evaluation.get("outcome")))
            if evaluation.get("muted") and outcome in ("fail", "error"):
                outcome = "muted"
            counts[outcome] = counts.get(outcome, 0) + 1
    return counts


def _calls(run: JsonObject) -> RenderableType:
    calls = _objects(run.get("tool_calls"))
    if not calls:
        return Text("no tool calls", style="dim")
    line = Text("calls: ")
    for index, call in enumerate(calls):
        if index:
            line.append(" → ", style="dim")
        failed = call.get("error") is not None
        line.append(str(call.get("name")), style="red" if failed else "cyan")
        line.append(f"({_arguments(call)})", style="dim")
        if failed:
            line.append(" failed", style="red")
    return line


def _arguments(call: JsonObject) -> str:
    if call.get("arguments_state") != "present":
        return str(call.get("arguments_state"))
    arguments = call.get("arguments")
    if not isinstance(arguments, dict):
        return str(arguments)
    text = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return text if len(text) <= 60 else text[:57] + "..."


def _verdicts(run: JsonObject) -> RenderableType:
    evaluations = _objects(run.get("evaluations"))
    if not evaluations:
        return Text("no criteria apply", style="dim")
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for evaluation in evaluations:
        mark, style = _MARKS.get(str(evaluation.get("outcome")), (str(evaluation.get("outcome")), ""))
        score = evaluation.get("score")
        explanation = str(evaluation.get("explanation") or evaluation.get("reason") or "")
        for note in (evaluation.get("stage"), "muted" if evaluation.get("muted") else None):
            mark, style = (f"{mark} ({note})", "dim") if note else (mark, style)
        table.add_row(
            Text(mark, style=style),
            "" if not isinstance(score, int | float) else f"{score:.2f}",
            str(evaluation.get("name")),
            Text(explanation, style="" if evaluation.get("outcome") in ("fail", "error") else "dim"),
        )
    return table


def _agent_name(run: JsonObject) -> str:
    agent = run.get("agent")
    return str(agent.get("name")) if isinstance(agent, dict) else "?"


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
