"""The command `tracegrade baseline`: its arguments, where its scores come from, and what it tells people."""

import argparse
import re
import sys
from collections.abc import Mapping

from collector.clock import Clock
from collector.commands.argument_types import path_argument, path_text, traffic_argument
from collector.configuration.criteria_files import load_criteria
from collector.configuration.loading import load_configuration
from collector.recordings.recorded_stream import RecordedStream
from collector.tools.baseline.prometheus_api import PrometheusApi, PrometheusError
from collector.tools.baseline.release_baseline import (
    DEFAULT_WINDOW,
    MAX_NAME_LENGTH,
    MIN_SAMPLES,
    Scores,
    pin,
    scores_of_runs,
    scores_on_server,
    write_baseline,
)
from collector.workers.custom_evaluators import load_custom_evaluators
from collector.workers.offline import OfflineWorkers
from processors.documents.problem import Problem, ProblemsFound

HELP = "pin the scores of a release, for alerts to compare later scores with"
DESCRIPTION = """
Write the mean score of every evaluation of every agent as a file for `tracegrade rules --baselines`: from a
Prometheus server that scrapes tracegrade, or from recorded traffic. Standard error names the evaluations with
too few scores, which are left out. Exit code 0: the baseline was written; 2: there is nothing to pin, or no
usable answer or input.
"""

_ONLY_FOR_A_SERVER, _ONLY_FOR_PATHS = ("window", "label"), ("criteria", "config")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    add = parser.add_argument
    add(
        "paths",
        nargs="*",
        type=traffic_argument,
        metavar="PATH",
        help="recorded traffic, as `tracegrade replay` reads it",
    )
    add("--release", required=True, type=_name, metavar="NAME", help="the name that alerts show")
    add("--version", metavar="V", help="only scores of agents of this version (gen_ai.agent.version)")
    add(
        "--min-samples",
        type=_positive,
        default=MIN_SAMPLES,
        metavar="N",
        help="fewer scores are not pinned (default: %(default)s)",
    )
    add("--output", type=path_argument, metavar="FILE", help="default: standard output")

    server = parser.add_argument_group("scores from a Prometheus server").add_argument
    server("--prometheus", metavar="URL", help="for example http://127.0.0.1:9090")
    server(
        "--window",
        type=_window,
        metavar="DURATION",
        help=f"how far back scores count (default: {DEFAULT_WINDOW})",
    )
    server(
        "--label",
        action="append",
        type=_label,
        metavar="NAME=VALUE",
        help="only series with this label; may be given more than once",
    )

    recorded = parser.add_argument_group("scores from recorded traffic").add_argument
    recorded(
        "--criteria", type=path_text, metavar="FILE_OR_DIR", help="default: the built-in reference-free set"
    )
    recorded(
        "--config",
        type=path_argument,
        metavar="FILE",
        help="a service file: its dialects are read, and its criteria unless --criteria is given",
    )


def run_baseline(options: argparse.Namespace, environment: Mapping[str, str], clock: Clock) -> None:
    """Write the baseline that the arguments ask for.

    Raises:
        ProblemsFound: nothing was written; why, a line each.
    """
    _check_source(options)
    now = clock.unix_nano()
    if options.prometheus:
        scores = _scores_on_server(options, now)
    else:
        scores = _scores_of_paths(options, environment, now)
    baseline = pin(scores, release=options.release, unix_nano=now, min_samples=options.min_samples)
    for line in baseline.left_out:
        print(line, file=sys.stderr)
    if not baseline.pinned:
        version = f" of version {options.version}" if options.version else ""
        found = "no evaluation has enough scores" if baseline.left_out else f"no score{version} was found"
        raise _unusable(f"{found}: nothing was written")
    if options.output is None:
        print(baseline.text(), end="")
    else:
        try:
            write_baseline(baseline, options.output)
        except OSError as error:
            raise _unusable(f"cannot write {options.output}: {error.strerror}") from error
    print(f"{baseline.pinned} scores pinned, {len(baseline.left_out)} left out", file=sys.stderr)


def _check_source(options: argparse.Namespace) -> None:
    if bool(options.prometheus) == bool(options.paths):
        raise _unusable("expected either --prometheus URL or recorded traffic in PATH")
    source, others = ("--prometheus", _ONLY_FOR_PATHS) if options.prometheus else ("PATH", _ONLY_FOR_A_SERVER)
    for name in others:
        if getattr(options, name):
            raise _unusable(f"--{name} and {source} exclude each other")


def _scores_on_server(options: argparse.Namespace, now: int) -> Scores:
    try:
        return scores_on_server(
            PrometheusApi(options.prometheus),
            unix_nano=now,
            window=options.window or DEFAULT_WINDOW,
            version=options.version,
            labels=dict(options.label or ()),
        )
    except PrometheusError as error:
        raise _unusable(str(error)) from error


def _scores_of_paths(options: argparse.Namespace, environment: Mapping[str, str], now: int) -> Scores:
    config = load_configuration(options.config, environment)
    patterns = [options.criteria] if options.criteria else config.criteria_patterns()
    evaluators = load_custom_evaluators(config.processors.evaluation)
    criteria = load_criteria(patterns, environment=environment, evaluators=evaluators.known)
    with OfflineWorkers(evaluators) as workers:
        stream = RecordedStream(unix_nano=now, dialects=config.own_dialects(), workers=workers)
        if problems := stream.read(options.paths):
            raise ProblemsFound(problems)
        scores = scores_of_runs(stream.grade(criteria), options.version)
    for warning in stream.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    return scores


def _unusable(message: str) -> ProblemsFound:
    return ProblemsFound([Problem("", 0, "", message)])


def _name(text: str) -> str:
    if not 0 < len(text) <= MAX_NAME_LENGTH:
        raise argparse.ArgumentTypeError(f"expected 1 to {MAX_NAME_LENGTH} characters, got {len(text)}")
    return text


def _window(text: str) -> str:
    if not re.fullmatch(r"([0-9]+(ms|[smhdwy]))+", text) or not re.search("[1-9]", text):
        raise argparse.ArgumentTypeError(f"expected a duration such as 12h or 7d, got {text!r}")
    return text


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE such as job=tracegrade, got {text!r}")
    return name, value


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r}")
    return int(text)
