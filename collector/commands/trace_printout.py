"""How the spans of a trace were understood, printed for people."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from processors.reconstruction.trace_explanation import SpanExplanation

_MAX_SHOWN = 200


def print_explanation(console: Console, trace_id: bytes, spans: Sequence[SpanExplanation]) -> None:
    """Print a line for each span of a trace: its name, who read it as what, and what became of it."""
    console.print(Text(f"trace {trace_id.hex()}", style="bold"), soft_wrap=True)
    for span in spans:
        line = Text("  " * (span.depth + 1))
        line.append(_printable(span.name) or "(no name)", style="dim" if span.is_left_out else "cyan")
        line.append(f"  {span.span_id.hex()}", style="dim")
        if span.role is not None:
            line.append(f"  {', '.join(span.dialects)}: {span.role.name.lower()}")
        line.append("  left out: " if span.is_left_out else "  ", style="yellow")
        line.append(_printable(span.meaning))
        console.print(line, soft_wrap=True)


def _printable(text: str) -> str:
    """`text` without control characters, which could rewrite the terminal, and not longer than a line."""
    return "".join(character if character.isprintable() else " " for character in text[:_MAX_SHOWN])
