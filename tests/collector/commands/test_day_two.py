"""The commands that docs/day-two.md advises are commands that there are, with these arguments."""

import re
import shlex
from argparse import ArgumentParser
from pathlib import Path

import pytest

from collector.commands import load_command

PAGE = Path(__file__).parents[3] / "docs" / "day-two.md"
COMMANDS = [line for line in re.findall(r"`tracegrade ([^`]+)`", PAGE.read_text("utf-8")) if " " in line]


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_exists_with_these_arguments(line: str) -> None:
    name, *arguments = shlex.split(line.split(" > ")[0])
    parser = ArgumentParser(prog=name, exit_on_error=False)
    load_command(name).add_arguments(parser)

    assert parser.parse_args(arguments)


def test_there_are_such_commands() -> None:
    assert len(COMMANDS) > 15
