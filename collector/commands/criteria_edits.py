"""The commands `promote` and `mute`: they change evaluations in criteria files, and nothing else in these."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from difflib import unified_diff
from fnmatch import fnmatchcase
from pathlib import Path

from collector.commands.arguments import (
    add_argument,
    add_config,
    add_flag,
    duration_argument,
    moment_argument,
    path_text,
)
from collector.commands.command import EXIT_OK, Command, CommandContext, unusable
from collector.commands.offline import OfflineCriteria
from collector.commands.output import write_whole
from collector.config_fields import parse_moment
from collector.text_file import read_text_file
from processors.criteria import Change, CriteriaSet, edit_evaluations, evaluation_name, read_criteria
from processors.documents import did_you_mean
from processors.model import JsonObject, Stage, time_text

_TO_THE_SECOND = len("2026-01-31T08:00:00")
_PROMOTE = """
Make evaluations in shadow live: their results count, alert and decide exit codes. Prints the changes as a
diff. Exit code 0: the files are as requested; 2: there is no such evaluation, or a file cannot be changed.
"""
_MUTE = """
Keep known failures of evaluations from alerting and from deciding exit codes until a moment, or no longer.
Prints the changes as a diff. Exit code 0: the files are as requested; 2: there is no such evaluation, or a
file cannot be changed.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    names = "names of evaluations, or patterns such as 'learned-*'"
    files = "the criteria files to change (default: those of the service file)"
    parser.add_argument("evaluations", metavar="EVALUATION", nargs="+", help=names)
    add_argument(parser, "--agent", str, "NAME", "only in the criteria of this agent, or for this pattern")
    add_argument(parser, "--criteria", path_text, "FILE_OR_DIR", files)
    add_config(parser, "a service file, which names the criteria files")
    add_flag(parser, "--dry-run", "only print the changes")


def _add_mute_arguments(parser: ArgumentParser) -> None:
    _add_arguments(parser)
    until = "when the mute ends: a date, which is 00:00 UTC at its start, or a time"
    end = parser.add_mutually_exclusive_group(required=True)
    add_argument(end, "--until", moment_argument, "TIME", until)
    add_argument(end, "--for", duration_argument, "DURATION", "how long the mute lasts", dest="duration")
    add_flag(end, "--off", "end the mute")
    add_argument(parser, "--reason", str, "TEXT", "why failures are muted")
    add_argument(parser, "--by", str, "NAME", "who mutes them (default: the user of this process)")


def _promote(options: Namespace, context: CommandContext) -> int:
    def promoted(entry: JsonObject) -> Change:
        return {"stage": None} if entry.get("stage") == Stage.SHADOW else {}

    return _edit(options, context, promoted, "is in shadow")


def _mute(options: Namespace, context: CommandContext) -> int:
    if options.off:
        return _edit(options, context, lambda entry: {"mute": None} if "mute" in entry else {}, "is muted")
    by = options.by or context.environment.get("USER") or context.environment.get("LOGNAME")
    if not options.reason or not by:
        raise unusable(f"expected --{'by NAME' if options.reason else 'reason TEXT'}")
    if "${" in options.reason + by:
        raise unusable('--reason and --by cannot contain "${"')
    now = context.clock.unix_nano()
    until = now + round((options.duration or 0.0) * 1e9)
    if options.until is not None:
        until = parse_moment(options.until, now // 1_000_000) * 1_000_000
    if until <= now:
        raise unusable("the mute would have ended already: a date is 00:00 UTC at its start")
    shown = f"{time_text(until)[:_TO_THE_SECOND]}Z"
    mute: JsonObject = {"until": shown, "reason": options.reason, "by": by}
    code = _edit(options, context, lambda entry: {"mute": mute}, "")
    print(f"muted until {shown}", file=sys.stderr)
    return code


def _edit(
    options: Namespace, context: CommandContext, change: Callable[[JsonObject], Change], state: str
) -> int:
    """Change the evaluations that `options` name; `state` is what those are in that change."""
    offline = OfflineCriteria.from_file(options.config, context)
    criteria = offline.load([options.criteria] if options.criteria else None)
    names: set[str] = set()
    agents: set[str] = set()
    matches = 0

    def changed(agent: str, entry: JsonObject) -> Change | None:
        nonlocal matches
        name = evaluation_name(entry)
        agents.add(agent)
        if options.agent not in (None, agent):
            return None
        names.add(name)
        if not any(fnmatchcase(name, pattern) for pattern in options.evaluations):
            return None
        matches += 1
        return change(entry)

    edited = []
    for file in _files(criteria):
        old = read_text_file(file)
        new = edit_evaluations(old, str(file), changed)
        if new != old:
            read_criteria(new, str(file), context.environment, offline.evaluators.known)
            edited.append((file, old, new))
    if options.agent not in (None, *agents):
        known = sorted(agents)
        raise unusable(f'--agent: no agent "{options.agent}"{did_you_mean(options.agent, known)}')
    if not matches:
        hint = did_you_mean(options.evaluations[0], sorted(names))
        raise unusable(f'no evaluation "{" ".join(options.evaluations)}" in the criteria files{hint}')
    if not edited:
        print(f"no change: none of the {matches} evaluations {state or 'differs'}", file=sys.stderr)
    for file, old, new in edited:
        name = str(file)
        print("".join(unified_diff(old.splitlines(True), new.splitlines(True), name, name)), end="")
        if not options.dry_run:
            write_whole(file, new)
    return EXIT_OK


def _files(criteria: CriteriaSet) -> Iterator[Path]:
    """The files of criteria that people write."""
    sources = [agent.source.rpartition(":")[0] for agent in criteria.agents if not agent.is_builtin]
    return map(Path, dict.fromkeys(sources))


PROMOTE = Command(_add_arguments, _promote, _PROMOTE)
MUTE = Command(_add_mute_arguments, _mute, _MUTE)
