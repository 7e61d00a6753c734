"""What all commands share: their form, exit codes, types of arguments, criteria and where they print."""

import argparse
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from rich.console import Console

from collector.clock import Clock
from collector.config_fields import parse_endpoint
from collector.configuration import load_configuration, load_criteria
from collector.errors import TracegradeError
from collector.recordings import RecordedStream
from collector.workers.custom_evaluators import load_custom_evaluators
from collector.workers.offline import OfflineWorkers
from processors.criteria import CriteriaSet
from processors.documents import Problem, ProblemsFound

EXIT_OK, EXIT_FAILED, EXIT_UNUSABLE = 0, 1, 2

_ItemT = TypeVar("_ItemT")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a command gets of the process it runs in, from the command line module alone.

    `handle_signals` has the running loop call its first argument when the process is asked to stop, its
    second when it is asked to reload.
    """

    environment: Mapping[str, str]
    clock: Clock
    handle_signals: Callable[[Callable[[], None], Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class Command:
    """One command: `add_arguments` declares what it takes, `run` does it and returns the exit code.

    `run` may raise ProblemsFound, TracegradeError and OSError: the command line tells them in their words.
    """

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Surroundings], int]
    description: str | None = None


class OfflineCriteria:
    """What commands without a service grade by: `--config`, its custom evaluators, and criteria files."""

    def __init__(self, service_file: Path | None, surroundings: Surroundings) -> None:
        self.config = load_configuration(service_file, surroundings.environment)
        self.evaluators = load_custom_evaluators(self.config.processors.evaluation)
        self._environment = surroundings.environment

    def load(self, patterns: Sequence[str] | None = None) -> CriteriaSet:
        """The criteria in the files that `patterns` name; None: those of the service file."""
        return load_criteria(
            patterns or self.config.criteria_patterns(),
            environment=self._environment,
            evaluators=self.evaluators.known,
        )

    def read(
        self,
        paths: Sequence[Path],
        *,
        unix_nano: int = 0,
        workers: OfflineWorkers | None = None,
        progress: Console | None = None,
    ) -> RecordedStream:
        """The recorded traffic in `paths`, as the service file has it read; raises ProblemsFound."""
        stream = RecordedStream(
            unix_nano=unix_nano,
            dialects=self.config.own_dialects(),
            prices=self.config.model_prices(),
            workers=workers,
        )
        if problems := stream.read(paths, progress):
            raise ProblemsFound(problems)
        return stream


class OutputConsole(Console):
    """A console that breaks no lines and dies of no reader that goes away.

    Lines are the terminal's to break; what a broken pipe means is the command's to say.
    """

    def __init__(self, *, file: IO[str] | None = None, stderr: bool = False) -> None:
        super().__init__(file=file, stderr=stderr, soft_wrap=True)

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError that is being handled; rich itself would exit with 1, a verdict here."""
        raise  # rich calls this while it handles the error


def progress_console() -> Console | None:
    """Where a person watches how far a command is; None where nobody does."""
    return Console(stderr=True) if sys.stderr.isatty() else None


def tell_warnings(warnings: Sequence[Problem]) -> None:
    """State on standard error what is no reason to stop."""
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def give_up_output() -> None:
    """Send what is still to be printed nowhere, so that leaving does not fail on it."""
    if sys.stdout is not None:  # None: closed by who started this process
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_while_read(items: Iterator[_ItemT], write: Callable[[Iterator[_ItemT]], object]) -> None:
    """Have `write` print `items`; if its reader goes away, such as `head`, the rest is only gone through.

    So an exit code that depends on all of them stays what it would have been.
    """
    try:
        write(items)
    except BrokenPipeError:
        give_up_output()
        for _ in items:
            pass


def unusable(message: str) -> ProblemsFound:
    """The problem of a command that cannot do what it is asked for."""
    return ProblemsFound([Problem("", 0, "", message)])


def write_over(path: Path, text: str) -> None:
    """Write a file in the place of what is there; raises OSError."""
    path.write_text(text, encoding="utf-8")


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet; raises OSError."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def write_output(path: Path | None, text: str, write: Callable[[Path, str], object] = write_over) -> None:
    """Print `text`, or have it written to `path`; raises ProblemsFound where that cannot be."""
    if path is None:
        print(text, end="")
        return
    try:
        write(path, text)
    except OSError as error:
        raise unusable(f"cannot write {path}: {error.strerror}") from error


def no_arguments(_: ArgumentParser) -> None:
    """Declare nothing."""


def add_argument(
    parser: argparse._ActionsContainer,
    name: str,
    kind: Callable[[str], object],
    metavar: str | tuple[str, ...],
    help_text: str,
    **more: Any,
) -> None:
    """Declare an argument with a value; `more` as argparse has it."""
    parser.add_argument(name, type=kind, metavar=metavar, help=help_text, **more)


def add_config(
    parser: argparse._ActionsContainer, help_text: str = "the service file (default: built-in defaults)"
) -> None:
    """Declare `--config`."""
    add_argument(parser, "--config", path_argument, "FILE", help_text)


def path_argument(text: str) -> Path:
    """A path; not the empty text, which an unset shell variable leaves and which would be this folder."""
    return Path(path_text(text))


def path_text(text: str) -> str:
    """As `path_argument`, for what may also be a pattern."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got an empty text")
    return text


def traffic_argument(text: str) -> Path:
    """A path of recorded traffic; `-` is the standard input."""
    return Path("/dev/stdin") if text == "-" else path_argument(text)


def endpoint_argument(text: str) -> str:
    """An address as configuration writes them."""
    argument_type(parse_endpoint)(text)
    return text


def argument_type(parse: Callable[[str], _ItemT]) -> Callable[[str], _ItemT]:
    """`parse` as the type of an argument whose mistakes are told in the words of its ValueError."""

    def argument(text: str) -> _ItemT:
        try:
            return parse(text)
        except (ValueError, TracegradeError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return argument
