"""Types of command line arguments that several commands take."""

import argparse
from pathlib import Path

from collector.endpoint import parse_endpoint


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
    try:
        parse_endpoint(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text
