"""The commands of `tracegrade`. A command's module, with all it needs, is loaded when it is chosen."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collector.commands.command import Command

__all__ = ["COMMANDS", "CommandEntry", "load_command"]


class CommandEntry(NamedTuple):
    """Where a command is (`module:NAME` in this package), and its line in the help."""

    location: str
    help: str


COMMANDS: Mapping[str, CommandEntry] = {
    "run": CommandEntry(
        "run:RUN",
        "run the service (without a file: on this machine only, results on the console and on a page)",
    ),
    "validate": CommandEntry(
        "configuration:VALIDATE",
        "check the service file and the criteria, and run their tests; prints every problem",
    ),
    "print-config": CommandEntry(
        "configuration:PRINT_CONFIG", "print the configuration in force, defaults included, secrets masked"
    ),
    "schema": CommandEntry("configuration:SCHEMA", "print a JSON schema for editors and CI"),
    "replay": CommandEntry("replay:REPLAY", "grade recorded traffic offline"),
    "import": CommandEntry(
        "import_criteria:IMPORT",
        "write a criteria file from an evaluation folder of UiPath or a suite of Letta",
    ),
    "learn": CommandEntry("learn:LEARN", "propose criteria from good runs"),
    "baseline": CommandEntry(
        "baseline:BASELINE", "pin the scores of a release, for alerts to compare later scores with"
    ),
    "rules": CommandEntry(
        "rules:RULES", "write Prometheus rules (recording and alerting) for your objectives"
    ),
    "agents": CommandEntry(
        "stored_runs:AGENTS", "list the agents in a run store, with the outcomes of their runs"
    ),
    "runs": CommandEntry("stored_runs:RUNS", "search a run store"),
    "show": CommandEntry("stored_runs:SHOW", "print the runs of a trace from a run store"),
    "redrive": CommandEntry(
        "redrive:REDRIVE", "resend what backends rejected permanently (service.dead_letters)"
    ),
    "demo": CommandEntry(
        "demo:DEMO", "start the service, send it traffic of scripted agents, show the verdicts"
    ),
    "health": CommandEntry("health:HEALTH", "check whether a running service is ready; exit code 0 or 1"),
    "doctor": CommandEntry(
        "doctor:DOCTOR", "send a trace through every hop of the configuration and report what does not work"
    ),
    "journal": CommandEntry("journal:JOURNAL", "inspect a journal, or save its spans"),
}
"""By name, in the order of the help."""


def load_command(name: str) -> "Command":
    """The command called `name` in `COMMANDS`."""
    module, _, attribute = COMMANDS[name].location.partition(":")
    command: Command = getattr(import_module(f"{__name__}.{module}"), attribute)
    return command
