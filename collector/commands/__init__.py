"""The commands of `tracegrade`. A command's module, with all it needs, is loaded when it is chosen."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.commands.command import Command

__all__ = ["COMMANDS", "load_command"]

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("run", "run the service (without a file: on this machine only, results on console and page)"),
    "validate": (
        "configuration",
        "check the service file and the criteria, and run their tests; prints every problem",
    ),
    "print-config": ("configuration", "print the configuration in force, defaults included, secrets masked"),
    "schema": ("configuration", "print a JSON schema for editors and CI"),
    "replay": ("replay", "grade recorded traffic offline"),
    "import": ("import_criteria", "write a criteria file from a UiPath evaluation folder or a Letta suite"),
    "learn": ("learn", "propose criteria from good runs"),
    "promote": ("criteria_edits", "make evaluations in shadow live, in the criteria files"),
    "mute": ("criteria_edits", "keep known failures of evaluations from alerting, in the criteria files"),
    "baseline": ("baseline", "pin the scores of a release, for alerts to compare later scores with"),
    "rules": ("rules", "write Prometheus rules (recording and alerting) for your objectives"),
    "agents": ("stored_runs", "list the agents in a run store, with the outcomes of their runs"),
    "runs": ("stored_runs", "search a run store"),
    "show": ("stored_runs", "print the runs of a trace from a run store"),
    "regrade": ("regrade", "grade the runs in a store by other criteria, and print which verdicts change"),
    "reviews": ("reviews", "answer whether verdicts are right, and list the answers"),
    "redrive": ("redrive", "resend what backends rejected permanently (service.dead_letters)"),
    "demo": ("demo", "start the service, send it traffic of scripted agents, show the verdicts"),
    "health": ("health", "check whether a running service is ready; exit code 0 or 1"),
    "doctor": ("doctor", "send a trace through every hop of the configuration and report what does not work"),
    "journal": ("journal", "inspect a journal, or save its spans"),
}
"""The module of each command in this package and its line in the help, by name, in the order of the help."""


def load_command(name: str) -> "Command":
    """The command called `name` in `COMMANDS`: a constant of that name in its module."""
    module = import_module(f"{__name__}.{COMMANDS[name][0]}")
    command: Command = getattr(module, name.upper().replace("-", "_"))
    return command
