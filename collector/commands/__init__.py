"""The commands of `tracegrade`, in the order of its help."""

from collector.commands import (
    baseline,
    configuration,
    demo,
    doctor,
    health,
    import_criteria,
    journal,
    learn,
    redrive,
    replay,
    rules,
    run,
    stored_runs,
)
from collector.commands.command import (
    EXIT_OK,
    EXIT_UNUSABLE,
    Command,
    Surroundings,
    give_up_output,
)

__all__ = ["COMMANDS", "EXIT_OK", "EXIT_UNUSABLE", "Command", "Surroundings", "give_up_output"]

COMMANDS: tuple[Command, ...] = (
    run.COMMAND,
    *configuration.COMMANDS,
    replay.COMMAND,
    import_criteria.COMMAND,
    learn.COMMAND,
    baseline.COMMAND,
    rules.COMMAND,
    *stored_runs.COMMANDS,
    redrive.COMMAND,
    demo.COMMAND,
    health.COMMAND,
    doctor.COMMAND,
    journal.COMMAND,
)
