"""The command `tracegrade learn`: proposes criteria from runs that are taken as good."""

import argparse
import re
import sqlite3
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import unified_diff
from functools import partial
from pathlib import Path

from rich.progress import Progress

from collector.commands.command import (
    EXIT_OK,
    Command,
    OfflineCriteria,
    Surroundings,
    add_argument,
    add_config,
    path_argument,
    progress_console,
    tell_warnings,
    traffic_argument,
    unusable,
    write_new,
    write_output,
)
from collector.recordings import run_from_json
from collector.store import MAX_FOUND, RunFilter, RunQueries, StoreUnusable, open_store_file
from collector.text_file import read_text_file
from processors.criteria import CriteriaSet, read_criteria
from processors.documents import ProblemsFound
from processors.importers import write_criteria
from processors.learning import (
    CONFIDENCE,
    STEPS,
    Learned,
    LearnedText,
    TooFewRunsError,
    learn,
    learned_file,
    learned_text,
    updated_file,
    upper_bound,
)
from processors.model import AgentRun, Outcome

_DESCRIPTION = """
Propose criteria from good runs: which tools are called, how often and in which order, what their arguments
look like and where they come from, and what a run may take. Standard error tells how often the criteria fail
good runs that took no part in choosing them, and how many broken runs they catch. Exit code 0: criteria were
written; 2: nothing can be learned, or unusable input.
"""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DEFAULT_ALARMS = 0.02
_DEFAULT_TESTS = 3
_OF_SERVICE = Path()
"""What `--store` is without a file."""


def _add_arguments(parser: ArgumentParser) -> None:
    traffic = "good runs: recorded traffic, as `tracegrade replay` reads it"
    only = "only the runs of this agent (default: those of each agent, by itself)"
    diff = "print what changes in this criteria file as a diff (with --output: write the file as it becomes)"
    alarms = "how many good runs may fail, as a share with its upper bound (default: 2%%)"
    tests = "good runs of each agent that become tests of the criteria (default: %(default)s)"
    store = "good runs: those in this store of a service (default: the store of the service file)"
    outcome = "with --store, only runs that ended so"
    add_argument(parser, "paths", traffic_argument, "PATH", traffic, nargs="*")
    add_argument(parser, "--store", path_argument, "FILE", store, nargs="?", const=_OF_SERVICE)
    add_argument(parser, "--outcome", str, "OUTCOME", outcome, choices=[outcome.value for outcome in Outcome])
    add_argument(parser, "--agent", str, "NAME", only)
    add_argument(parser, "--tenant", str, "NAME", "only the runs of agents of this tenant")
    add_argument(parser, "--since", _ago, "DURATION", "only runs that began since then, such as 7d or 12h")
    absent = "a file that is not there yet (default: standard output)"
    add_argument(parser, "--output", path_argument, "FILE", absent)
    add_argument(parser, "--update", path_argument, "FILE", diff)
    add_argument(parser, "--max-false-alarms", _share, "SHARE", alarms, default=_DEFAULT_ALARMS)
    add_argument(parser, "--tests", _count, "N", tests, default=_DEFAULT_TESTS)
    parser.add_argument(
        "--shadow", action="store_true", help="write the criteria in the stage shadow, which alerts nobody"
    )
    add_config(parser, "a service file: its dialects, model prices and store are read")


def _run(options: Namespace, surroundings: Surroundings) -> int:
    if bool(options.paths) == (options.store is not None):
        raise unusable("expected PATH or --store, one of them")
    if options.outcome and options.store is None:
        raise unusable("--outcome goes with --store: recorded traffic has not been graded")
    source = _recorded_runs if options.store is None else _stored_runs
    runs = _wanted(source(options, surroundings), options, surroundings.clock.unix_nano())
    if not runs:
        raise unusable("no agent run was found that is wanted here: nothing was written")
    tenants = sorted({run.tenant for run in runs})
    if len(tenants) > 1:
        shown = ", ".join(tenant or "(none)" for tenant in tenants)
        raise unusable(
            f"a criteria file is for one tenant, and these runs are of {shown}: choose with --tenant"
        )
    learned = _learn(runs, options)
    reread = partial(run_from_json, where="")
    texts = {item.agent: learned_text(item, reread, in_shadow=options.shadow) for item in learned}
    text = _updated(options, texts) if options.update else learned_file(texts, tenants[0])
    write_output(options.output, text, write_new)
    for item in learned:
        print("\n".join(_report(item, options.max_false_alarms)), file=sys.stderr)
    return EXIT_OK


def _recorded_runs(options: Namespace, surroundings: Surroundings) -> Iterator[AgentRun]:
    """The runs in the files that `PATH` names."""
    progress = progress_console()
    stream = OfflineCriteria(options.config, surroundings).read(options.paths, progress=progress)
    tell_warnings(stream.warnings)
    for graded in stream.grade(CriteriaSet(), progress):
        yield graded.run


