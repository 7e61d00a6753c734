"""The command line: the only reader of arguments, environment and signals, and the only place that exits."""

import gc
import os
import signal
import sys
from argparse import ArgumentParser
from asyncio import get_running_loop
from collections.abc import Callable, Sequence
from importlib.metadata import version

from collector.commands import COMMANDS, load_command


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit the process with its exit code."""
    gc.disable()  # until a command is loaded: nearly all of it stays, and would be traversed over and over
    sys.exit(run_command(sys.argv[1:] if arguments is None else arguments))


def run_command(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` name; its exit code."""
    parser = ArgumentParser(
        prog="tracegrade",
        description="Grades AI agents' tool use online from their OpenTelemetry traces. No model is called.",
    )
    parser.add_argument("--version", action="version", version=f"tracegrade {version('tracegrade')}")
    parsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    chosen = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, (_, help_text) in COMMANDS.items():
        command_parser = parsers.add_parser(name, help=help_text)
        if name == chosen:
            command = load_command(name)
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
            command_parser.description = command.description or f"{help_text[0].upper()}{help_text[1:]}."
            command.add_arguments(command_parser)
    options = parser.parse_args(arguments)  # exits unless a command was chosen
    return command.execute(options, os.environ, _handle_signals)


def _handle_signals(stop: Callable[[], None], reload: Callable[[], None]) -> None:
    loop = get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, reload)


if __name__ == "__main__":
    main()
