"""The command line: the only reader of arguments, environment and signals, and the only place that exits."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version

from collector.clock import SystemClock
from collector.commands import COMMANDS, EXIT_OK, EXIT_UNUSABLE, Surroundings, give_up_output
from collector.errors import StartupError, TracegradeError
from processors.documents import ProblemsFound


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit the process with its exit code."""
    sys.exit(run_command(sys.argv[1:] if arguments is None else arguments))


def run_command(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` name; its exit code."""
    options = _parser().parse_args(arguments)
    surroundings = Surroundings(os.environ, SystemClock(), _handle_signals)
    code = EXIT_OK
    try:
        code = options.run(options, surroundings)
        print(end="", flush=True)
    except StartupError as error:
        print(f"tracegrade cannot start: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except (ProblemsFound, TracegradeError) as error:
        print(error, file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output went away, for example `| head`
        give_up_output()
    except OSError as error:
        what = error.filename or "the output"
        print(f"cannot read or write {what}: {error.strerror or error}", file=sys.stderr)
        give_up_output()
        return EXIT_UNUSABLE
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tracegrade",
        description="Grades AI agents' tool use online from their OpenTelemetry traces. No model is called.",
    )
    parser.add_argument("--version", action="version", version=f"tracegrade {version('tracegrade')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        arguments = commands.add_parser(command.name, help=command.help, description=command.description)
        command.add_arguments(arguments)
        arguments.set_defaults(run=command.run)
    return parser


def _handle_signals(stop: Callable[[], None], reload: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, reload)


if __name__ == "__main__":
    main()
