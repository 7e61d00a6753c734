"""Where commands print, and what happens when nobody takes it."""

import os
import sys

from rich.console import Console


class OutputConsole(Console):
    """A console that leaves it to the command what happens when the reader of its output goes away."""

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError that is being handled; rich itself would exit with 1, a verdict here."""
        raise  # rich calls this while it handles the error


def give_up_output() -> None:
    """Send what is still to be printed nowhere, so that leaving does not fail on it."""
    if sys.stdout is not None:  # None: closed by who started this process
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
