"""Arguments that several commands share, and types of arguments."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from collector.config_fields import parse_duration, parse_endpoint, parse_moment
from collector.errors import TracegradeError

_ValueT = TypeVar("_ValueT")

CRITERIA_TO_GRADE_BY = "criteria to grade by (default: the built-in reference-free set)"
NEW_FILE = "a file that does not exist yet (default: standard output)"
MOMENT = "a duration such as 24h or 7d, yesterday, a date (00:00 UTC) or a time"
RECORDED_TRAFFIC = "recorded traffic, as `tracegrade replay` reads it"

_SOME_DAY = 1_800_000_000_000


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


def add_output(parser: argparse._ActionsContainer, help_text: str = "default: standard output") -> None:
    """Declare `--output`."""
    add_argument(parser, "--output", path_argument, "FILE", help_text)


def add_flag(parser: argparse._ActionsContainer, name: str, help_text: str) -> None:
    """Declare an argument without a value."""
    parser.add_argument(name, action="store_true", help=help_text)


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


def argument_type(parse: Callable[[str], _ValueT]) -> Callable[[str], _ValueT]:
    """`parse` as the type of an argument, whose errors are those of argparse."""

    def argument(text: str) -> _ValueT:
        try:
            return parse(text)
        except (ValueError, TracegradeError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return argument


def endpoint_argument(text: str) -> str:
    """An address as configuration writes it."""
    argument_type(parse_endpoint)(text)
    return text


def moment_argument(text: str) -> str:
    """A moment as `parse_moment` reads it, which depends on the present: so the text itself."""
    argument_type(partial(parse_moment, now=_SOME_DAY))(text)
    return text


def duration_argument(text: str) -> float:
    """Seconds, written as configuration writes durations."""
    return argument_type(parse_duration)(text)


def share(*, may_be_all: bool = False) -> Callable[[str], float]:
    """The type of a share above 0 and below 1, or up to 1, written as `0.02` or `2%`."""

    def argument(text: str) -> float:
        try:
            value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            value = -1.0
        if not (0 < value < 1 or (may_be_all and value == 1)):
            raise argparse.ArgumentTypeError(f"expected a share such as 2% or 0.02, got {text!r}")
        return value

    return argument


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of a whole number from `least` to `most`."""
    expected = f"from {least}" if most is None else f"from {least} to {most}"

    def argument(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or not least <= int(text) <= (most or int(text)):
            raise argparse.ArgumentTypeError(f"expected a whole number {expected}, got {text!r}")
        return int(text)

    return argument
