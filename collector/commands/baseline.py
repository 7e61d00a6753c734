"""The command `tracegrade baseline`: pins the scores of a release, for alerts to compare later ones with.

The scores come from a Prometheus server that scrapes tracegrade, or from recorded traffic that is graded now.
Both give the mean of the live evaluations' scores by agent and evaluation, and of how many it is the mean.
"""

import argparse
import math
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

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
from collector.commands.output import print_warnings, write_output, write_whole
from collector.config_fields import format_duration
from collector.telemetry import OVERFLOW
from collector.tools.alerting import BaselinesFile, PinnedScore, quoted
from collector.tools.prometheus_api import PrometheusApi
from collector.workers.offline import OfflineWorkers
from processors.model import Stage

MIN_SAMPLES = 20
"""The alert rules need as many before they trust a mean."""

DEFAULT_WINDOW = "7d"

MAX_NAME_LENGTH = 200
"""Characters of the names in the file; the longest that `tracegrade rules` reads."""

_AGENT, _EVALUATION, _VERSION = "gen_ai_agent_name", "gen_ai_evaluation_name", "gen_ai_agent_version"
_DESCRIPTION = """
Write the mean score of every evaluation of every agent to a file for `tracegrade rules --baselines`: from a
Prometheus server that scrapes tracegrade, or from recorded traffic. Standard error lists the evaluations with
too few scores, which are left out. Exit code 0: the baseline was written; 2: there is nothing to pin, or the
answer or input is unusable.
"""

_ONLY_FOR_A_SERVER, _ONLY_FOR_PATHS = ("window", "label"), ("criteria", "config")
Scores = Mapping[tuple[str, str], PinnedScore]
"""By agent and evaluation name."""


def pin(
    scores: Scores, *, release: str, unix_nano: int, min_samples: int = MIN_SAMPLES
) -> tuple[BaselinesFile, list[str]]:
    """The baseline of a release from what was measured at `unix_nano`; what is not in it, with the reason.

    A mean of fewer than `min_samples` scores is too uncertain to be pinned.
    """
    agents: dict[str, dict[str, PinnedScore]] = {}
    left_out = []
    for (agent, evaluation), score in sorted(scores.items()):
        if score.samples < min_samples:
            left_out.append(f"{agent}: {evaluation}: {score.samples} of {min_samples} scores, not pinned")
        elif not all(0 < len(name) <= MAX_NAME_LENGTH for name in (agent, evaluation)):
            left_out.append(f"{agent[:40]}: {evaluation[:40]}: no name that a baseline can hold, not pinned")
        else:
            mean = round(score.mean, 6)
            agents.setdefault(agent, {})[evaluation] = PinnedScore(mean=mean, samples=score.samples)
    created = datetime.fromtimestamp(unix_nano // 1_000_000_000, UTC).isoformat().replace("+00:00", "Z")
    return BaselinesFile(release=release, created=created, agents=agents), left_out


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
    if bool(options.prometheus) == bool(options.paths):
        raise unusable("expected either --prometheus URL or recorded traffic in PATH")
    source, others = ("--prometheus", _ONLY_FOR_PATHS) if options.prometheus else ("PATH", _ONLY_FOR_A_SERVER)
    for name in others:
        if getattr(options, name):
            raise unusable(f"--{name} cannot be used with {source}")
    now = context.clock.unix_nano()
    scores = (
        _scores_on_server(options, now) if options.prometheus else _scores_of_paths(options, context, now)
    )
    baseline, left_out = pin(scores, release=options.release, unix_nano=now, min_samples=options.min_samples)
    for line in left_out:
        print(line, file=sys.stderr)
    pinned = sum(map(len, baseline.agents.values()))
    if not pinned:
        version = f" of version {options.version}" if options.version else ""
        reason = "no evaluation has enough scores" if left_out else f"no scores{version}"
        raise unusable(f"{reason}: nothing was written")
    write_output(options.output, baseline.model_dump_json(indent=2) + "\n", write_whole)
    print(f"{pinned} scores pinned, {len(left_out)} left out", file=sys.stderr)
    return EXIT_OK


def _scores_on_server(options: argparse.Namespace, now: int) -> Scores:
    """The scores in a Prometheus server, those of all tracegrade instances that it scrapes added up.

    What all agents without series of their own share is left out.
    """
    required = dict(options.label or ()) | ({} if options.version is None else {_VERSION: options.version})
    matchers = [
        f"{_AGENT}!={quoted(OVERFLOW)}",
        *(f"{name}={quoted(text)}" for name, text in required.items()),
    ]
    server = PrometheusApi(options.prometheus)
    window = format_duration(options.window) if options.window else DEFAULT_WINDOW
    totals = []
    for part in ("sum", "count"):
        series = f"gen_ai_evaluation_score_{part}{{{','.join(matchers)}}}"
        expression = f"sum by ({_AGENT}, {_EVALUATION}) (increase({series}[{window}]))"
        totals.append(server.by_evaluation(expression, now / 1e9))
    sums, counts = totals
    return {
        # `increase` extrapolates to the edges of the window, by the same factor in sum and count: the mean is
        # exact, the number of scores is not.
        key: PinnedScore(mean=min(max(sums[key] / count, 0.0), 1.0), samples=round(count))
        for key, count in counts.items()
        if key in sums and count > 0 and math.isfinite(sums[key] / count)
    }


def _scores_of_paths(options: argparse.Namespace, context: CommandContext, now: int) -> Scores:
    """The scores in recorded traffic, those of evaluations in shadow left out as in the live series."""
    offline = OfflineCriteria.from_file(options.config, context)
    criteria = offline.load([options.criteria] if options.criteria else None)
    by_evaluation: dict[tuple[str, str], list[float]] = {}
    with OfflineWorkers(offline.evaluators) as workers:
        stream = offline.read(options.paths, unix_nano=now, workers=workers)
        for graded in stream.grade(criteria):
            agent = graded.run.agent
            for result in graded.results if options.version in (None, agent.version) else ():
                if result.score is not None and result.stage is Stage.LIVE:
                    by_evaluation.setdefault((agent.name, result.name), []).append(result.score)
    print_warnings(stream.warnings)
    return {
        key: PinnedScore(mean=math.fsum(scores) / len(scores), samples=len(scores))
        for key, scores in by_evaluation.items()
    }


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
