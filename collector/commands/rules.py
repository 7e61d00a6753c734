"""The command `tracegrade rules`: its arguments, the data it reads, and what it tells people."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from collector.clock import Clock
from collector.commands.argument_types import path_argument, path_text
from collector.configuration.criteria_files import load_criteria
from collector.configuration.loading import load_configuration
from collector.tools.alerting.alerts import DASHBOARD_BASE, RUNBOOK_BASE, AlertLinks
from collector.tools.alerting.objectives import (
    BaselinesFile,
    ModelT,
    ObjectivesFile,
    Volume,
    VolumeFile,
    criteria_coverage,
    objective_problems,
    read_data_file,
)
from collector.tools.alerting.rules import RuleInputs, never_firing, rules_text
from collector.tools.alerting.windows import TimeScale, volume_on_server
from collector.tools.baseline.prometheus_api import PrometheusApi, PrometheusError
from collector.workers.custom_evaluators import load_custom_evaluators
from processors.criteria.agent_criteria import CriteriaSet
from processors.documents.located_yaml import LocatedYaml
from processors.documents.problem import Problem, ProblemsFound

HELP = "write Prometheus rules (recording and alerts) for your objectives"
DESCRIPTION = """
Write a Prometheus rule file from objectives, the scores of a release (`tracegrade baseline`) and the volume
of results, so that nobody edits PromQL. Without arguments it is the file that comes with tracegrade. Standard
error names the alerts that can never fire. Exit code 0: the rules were written; 2: unusable input.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add = parser.add_argument
    add(
        "--criteria",
        action="append",
        type=path_text,
        metavar="FILE_OR_DIR",
        help="the criteria in force, to check objectives against and to know which evaluations must never be "
        "silent; may be given more than once",
    )
    add(
        "--config",
        type=path_argument,
        metavar="FILE",
        help="a service file: its custom evaluators are known, and its criteria unless --criteria is given",
    )
    add(
        "--objectives",
        type=path_argument,
        metavar="FILE",
        help="targets and thresholds (default: 0.95 must pass)",
    )
    add(
        "--baselines",
        type=path_argument,
        metavar="FILE",
        help="the scores of a release, from `tracegrade baseline`",
    )
    volume = parser.add_mutually_exclusive_group().add_argument
    volume("--volume", type=path_argument, metavar="FILE", help="results an hour, by agent and evaluation")
    volume("--prometheus", metavar="URL", help="measure the volume of the last seven days there")
    add(
        "--time-scale",
        type=_time_scale,
        default=TimeScale(),
        metavar="FRACTION",
        help="multiplies every window, offset and `for`, for example 1/600 to try alerts out (default: 1)",
    )
    add("--runbook-base", type=_url, default=RUNBOOK_BASE, metavar="URL", help="default: %(default)s")
    add("--dashboard-base", type=_url, default=DASHBOARD_BASE, metavar="URL", help="default: %(default)s")
    add("--output", type=path_argument, metavar="FILE", help="default: standard output")


def run_rules(options: argparse.Namespace, environment: Mapping[str, str], clock: Clock) -> None:
    """Write the rules that the arguments ask for.

    Raises:
        ProblemsFound: nothing was written; why, a line each.
    """
    inputs = _inputs(options, environment, clock)
    text = rules_text(inputs)
    if options.output is None:
        print(text, end="")
    else:
        try:
            options.output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise _unusable(f"cannot write {options.output}: {error.strerror}") from error
    for line in never_firing(inputs):
        print(line, file=sys.stderr)


def _inputs(options: argparse.Namespace, environment: Mapping[str, str], clock: Clock) -> RuleInputs:
    """Everything that the arguments name, read; all problems of all files at once."""
    problems: list[Problem] = []

    def read(path: Path | None, model: type[ModelT]) -> tuple[ModelT, LocatedYaml] | None:
        try:
            return None if path is None else read_data_file(path, model)
        except ProblemsFound as error:
            problems.extend(error.problems)
            return None

    objectives = read(options.objectives, ObjectivesFile)
    baselines = read(options.baselines, BaselinesFile)
    volume = read(options.volume, VolumeFile)
    criteria = None
    try:
        criteria = _criteria(options, environment)
    except ProblemsFound as error:
        problems += error.problems
    if criteria is not None and objectives is not None:
        problems += objective_problems(*objectives, criteria)
    if problems:
        raise ProblemsFound(problems)
    coverage = criteria_coverage(criteria)
    return RuleInputs(
        objectives=objectives[0] if objectives else ObjectivesFile(),
        baselines=baselines[0] if baselines else None,
        volume=volume[0].volume() if volume else _measured_volume(options.prometheus, clock),
        unconditional=coverage.unconditional,
        quiet=coverage.quiet,
        scale=options.time_scale,
        links=AlertLinks(options.runbook_base, options.dashboard_base),
    )


def _criteria(options: argparse.Namespace, environment: Mapping[str, str]) -> CriteriaSet | None:
    if not options.criteria and not options.config:
        return None
    config = load_configuration(options.config, environment)
    known = load_custom_evaluators(config.processors.evaluation).known
    patterns = options.criteria or config.criteria_patterns()
    return load_criteria(patterns, environment=environment, evaluators=known)


def _measured_volume(url: str | None, clock: Clock) -> Volume:
    try:
        return {} if url is None else volume_on_server(PrometheusApi(url), clock.unix_nano() / 1e9)
    except PrometheusError as error:
        raise _unusable(str(error)) from error


def _unusable(message: str) -> ProblemsFound:
    return ProblemsFound([Problem("", 0, "", message)])


def _time_scale(text: str) -> TimeScale:
    try:
        return TimeScale.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")) or "{{" in text:
        raise argparse.ArgumentTypeError(f"expected http://... or https://..., got {text!r}")
    return text.rstrip("/")
