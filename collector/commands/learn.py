"""The command `tracegrade learn`: proposes criteria from runs that are taken as good."""

import sqlite3
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from functools import partial
from pathlib import Path

from collector.commands.arguments import (
    NEW_FILE,
    RECORDED_TRAFFIC,
    add_argument,
    add_config,
    add_flag,
    add_output,
    duration_argument,
    path_argument,
    share,
    traffic_argument,
    whole_number,
)
from collector.commands.command import EXIT_OK, Command, CommandContext, unusable
from collector.commands.offline import OfflineCriteria
from collector.commands.output import print_warnings, progress_bar, write_new, write_output
from collector.store import Reviews, RunFilter, RunQueries, StoreUnusable, open_store_file
from collector.text_file import read_text_file
from processors.annotation import graded_run_from_json, run_from_json
from processors.criteria import CriteriaSet, read_criteria, write_criteria
from processors.documents import InvalidInput
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
from processors.model import AgentRun, GradedRun, Outcome

_DESCRIPTION = """
Propose criteria from good runs: which tools are called, how often and in which order, what their arguments
look like, where their values come from and what they agree with, what follows from results, and how much a
run may consume. Standard error reports how often the criteria fail good runs that were held out, and how
many broken runs they catch. Exit code 0: criteria were written; 2: nothing can be learned, or the input is
unusable.
"""

_DEFAULT_ALARMS = 0.02
_DEFAULT_TESTS = 3
_OF_SERVICE = Path()
"""What `--store` is without a file."""


def _add_arguments(parser: ArgumentParser) -> None:
    only = "only the runs of this agent (default: every agent, each learned separately)"
    diff = "print the changes to this criteria file as a diff (with --output: write the updated file)"
    alarms = "the share of good runs that may fail; holds for its upper confidence bound (default: 2%%)"
    tests = "good runs of each agent that become tests of the criteria (default: %(default)s)"
    store = "good runs: those in this run store (without a value: the store of the service file)"
    outcome = "with --store, only runs with this outcome"
    add_argument(parser, "paths", traffic_argument, "PATH", f"good runs: {RECORDED_TRAFFIC}", nargs="*")
    add_argument(parser, "--store", path_argument, "FILE", store, nargs="?", const=_OF_SERVICE)
    parser.add_argument("--outcome", choices=[str(outcome) for outcome in Outcome], help=outcome)
    add_flag(
        parser,
        "--include-not-evaluated",
        "with --outcome pass, also runs that passed while checks that may alert gave no verdict",
    )
    add_argument(parser, "--agent", str, "NAME", only)
    add_argument(parser, "--tenant", str, "NAME", "only the runs of agents of this tenant")
    add_argument(
        parser,
        "--since",
        duration_argument,
        "DURATION",
        "only runs that began within this time, such as 7d or 12h",
    )
    add_output(parser, NEW_FILE)
    add_argument(parser, "--update", path_argument, "FILE", diff)
    add_argument(parser, "--max-false-alarms", share(), "SHARE", alarms, default=_DEFAULT_ALARMS)
    add_argument(parser, "--tests", whole_number(0, 100), "N", tests, default=_DEFAULT_TESTS)
    add_flag(parser, "--shadow", "write the criteria in the stage shadow, which raises no alert")
    add_config(parser, "a service file: its dialects, model prices and store are used")


def _run(options: Namespace, context: CommandContext) -> int:
    if bool(options.paths) == (options.store is not None):
        raise unusable("expected either PATH or --store")
    if options.outcome and options.store is None:
        raise unusable("--outcome requires --store: recorded traffic is not graded yet")
    source = _recorded_runs if options.store is None else _stored_runs
    matching = _matching(source(options, context), options, context.clock.unix_nano())
    if options.outcome == Outcome.PASS:
        matching = _evaluated(matching, includes_all=options.include_not_evaluated)
    runs = [graded.run for graded in matching]
    if not runs:
        raise unusable("no matching agent runs; nothing was written")
    tenants = sorted({run.tenant for run in runs})
    if len(tenants) > 1:
        shown = ", ".join(tenant or "(none)" for tenant in tenants)
        raise unusable(
            f"a criteria file is for one tenant, and these runs belong to {shown}: choose one with --tenant"
        )
    learned = _learn(runs, options)
    reread = partial(run_from_json, where="")
    texts = {item.agent: learned_text(item, reread, in_shadow=options.shadow) for item in learned}
    text = _updated(options, texts) if options.update else learned_file(texts, tenants[0])
    write_output(options.output, text, write_new)
    for item in learned:
        print("\n".join(_report(item, options.max_false_alarms)), file=sys.stderr)
    if options.store is not None:
        for line in _answers(learned, options, context):
            print(line, file=sys.stderr)
    return EXIT_OK


