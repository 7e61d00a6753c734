"""Graded runs on the console (`debug`), for the person who is trying things out.

Printing happens in a thread of its own and at a bounded rate: a console that does not keep up, or that no
one reads, delays no trace.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TextIO

from pydantic import Field

from collector.clock import Clock, ends_within
from collector.exporters.exporter import ResultExporterType
from collector.trace import GradedTrace
from collector.work_thread import WorkThread
from processors.documents import StrictModel
from processors.model import GradedRun

if TYPE_CHECKING:  # loaded where something is printed
    from rich.console import Console

_logger = logging.getLogger(__name__)


class DebugConfig(StrictModel):
    """`exporters.debug`: graded runs on the console."""

    max_runs_per_second: int = Field(default=20, ge=1)
    """Runs beyond this are only counted, in a line of their own."""
    show_content: bool = True
    """Whether arguments, results and explanations that may quote them are shown."""
    color: Literal["auto", "always", "never"] = "auto"
    """`auto`: on a terminal, unless the environment has `NO_COLOR`."""


@dataclass(eq=False)
class DebugExporter:
    """Prints a block for each graded run to a text stream."""

    name: str
    config: DebugConfig
    stream: TextIO
    clock: Clock

    def __post_init__(self) -> None:
        self._console = self._new_console()
        self._thread = WorkThread(f"export-{self.name}")
        self._window = -1
        self._printed_in_window = 0
        self._left_out = 0
        self._is_broken = False

    async def start(self) -> None:
        """Start the printing thread."""
        self._thread.start()

    def export_results(self, trace: GradedTrace, done: Callable[[], None] | None = None) -> None:
        """Queue the runs for printing, or only count them beyond the rate; they are done with at once."""
        if done is not None:
            done()
        window = int(self.clock.monotonic())
        if window != self._window:
            self._window = window
            self._printed_in_window = 0
        for graded in trace.runs:
            if self._printed_in_window < self.config.max_runs_per_second and self._thread.has_room:
                self._thread.run(self._print, self._left_out, graded)
                self._printed_in_window += 1
                self._left_out = 0
            else:
                self._left_out += 1

    async def shutdown(self, deadline: float) -> None:
        """Print what is queued until `deadline`."""
        ended = self._thread.close(partial(self._print, self._left_out))
        await ends_within(deadline - self.clock.monotonic(), ended, self.clock)

    def _print(self, left_out: int, graded: GradedRun | None = None) -> None:
        from collector.printing import RunPrintout

        if self._is_broken:
            return
        try:
            printout = RunPrintout.for_console(self._console, show_content=self.config.show_content)
            if left_out:
                self._console.print(printout.left_out(left_out), soft_wrap=True)
            if graded is not None:
                self._console.print(printout.block(graded), soft_wrap=True)
        except (OSError, ValueError) as error:  # the console was closed
            self._is_broken = True
            _logger.warning(
                "The console cannot be written; nothing more is printed.",
                extra={"exporter": self.name, "error": str(error)},
            )

    def _new_console(self) -> "Console":
        from rich.console import Console

        is_terminal = self.stream.isatty()
        color = self.config.color
        return Console(
            file=self.stream,
            force_terminal=is_terminal,
            color_system="auto" if is_terminal else "standard" if color == "always" else None,
            no_color=None if color == "auto" else color == "never",
            highlight=False,
            markup=False,
            emoji=False,
        )


COMPONENT = ResultExporterType(
    type_name="debug",
    config_model=DebugConfig,
    create=lambda name, config, context: DebugExporter(name, config, context.console, context.clock),
)
