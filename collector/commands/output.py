"""How commands print results, warnings and progress."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from shutil import copymode
from typing import IO, TypeVar

from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text
from typing_extensions import override

from collector.commands.command import discard_stdout, unusable
from collector.recordings import Progress, no_progress
from processors.documents import Problem

_ItemT = TypeVar("_ItemT")
_ANY_WIDTH = 1 << 15


class OutputConsole(Console):
    """A console that leaves breaking lines to the terminal, and a broken pipe to the command."""

    def __init__(self, *, file: IO[str] | None = None, stderr: bool = False) -> None:
        super().__init__(file=file, stderr=stderr, soft_wrap=True)

    @override
    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError that is being handled; rich itself would exit with 1, a verdict here."""
        raise  # rich calls this while it handles the error


def progress_bar() -> Progress:
    """Progress on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        return no_progress
    return partial(track, console=Console(stderr=True), transient=True)


def print_warnings(warnings: Sequence[Problem]) -> None:
    """Print to standard error what is no reason to stop."""
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def print_while_read(items: Iterator[_ItemT], write: Callable[[Iterator[_ItemT]], object]) -> None:
    """Have `write` print `items`; if its reader closes the pipe, as `head` does, consume the rest.

    So an exit code that depends on all of them is the same.
    """
    try:
        write(items)
    except BrokenPipeError:
        discard_stdout()
        for _ in items:
            pass


def moment_text(milliseconds: int) -> str:
    """A Unix time in a table, in UTC to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(milliseconds / 1000))


def print_table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    has_heading: bool = True,
    file: IO[str] | None = None,
) -> None:
    """Print columns as wide as their cells."""
    table = Table(
        *names, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=has_heading
    )
    for row in rows:
        table.add_row(*[Text(printable(cell)) for cell in row])
    console = OutputConsole(file=file)
    console.width = _ANY_WIDTH  # breaking lines is the terminal's task
    console.print(table)


def shortened(text: str, characters: int) -> str:
    """`text`, or its beginning with an ellipsis, with at most so many characters."""
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def printable(text: str) -> str:
    """`text` without control characters, which could rewrite the terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def write_over(path: Path, text: str) -> None:
    """Write a file, whether it exists or not; raises OSError."""
    path.write_text(text, encoding="utf-8")


def write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet; raises OSError."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def write_whole(path: Path, text: str) -> None:
    """Put `text` at `path`, in the place of what is there: whole or not at all.

    A file that is there keeps its mode, and a link to it stays. Raises OSError: it cannot be written.
    """
    path = path.resolve()
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    if path.exists():
        copymode(path, new)
    new.replace(path)


def write_output(path: Path | None, text: str, write: Callable[[Path, str], object] = write_over) -> None:
    """Print `text`, or have it written to `path`; raises InvalidInput where that fails."""
    if path is None:
        print(text, end="")
        return
    try:
        write(path, text)
    except OSError as error:
        raise unusable(f"cannot write {path}: {error.strerror}") from error
