"""The service file of a command that can do without one."""

from pathlib import Path
from typing import TYPE_CHECKING

from collector.commands.command import CommandContext

if TYPE_CHECKING:
    from collector.configuration import ServiceConfig


def load_service_file(path: Path | None, context: CommandContext) -> "ServiceConfig":
    """The service file at `path`; None: the defaults. Raises ProblemsFound."""
    # Checking it takes every component with its libraries, so this alone loads them.
    from collector.configuration import load_configuration

    return load_configuration(path, context.environment)
