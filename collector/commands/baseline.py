"""The command `tracegrade baseline`: its arguments, where its scores come from, and what it tells people."""

import argparse
import re
import sys

from collector.commands.command import (
    EXIT_OK,
    Command,
    OfflineCriteria,
    Surroundings,
    add_argument,
    add_config,
    path_argument,
    path_text,
    tell_warnings,
    traffic_argument,
    unusable,
    write_output,
)
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
Write the mean score of every evaluation of every agent as a file for `tracegrade rules --baselines`: from a
Prometheus server that scrapes tracegrade, or from recorded traffic. Standard error names the evaluations with
too few scores, which are left out. Exit code 0: the baseline was written; 2: there is nothing to pin, or no
usable answer or input.
"""

_ONLY_FOR_A_SERVER, _ONLY_FOR_PATHS = ("window", "label"), ("criteria", "config")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    traffic = "recorded traffic, as `tracegrade replay` reads it"
    version = "only scores of agents of this version (gen_ai.agent.version)"
    fewer = "fewer scores are not pinned (default: %(default)s)"
    add_argument(parser, "paths", traffic_argument, "PATH", traffic, nargs="*")
    add_argument(parser, "--release", _name, "NAME", "the name that alerts show", required=True)
    add_argument(parser, "--version", str, "V", version)
    add_argument(parser, "--min-samples", _positive, "N", fewer, default=MIN_SAMPLES)
    add_argument(parser, "--output", path_argument, "FILE", "default: standard output")

    server = parser.add_argument_group("scores from a Prometheus server")
    back = f"how far back scores count (default: {DEFAULT_WINDOW})"
    label = "only series with this label; may be given more than once"
    add_argument(server, "--prometheus", str, "URL", "for example http://127.0.0.1:9090")
    add_argument(server, "--window", _window, "DURATION", back)
    add_argument(server, "--label", _label, "NAME=VALUE", label, action="append")

    recorded = parser.add_argument_group("scores from recorded traffic")
    built_in = "default: the built-in reference-free set"
    add_argument(recorded, "--criteria", path_text, "FILE_OR_DIR", built_in)
    add_config(recorded, "a service file: its dialects are read, and its criteria unless --criteria is given")


def _run(options: argparse.Namespace, surroundings: Surroundings) -> int:
    _check_source(options)
    now = surroundings.clock.unix_nano()
    if options.prometheus:
        scores = _scores_on_server(options, now)
    else:
        scores = _scores_of_paths(options, surroundings, now)
    baseline = pin(scores, release=options.release, unix_nano=now, min_samples=options.min_samples)
    for line in baseline.left_out:
        print(line, file=sys.stderr)
    if not baseline.pinned:
        version = f" of version {options.version}" if options.version else ""
        found = "no evaluation has enough scores" if baseline.left_out else f"no score{version} was found"
        raise unusable(f"{found}: nothing was written")
    write_output(options.output, baseline.text(), write_whole)
    print(f"{baseline.pinned} scores pinned, {len(baseline.left_out)} left out", file=sys.stderr)
    return EXIT_OK


def _check_source(options: argparse.Namespace) -> None:
    if bool(options.prometheus) == bool(options.paths):
        raise unusable("expected either --prometheus URL or recorded traffic in PATH")
    source, others = ("--prometheus", _ONLY_FOR_PATHS) if options.prometheus else ("PATH", _ONLY_FOR_A_SERVER)
    for name in others:
        if getattr(options, name):
            raise unusable(f"--{name} and {source} exclude each other")


def _scores_on_server(options: argparse.Namespace, now: int) -> Scores:
    return scores_on_server(
        PrometheusApi(options.prometheus),
        unix_nano=now,
        window=options.window or DEFAULT_WINDOW,
        version=options.version,
        labels=dict(options.label or ()),
    )


def _scores_of_paths(options: argparse.Namespace, surroundings: Surroundings, now: int) -> Scores:
    offline = OfflineCriteria(options.config, surroundings)
    criteria = offline.load([options.criteria] if options.criteria else None)
    with OfflineWorkers(offline.evaluators) as workers:
        stream = offline.read(options.paths, unix_nano=now, workers=workers)
        scores = scores_of_runs(stream.grade(criteria), options.version)
    tell_warnings(stream.warnings)
    return scores


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


COMMAND = Command(
    "baseline",
    "pin the scores of a release, for alerts to compare later scores with",
    _add_arguments,
    _run,
    _DESCRIPTION,
)