def _stored_runs(options: Namespace, surroundings: Surroundings) -> Iterator[AgentRun]:
    """The runs in a store, the newest first."""
    path: Path | None = options.store
    if path is _OF_SERVICE:
        path = OfflineCriteria(options.config, surroundings).config.store.path
    if path is None:
        raise unusable("--store: the service file has no store.path, where runs would be kept")
    wanted = RunFilter(agent=options.agent or "", tenant=options.tenant or "", outcome=options.outcome or "")
    try:
        queries = RunQueries(open_store_file(path))
        while found := queries.find(wanted, MAX_FOUND):
            for summary in found:
                line = queries.line(summary.id)
                if line is not None:  # else it was removed since
                    yield run_from_json(line, f"{path}:{summary.id}")
            wanted = replace(wanted, before=found[-1].id)
    except (StoreUnusable, sqlite3.Error) as error:
        raise unusable(str(error)) from error


def _wanted(runs: Iterable[AgentRun], options: Namespace, now: int) -> list[AgentRun]:
    earliest = 0 if options.since is None else now - options.since * 1_000_000_000
    return [
        run
        for run in runs
        if run.start_unix_nano >= earliest
        and options.agent in (None, run.agent.name)
        and options.tenant in (None, run.tenant)
    ]


def _learn(runs: Sequence[AgentRun], options: Namespace) -> list[Learned]:
    by_agent: dict[str, list[AgentRun]] = {}
    for run in runs:
        by_agent.setdefault(run.agent.name, []).append(run)
    learned: list[Learned] = []
    problems: list[str] = []
    for agent, of_agent in sorted(by_agent.items()):
        try:
            read_criteria(write_criteria(agent, []), "", {})
            with _progress(agent, STEPS * len(of_agent)) as advance:
                learned.append(
                    learn(
                        agent,
                        of_agent,
                        max_false_alarms=options.max_false_alarms,
                        examples=options.tests,
                        advance=advance,
                    )
                )
        except TooFewRunsError as error:
            problems.append(str(error))
        except (ValueError, ProblemsFound) as error:
            problems.append(f"criteria cannot name the agent {agent!r}: {error}")
    if not learned:
        raise unusable("; ".join(problems))
    for problem in problems:
        print(f"left out: {problem}", file=sys.stderr)
    return learned


@contextmanager
def _progress(agent: str, total: int) -> Iterator[Callable[[], object]]:
    console = progress_console()
    if console is None:
        yield lambda: None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(f"Learning from {agent}", total=total)
        yield lambda: progress.advance(task)


def _updated(options: Namespace, texts: Mapping[str, LearnedText]) -> str:
    """The criteria file to update as it becomes, or, where nothing is to be written, the difference."""
    name = str(options.update)
    old = read_text_file(options.update)
    new = updated_file(old, name, texts)
    if options.output is not None:
        return new
    return "".join(unified_diff(old.splitlines(True), new.splitlines(True), name, name))


def _report(learned: Learned, max_false_alarms: float) -> Iterator[str]:
    rules = sum(len(evaluation.rules) for evaluation in learned.evaluations)
    yield (
        f"{learned.agent}: {len(learned.evaluations)} evaluations of {rules} rules from {learned.runs} runs; "
        f"{learned.given_up} rules were given up"
    )
    bound = upper_bound(learned.false_alarms, learned.held_out)
    yield (
        f"  false alarms: {learned.false_alarms} of {learned.held_out} runs held out "
        f"({_percent(learned.false_alarms, learned.held_out)}, at most {bound:.1%} with {CONFIDENCE:.0%} "
        f"confidence); in cross-validation {learned.chosen_alarms} of {learned.runs}, at most "
        f"{learned.chosen_bound:.1%}"
    )
    if learned.runs_needed is not None:
        yield (
            f"  too few runs to show at most {max_false_alarms:.1%}: about {learned.runs_needed} complete "
            "runs are needed; until then only rules without any false alarm are proposed"
        )
    whole, structural = learned.caught_over_all, learned.caught_structural
    yield (
        f"  broken runs caught: {whole.caught} of {whole.broken} ({_percent(whole.caught, whole.broken)}); "
        f"with a missing, forbidden or reordered call {structural.caught} of {structural.broken} "
        f"({_percent(structural.caught, structural.broken)})"
    )
    for kind, caught in learned.caught.items():
        yield f"    {kind}: {caught.caught} of {caught.broken}"


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"


def _ago(text: str) -> int:
    found = re.fullmatch(r"([0-9]+)([smhdw])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a duration such as 12h or 7d, got {text!r}")
    return int(found[1]) * _UNITS[found[2]]


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"expected a share such as 2% or 0.02, got {text!r}")
    return share


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > 100:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 100, got {text!r}")
    return int(text)


COMMAND = Command("learn", "propose criteria from good runs", _add_arguments, _run, _DESCRIPTION.strip())
