"""The command `tracegrade baseline`: pins the scores of a release."""

import argparse
import re
import sys

from collector.commands.arguments import (
    CRITERIA_TO_GRADE_BY,
    RECORDED_TRAFFIC,
    add_argument,
    add_config,
    add_output,
    duration_argument,
    path_text,
    traffic_argument,
    whole_number,
)
from collector.commands.command import EXIT_OK, Command, CommandContext, unusable
from collector.commands.offline import OfflineCriteria
from collector.commands.output import print_warnings, write_output
from collector.config_fields import format_duration
from collector.tools.baseline import (
    DEFAULT_WINDOW,
    MAX_NAME_LENGTH,
    MIN_SAMPLES,
    Scores,
    pin,
    scores_of_runs,
    scores_on_server,
    write_whole,
)
from collector.tools.prometheus_api import PrometheusApi
from collector.workers.offline import OfflineWorkers

_DESCRIPTION = """
Write the mean score of every evaluation of every agent to a file for `tracegrade rules --baselines`: from a
Prometheus server that scrapes tracegrade, or from recorded traffic. Standard error lists the evaluations with
too few scores, which are left out. Exit code 0: the baseline was written; 2: there is nothing to pin, or the
answer or input is unusable.
"""

_ONLY_FOR_A_SERVER, _ONLY_FOR_PATHS = ("window", "label"), ("criteria", "config")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    version = "only scores of agents of this version (gen_ai.agent.version)"
    fewer = "evaluations with fewer scores are left out (default: %(default)s)"
    add_argument(parser, "paths", traffic_argument, "PATH", RECORDED_TRAFFIC, nargs="*")
    add_argument(
        parser, "--release", _name, "NAME", "the name of the release, shown in alerts", required=True
    )
    add_argument(parser, "--version", str, "V", version)
    add_argument(parser, "--min-samples", whole_number(1), "N", fewer, default=MIN_SAMPLES)
    add_output(parser)

    server = parser.add_argument_group("scores from a Prometheus server")
    back = f"how far back scores count (default: {DEFAULT_WINDOW})"
    label = "only series with this label; may be given more than once"
    add_argument(server, "--prometheus", str, "URL", "for example http://127.0.0.1:9090")
    add_argument(server, "--window", _window, "DURATION", back)
    add_argument(server, "--label", _label, "NAME=VALUE", label, action="append")

    recorded = parser.add_argument_group("scores from recorded traffic")
    add_argument(recorded, "--criteria", path_text, "FILE_OR_DIR", CRITERIA_TO_GRADE_BY)
    add_config(recorded, "a service file: its dialects are used, and its criteria unless --criteria is given")


def _run(options: argparse.Namespace, context: CommandContext) -> int:
    _check_source(options)
    now = context.clock.unix_nano()
    if options.prometheus:
        scores = _scores_on_server(options, now)
    else:
        scores = _scores_of_paths(options, context, now)
    baseline = pin(scores, release=options.release, unix_nano=now, min_samples=options.min_samples)
    for line in baseline.left_out:
        print(line, file=sys.stderr)
    if not baseline.pinned:
        version = f" of version {options.version}" if options.version else ""
        reason = "no evaluation has enough scores" if baseline.left_out else f"no scores{version}"
        raise unusable(f"{reason}: nothing was written")
    write_output(options.output, baseline.text(), write_whole)
    print(f"{baseline.pinned} scores pinned, {len(baseline.left_out)} left out", file=sys.stderr)
    return EXIT_OK


def _check_source(options: argparse.Namespace) -> None:
    if bool(options.prometheus) == bool(options.paths):
        raise unusable("expected either --prometheus URL or recorded traffic in PATH")
    source, others = ("--prometheus", _ONLY_FOR_PATHS) if options.prometheus else ("PATH", _ONLY_FOR_A_SERVER)
    for name in others:
        if getattr(options, name):
            raise unusable(f"--{name} cannot be used with {source}")


def _scores_on_server(options: argparse.Namespace, now: int) -> Scores:
    return scores_on_server(
        PrometheusApi(options.prometheus),
        unix_nano=now,
        window=format_duration(options.window) if options.window else DEFAULT_WINDOW,
        version=options.version,
        labels=dict(options.label or ()),
    )


def _scores_of_paths(options: argparse.Namespace, context: CommandContext, now: int) -> Scores:
    offline = OfflineCriteria.from_file(options.config, context)
    criteria = offline.load([options.criteria] if options.criteria else None)
    with OfflineWorkers(offline.evaluators) as workers:
        stream = offline.read(options.paths, unix_nano=now, workers=workers)
        scores = scores_of_runs(stream.grade(criteria), options.version)
    print_warnings(stream.warnings)
    return scores


def _name(text: str) -> str:
    if not 0 < len(text) <= MAX_NAME_LENGTH:
        raise argparse.ArgumentTypeError(f"expected 1 to {MAX_NAME_LENGTH} characters, got {len(text)}")
    return text


def _window(text: str) -> float:
    seconds = duration_argument(text)
    if seconds == 0:
        raise argparse.ArgumentTypeError(f"expected a duration above 0, got {text!r}")
    return seconds


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE such as job=tracegrade, got {text!r}")
    return name, value


BASELINE = Command(_add_arguments, _run, _DESCRIPTION)
