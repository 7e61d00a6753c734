"""A graded run as a person reads it on a console: what the agent called, and the verdicts.

Every line is grep-able: it begins with its verdict as a word, and without a terminal a verdict is one line,
however long. Only printable characters of a trace reach the terminal.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Literal, Self, TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from processors.model import (
    CallCategory,
    Decision,
    EvaluationResult,
    GradedRun,
    JsonValue,
    Outcome,
    Severity,
    Stage,
    ToolCall,
    ToolError,
    ValueState,
    json_text,
    time_text,
)

_STYLES = {
    Outcome.PASS: "green",
    Outcome.FAIL: "bold red",
    Outcome.ERROR: "bold magenta",
    Outcome.NOT_EVALUATED: "dim",
}
_MAX_CALLS = 20
_MAX_MODELS = 3
_MAX_VALUE_LENGTH = 2000
_MIN_TEXT_WIDTH = 24

_Line: TypeAlias = list[tuple[str, str]]
"""Texts with their styles, empty for none: only a console needs more of them."""


class RunPrintout:
    """Lays out runs for a console `width` columns wide; None: no terminal, lines are never broken.

    `show_content`: whether arguments, results, error messages and explanations that may quote them are shown.
    `unicode`: whether the console can show more than ASCII.
    """

    def __init__(self, *, width: int | None, show_content: bool, unicode: bool) -> None:
        self._width = width
        self._show_content = show_content
        self._unicode = unicode
        self._arrow, self._ellipsis, self._cross = ("→", "…", "✗") if unicode else ("->", "...", "!")

    @classmethod
    def for_console(cls, console: Console, *, show_content: bool = True) -> Self:
        """What fits `console` as it is now."""
        encoding = (getattr(console.file, "encoding", None) or "utf-8").lower()
        return cls(
            width=console.width if console.file.isatty() else None,
            show_content=show_content,
            unicode=encoding.startswith("utf"),
        )

    def block(self, graded: GradedRun, note: str = "") -> Text:
        """A run with an empty line below it; `note` follows the agent's name."""
        return Text("\n").join(self.lines(graded, note)).append("\n")

    def plain_block(self, graded: GradedRun) -> str:
        """The text of `block`, for what is no terminal: without what a console does to styled text."""
        return "".join([f"{_plain(line)}\n" for line in self._lines(graded)]) + "\n"

    def left_out(self, count: int) -> Text:
        """The line in place of `count` runs that are not shown."""
        return Text(f"{self._ellipsis} {count} more run{'' if count == 1 else 's'}", style="dim")

    def lines(self, graded: GradedRun, note: str = "") -> Iterator[Text]:
        """The lines of one run, cut to the width of the terminal, without an empty one around them."""
        for pieces in self._lines(graded, note):
            line = Text.assemble(*pieces)
            if self._width is not None:
                line.truncate(self._width, overflow=self._overflow)
            yield line

    def _lines(self, graded: GradedRun, note: str = "") -> Iterator[_Line]:
        yield self._head(graded, note)
        yield from self._context(graded)
        calls = graded.run.calls
        for number, call in enumerate(calls[:_MAX_CALLS], 1):
            yield self._call(number, call, is_complete=graded.run.complete)
        if len(calls) > _MAX_CALLS:
            yield [(f"  {self._ellipsis} {len(calls) - _MAX_CALLS} more calls", "dim")]
        if graded.run.error is not None:
            error = self._error(graded.run.error)
            yield [(f"  {self._cross} the run ended with {error}", "red")]
        words = [result.outcome.value for result in graded.results]
        names = [self._clean(" ".join([result.name, *_notes(result)])) for result in graded.results]
        word_width = max(map(len, words), default=0)
        name_width = max(map(cell_len, names), default=0)
        for result, word, name in zip(graded.results, words, names, strict=True):
            name += " " * (name_width - cell_len(name) + 2)
            yield from self._verdict(result, f"{word:<{word_width}} ", name, word_width + name_width + 11)

    def _head(self, graded: GradedRun, note: str) -> _Line:
        run = graded.run
        outcome = graded.verdict
        calls = f"{len(run.calls)} call" + ("" if len(run.calls) == 1 else "s")
        if run.stands_for_trace:
            calls = "stands for the trace"
        line: _Line = [(outcome.value.upper(), f"{_STYLES[outcome]} reverse")]
        not_evaluated, evaluations = graded.not_evaluated
        if not_evaluated and outcome is not Outcome.NOT_EVALUATED:
            line.append((f", {not_evaluated} of {evaluations} not evaluated", "yellow"))
        line.append((f"  {self._clean(run.agent.name)}", "bold"))
        if run.agent.version:
            line.append((f" {self._clean(run.agent.version)}", ""))
        if note:
            line.append((f"  {self._clean(note)}", "italic"))
        exempted = Counter(
            result.exemption for result in graded.results if result.is_failure and not result.counts
        )
        notes = [calls, run.finish_reason.value] + ([] if graded.results else ["no criteria"])
        notes += [f"{count} {word} {_failures(count)}" for word, count in exempted.items()]
        line.append((f"  trace_id={run.trace_id.hex()}  {', '.join(notes)}", "dim"))
        return line

    def _context(self, graded: GradedRun) -> Iterator[_Line]:
        """Times, costs and identity, as far as they are known."""
        run = graded.run
        known = {
            "ended": _moment(run.end_unix_nano),
            "graded": _moment(graded.graded_unix_nano),
            "took": _time(run.duration_seconds),
            "tokens": "" if run.usage is None else run.usage.total_tokens,
            "models": ",".join(run.models[:_MAX_MODELS]),
            "cost": "" if run.cost is None else f"{run.cost:.3g}",
            "parent": run.parent_agent,
            "service": run.resource.get("service.name"),
            "agent_id": run.agent.id,
            "conversation": run.session,
            "tenant": run.tenant,
        }
        text = "  ".join(
            f"{name}={self._clean(str(value))}" for name, value in known.items() if value not in ("", None)
        )
        for line in _wrap(text, self._width and self._width - 2):
            yield [(f"  {line}", "dim")]

    def _call(self, number: int, call: ToolCall, *, is_complete: bool) -> _Line:
        line = [(f"  {number:>2}. ", "dim"), (self._clean(call.name), "cyan")]
        ending = self._ending(call, is_complete)
        if self._show_content and _is_worth_showing(call, call.arguments_state):
            arguments = " " + self._value(call.arguments, call.arguments_text, call.arguments_state)
            if self._width is not None:
                # Long arguments leave half of the line to the outcome of the call.
                room = self._width - cell_len(_plain(line))
                cut = Text(arguments)
                cut.truncate(max(room - cell_len(ending[0]), room // 2), overflow=self._overflow)
                arguments = cut.plain
            line.append((arguments, ""))
        return [*line, ending]

    def _ending(self, call: ToolCall, is_complete: bool) -> tuple[str, str]:
        """The outcome of a call; of a run that is not complete, its span may only be missing."""
        if not call.executed:
            reason = ""
            if self._show_content and call.error is not None and call.error.message:
                reason = f": {self._clean(call.error.message[:_MAX_VALUE_LENGTH])}"
            elif self._show_content and call.result_state is ValueState.PRESENT:
                reason = f": {self._value(call.result, call.result_text, call.result_state)}"
            ended, mark = ("not executed" if is_complete else "no span of it arrived"), self._cross
            if call.decision is Decision.PENDING:
                mark = self._arrow  # nothing went wrong
            if call.decision is not None:
                ended = call.decision.value
                if call.decision_source:
                    ended += f" ({self._clean(call.decision_source)})"
            return f" {mark} {ended}{reason}", "yellow"
        if call.error is not None:
            return f" {self._cross} {self._error(call.error)}", "red"
        if not self._show_content or not _is_worth_showing(call, call.result_state):
            return "", ""
        return f" {self._arrow} {self._value(call.result, call.result_text, call.result_state)}", ""

    def _error(self, error: ToolError) -> str:
        shown = error.type or "error"
        if self._show_content and error.message:
            shown += f": {error.message[:_MAX_VALUE_LENGTH]}"
        return self._clean(shown)

    def _value(self, value: JsonValue, text: str | None, state: ValueState) -> str:
        if state is not ValueState.PRESENT:
            return f"<{state.value}>"
        shown = text if text is not None else json_text(value)
        if len(shown) > _MAX_VALUE_LENGTH:
            shown = shown[:_MAX_VALUE_LENGTH] + self._ellipsis
        return self._clean(shown)

    def _verdict(self, result: EvaluationResult, word: str, name: str, indent: int) -> Iterator[_Line]:
        style = _STYLES[result.outcome] if result.counts else "dim"
        score = "    " if result.score is None else f"{result.score:.2f}"
        line = [("  ", ""), (word, style), (name, ""), (score, style)]
        text = self._explanation(result)
        if text and self._width is not None and self._width - indent < _MIN_TEXT_WIDTH:
            yield line
            indent = 8
            line = [(" " * (indent - 2), "")]
        for piece in _wrap(text, self._width and self._width - indent) or [""]:
            if piece:
                line.append((f"  {piece}", "dim"))
            yield line
            line = [(" " * (indent - 2), "")]

    def _explanation(self, result: EvaluationResult) -> str:
        """The explanation; without content only where it cannot quote any."""
        text = result.explanation if self._show_content or not result.quotes_content else ""
        if result.error_type is not None:
            return self._clean(_joined(": ", result.error_type, text))
        if result.reason is not None:
            return self._clean(_joined(": ", result.reason.value, text))
        needed = f"needs {result.pass_threshold:g}" if result.outcome is Outcome.FAIL else ""
        return self._clean(_joined("; ", needed, text))

    @property
    def _overflow(self) -> Literal["ellipsis", "crop"]:
        return "ellipsis" if self._unicode else "crop"

    def _clean(self, text: str) -> str:
        """`text` on one line, without characters that could steer a terminal or that it cannot show."""
        if not text.isprintable():
            flat = " ".join(text.split())
            text = "".join(character if character.isprintable() else " " for character in flat)
        return text if self._unicode else text.encode("ascii", "backslashreplace").decode()


def _plain(line: _Line) -> str:
    return "".join([text for text, _ in line])


def _is_worth_showing(call: ToolCall, state: ValueState) -> bool:
    """Whether the state of a value is worth a word: a handoff has mostly none but the name."""
    return state is ValueState.PRESENT or call.category is not CallCategory.HANDOFF


def count_outcomes(graded: GradedRun) -> Counter[str]:
    """How many results of a run ended in each outcome.

    Those in shadow count as `shadow` alone, failures that decide nothing as `muted` or `advisory`.
    """
    counts: Counter[str] = Counter()
    for result in graded.results:
        stands_apart = result.stage is Stage.SHADOW or (result.is_failure and not result.counts)
        counts[result.exemption if stands_apart else result.outcome.value] += 1
    return counts


def counts_text(counts: Counter[str]) -> str:
    """The counts of `count_outcomes` as text."""
    words = (*(outcome.value for outcome in _STYLES), "advisory", "shadow", "muted")
    return ", ".join(f"{counts[word]} {word}" for word in words if counts[word])


def _joined(separator: str, *texts: str) -> str:
    """Those of `texts` that are not empty."""
    return separator.join(filter(None, texts))


def _moment(unix_nano: int) -> str:
    """A time to the millisecond; empty where it is not known."""
    return f"{time_text(unix_nano)[:23]}Z" if unix_nano else ""


def _time(seconds: float | None) -> str:
    """A time in three digits, of long ones all whole seconds; empty where it is not known."""
    if seconds is None:
        return ""
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g}ms"
    return f"{seconds:.3g}s" if seconds < 999.5 else f"{seconds:.0f}s"


def _failures(count: int) -> str:
    return "failure" if count == 1 else "failures"


def _notes(result: EvaluationResult) -> list[str]:
    """What follows a result's name: stage, mute, severity unless it is a ticket, and the call."""
    notes = ["(shadow)"] if result.stage is Stage.SHADOW else []
    notes += ["(muted)"] if result.muted_until_unix_nano else []
    notes += [] if result.severity is Severity.TICKET else [f"({result.severity})"]
    return notes if result.tool_call_id is None else [*notes, f"(call {result.tool_call_id})"]


def _wrap(text: str, width: int | None) -> list[str]:
    """`text` broken at spaces into lines of at most `width` columns; none for no text."""
    if width is None:
        return [text] if text else []
    lines: list[str] = []
    rest = Text(text)
    while rest.plain:
        if rest.cell_len <= width:
            lines.append(rest.plain)
            break
        head = rest.copy()
        head.truncate(width)
        cut = head.plain.rfind(" ") if " " in head.plain else len(head.plain)
        lines.append(rest.plain[:cut])
        rest = Text(rest.plain[cut:].lstrip())
    return lines
