"""The command `tracegrade rules`: writes Prometheus rules."""

import argparse
import sys
from pathlib import Path

from collector.commands.arguments import (
    add_argument,
    add_config,
    add_output,
    argument_type,
    path_argument,
    path_text,
)
from collector.commands.command import EXIT_OK, Command, CommandContext
from collector.commands.offline import OfflineCriteria
from collector.commands.output import write_output
from collector.tools.alerting import (
    DASHBOARD_BASE,
    RUNBOOK_BASE,
    BaselinesFile,
    ModelT,
    ObjectivesFile,
    RuleInputs,
    TimeScale,
    Volume,
    VolumeFile,
    criteria_coverage,
    never_firing,
    objective_problems,
    read_data_file,
    rules_text,
    volume_on_server,
)
from collector.tools.prometheus_api import PrometheusApi
from processors.documents import InvalidInput, LocatedYaml, Problem

_DESCRIPTION = """
Write a Prometheus rule file from objectives, the scores of a release (`tracegrade baseline`) and the volume
of results, so that no one has to edit PromQL. Without arguments it is the file that tracegrade ships.
Standard error lists the alerts that can never fire. Exit code 0: the rules were written; 2: unusable input.
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    in_force = (
        "the criteria in force, to check objectives against and to derive which evaluations must always "
        "report; may be given more than once"
    )
    scale = (
        "for trying alerts: multiplies every window, offset and `for` of the rules on agents, for example "
        "1/60 makes an hour a minute; those on tracegrade itself keep theirs. Shorten with it: "
        "scrape_interval and evaluation_interval of Prometheus to a fifth of the shortest window (5m at 1/60 "
        "is 5s: 1s) and its --query.lookback-delta to some of these, group_wait and group_interval of "
        "Alertmanager, and group_by_trace.root_grace of tracegrade (default: 1)"
    )
    default = "default: %(default)s"
    add_argument(parser, "--criteria", path_text, "FILE_OR_DIR", in_force, action="append")
    add_config(
        parser, "a service file: its custom evaluators are used, and its criteria unless --criteria is given"
    )
    targets = "targets and thresholds (default: 0.95 must pass)"
    scores = "the scores of a release, from `tracegrade baseline`"
    add_argument(parser, "--objectives", path_argument, "FILE", targets)
    add_argument(parser, "--baselines", path_argument, "FILE", scores)
    volume = parser.add_mutually_exclusive_group()
    add_argument(volume, "--volume", path_argument, "FILE", "results an hour, by agent and evaluation")
    add_argument(volume, "--prometheus", str, "URL", "measure the volume of the last seven days there")
    fraction = argument_type(TimeScale.parse)
    add_argument(parser, "--time-scale", fraction, "FRACTION", scale, default=TimeScale())
    add_argument(parser, "--runbook-base", _url, "URL", default, default=RUNBOOK_BASE)
    add_argument(parser, "--dashboard-base", _url, "URL", default, default=DASHBOARD_BASE)
    page = "the page, for links from alerts to their runs (default: page.public_url of --config)"
    add_argument(parser, "--page-base", _url, "URL", page)
    add_output(parser)


def _run(options: argparse.Namespace, context: CommandContext) -> int:
    inputs = _inputs(options, context)
    text = rules_text(inputs)
    write_output(options.output, text)
    for line in never_firing(inputs):
        print(line, file=sys.stderr)
    return EXIT_OK


def _inputs(options: argparse.Namespace, context: CommandContext) -> RuleInputs:
    """Read all files that the arguments name; raises InvalidInput with the problems of all of them."""
    problems: list[Problem] = []

    def read(path: Path | None, model: type[ModelT]) -> tuple[ModelT, LocatedYaml] | None:
        try:
            return None if path is None else read_data_file(path, model)
        except InvalidInput as error:
            problems.extend(error.problems)
            return None

    objectives = read(options.objectives, ObjectivesFile)
    baselines = read(options.baselines, BaselinesFile)
    volume = read(options.volume, VolumeFile)
    criteria = None
    try:
        if options.criteria or options.config:
            criteria = OfflineCriteria.from_file(options.config, context).load(options.criteria)
    except InvalidInput as error:
        problems += error.problems
    if criteria is not None and objectives is not None:
        problems += objective_problems(*objectives, criteria)
    if problems:
        raise InvalidInput(problems)
    measured: Volume = {}
    if options.prometheus is not None:
        now = context.clock.unix_nano() / 1e9
        measured = volume_on_server(PrometheusApi(options.prometheus), now)
    unconditional, quiet = criteria_coverage(criteria) if criteria is not None else ([], {})
    page = context.service_file(options.config).page if options.config else None
    return RuleInputs(
        objectives=objectives[0] if objectives else ObjectivesFile(),
        baselines=baselines[0] if baselines else None,
        volume=volume[0].volume() if volume else measured,
        unconditional=unconditional,
        quiet=quiet,
        scale=options.time_scale,
        runbook_base=options.runbook_base,
        dashboard_base=options.dashboard_base,
        page_base=options.page_base or (page and page.public_url) or "",
    )


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")) or "{{" in text:
        raise argparse.ArgumentTypeError(f"expected http://... or https://..., got {text!r}")
    return text.rstrip("/")


RULES = Command(_add_arguments, _run, _DESCRIPTION)
