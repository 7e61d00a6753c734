"""The form of a command: its arguments, its function, and how its exit code and errors reach the caller."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from collector.clock import Clock, SystemClock
from collector.errors import StartupError, TracegradeError
from processors.documents import InvalidInput, Problem

if TYPE_CHECKING:
    from collector.configuration import ServiceConfig

EXIT_OK, EXIT_FAILED, EXIT_UNUSABLE, EXIT_INTERRUPTED = 0, 1, 2, 130

HandleSignals: TypeAlias = Callable[[Callable[[], None], Callable[[], None]], None]
"""Has the running loop call the first argument when the process is requested to stop, the second to
reload."""


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The process that a command runs in, as the command line module sees it."""

    environment: Mapping[str, str]
    clock: Clock
    handle_signals: HandleSignals

    def service_file(self, path: Path | None) -> "ServiceConfig":
        """The service file at `path`; None: the defaults. Raises InvalidInput."""
        # Checking it takes every component with its libraries, so this alone loads them.
        from collector.configuration import load_configuration

        return load_configuration(path, self.environment)


@dataclass(frozen=True, slots=True)
class Command:
    """One command: `add_arguments` declares its arguments, `run` performs it and returns the exit code.

    `run` may raise InvalidInput, TracegradeError and OSError; `execute` prints them.
    """

    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, CommandContext], int]
    description: str | None = None

    def execute(
        self, options: Namespace, environment: Mapping[str, str], handle_signals: HandleSignals
    ) -> int:
        """Run the command and print its errors; the exit code."""
        code = EXIT_OK
        try:
            code = self.run(options, CommandContext(environment, SystemClock(), handle_signals))
            print(end="", flush=True)
        except StartupError as error:
            print(f"tracegrade cannot start: {error}", file=sys.stderr)
            return EXIT_UNUSABLE
        except (InvalidInput, TracegradeError) as error:
            print(error, file=sys.stderr)
            return EXIT_UNUSABLE
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        except BrokenPipeError:  # the reader closed the pipe, for example `| head`
            discard_stdout()
        except OSError as error:
            what = error.filename or "the output"
            print(f"cannot read or write {what}: {error.strerror or error}", file=sys.stderr)
            discard_stdout()
            return EXIT_UNUSABLE
        return code


def unusable(message: str) -> InvalidInput:
    """The error of a command that cannot do what was requested; its exit code is 2."""
    return InvalidInput([Problem("", 0, "", message)])


def discard_stdout() -> None:
    """Discard what is still to be printed, so that the process can exit without an error."""
    if sys.stdout is not None:  # None: closed by the caller of this process
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