def _recorded_runs(options: Namespace, context: CommandContext) -> Iterator[GradedRun]:
    """The runs in the files that `PATH` names."""
    progress = progress_bar()
    stream = OfflineCriteria.from_file(options.config, context).read(options.paths, progress=progress)
    print_warnings(stream.warnings)
    yield from stream.grade(CriteriaSet(), progress)


def _stored_runs(options: Namespace, context: CommandContext) -> Iterator[GradedRun]:
    """The runs in a store, the newest first, without those with a pass that is answered as wrong."""
    matching = RunFilter(
        agent=options.agent or "", tenant=options.tenant or "", outcome=options.outcome or ""
    )
    wrong = 0
    try:
        queries = _store(options, context)
        answers = Reviews(queries).wrong_outcomes()
        for summary, line in queries.each(matching):
            if Outcome.PASS in answers.get((summary.trace_id, summary.span_id), ()):
                wrong += 1
            elif line is not None:
                yield graded_run_from_json(line, f"{queries.database.path}:{summary.id}")
    except (StoreUnusable, sqlite3.Error) as error:
        raise unusable(str(error)) from error
    if wrong:
        print(f"left out: {wrong} runs with a pass that was answered as wrong", file=sys.stderr)


def _store(options: Namespace, context: CommandContext) -> RunQueries:
    path: Path | None = options.store
    if path is _OF_SERVICE:
        path = context.service_file(options.config).store.path
    if path is None:
        raise unusable("--store: the service file sets no store.path")
    return RunQueries(open_store_file(path))


def _answers(learned: Sequence[Learned], options: Namespace, context: CommandContext) -> Iterator[str]:
    """What people answered to evaluations that were learned before, a line each."""
    agents = {item.agent for item in learned}
    for of, answers in Reviews(_store(options, context)).precision().items():
        if of.agent in agents and of.evaluation.startswith("learned-") and str(answers):
            yield f"{of.agent}: answers to {' '.join(filter(None, (of.evaluation, of.rule)))}: {answers}"


def _matching(runs: Iterable[GradedRun], options: Namespace, now: int) -> Iterator[GradedRun]:
    earliest = 0 if options.since is None else now - round(options.since * 1e9)
    for graded in runs:
        run = graded.run
        is_chosen = options.agent in (None, run.agent.name) and options.tenant in (None, run.tenant)
        if is_chosen and not run.stands_for_trace and run.start_unix_nano >= earliest:
            yield graded


def _evaluated(runs: Iterable[GradedRun], *, includes_all: bool) -> Iterator[GradedRun]:
    """The runs of which every check that may alert gave a verdict; standard error reports the others.

    With `includes_all` the others are reported and included.
    """
    checks: Counter[str] = Counter()
    incomplete = 0
    for graded in runs:
        missing = {
            result.name
            for result in graded.results
            if result.outcome is Outcome.NOT_EVALUATED and result.counts
        }
        checks.update(missing)
        incomplete += bool(missing)
        if includes_all or not missing:
            yield graded
    if incomplete:
        names = ", ".join(f"{name} in {count}" for name, count in checks.most_common())
        what = "included" if includes_all else "left out (--include-not-evaluated includes them)"
        print(f"{what}: {incomplete} runs that passed without a verdict of {names}", file=sys.stderr)


def _learn(runs: Sequence[AgentRun], options: Namespace) -> list[Learned]:
    by_agent: dict[str, list[AgentRun]] = {}
    for run in runs:
        by_agent.setdefault(run.agent.name, []).append(run)
    learned: list[Learned] = []
    problems: list[str] = []
    progress = progress_bar()
    for agent, of_agent in sorted(by_agent.items()):
        try:
            read_criteria(write_criteria(agent, []), "", {})
            steps = iter(progress(range(STEPS * len(of_agent)), f"Learning from {agent}"))
            learned.append(
                learn(
                    agent,
                    of_agent,
                    max_false_alarms=options.max_false_alarms,
                    examples=options.tests,
                    advance=partial(next, steps, None),
                )
            )
            deque(steps, maxlen=0)  # clears the progress bar
        except TooFewRunsError as error:
            problems.append(str(error))
        except (ValueError, InvalidInput) as error:
            problems.append(f"criteria cannot name the agent {agent!r}: {error}")
    if not learned:
        raise unusable("; ".join(problems))
    for problem in problems:
        print(f"left out: {problem}", file=sys.stderr)
    return learned


def _updated(options: Namespace, texts: Mapping[str, LearnedText]) -> str:
    """The updated criteria file, or, where nothing is to be written, the difference to it."""
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
        f"{learned.given_up} rules were dropped"
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


LEARN = Command(_add_arguments, _run, _DESCRIPTION)
