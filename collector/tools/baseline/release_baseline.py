"""Pins the scores of a release: what `tracegrade rules --baselines` compares later scores with.

The scores come from a Prometheus server that scrapes tracegrade, or from recorded traffic that is graded now.
Both give the mean of the live evaluations' scores by agent and evaluation, and of how many it is the mean.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from collector.telemetry import OVERFLOW
from collector.tools.alerting import BaselinesFile, PinnedScore, quoted
from collector.tools.prometheus_api import PrometheusApi
from processors.model import GradedRun, Stage

MIN_SAMPLES = 20
"""The alert rules need as many before they trust a mean."""

DEFAULT_WINDOW = "7d"

MAX_NAME_LENGTH = 200
"""Characters of the names in the file; the longest that `tracegrade rules` reads."""

_AGENT, _EVALUATION, _VERSION = "gen_ai_agent_name", "gen_ai_evaluation_name", "gen_ai_agent_version"


Scores = Mapping[tuple[str, str], PinnedScore]
"""By agent and evaluation name."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The scores of a release.

    `file` is what `tracegrade rules --baselines` reads; `pinned` counts its scores. `left_out` lists, a line
    each, which evaluations are not in it and why.
    """

    file: BaselinesFile
    pinned: int
    left_out: Sequence[str]

    def text(self) -> str:
        """The file's text: JSON, agents and evaluations in the order of their names."""
        return self.file.model_dump_json(indent=2) + "\n"


def scores_on_server(
    server: PrometheusApi,
    *,
    unix_nano: int,
    window: str = DEFAULT_WINDOW,
    version: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Scores:
    """The scores in a Prometheus server, those of all tracegrade instances that it scrapes added up.

    What all agents without series of their own share (`__overflow__`) is left out. The window, as PromQL
    writes it (`7d`, `1h30m`), ends at `unix_nano`. With a `version` (`gen_ai.agent.version`) or `labels` only
    series that have them count. Raises `PrometheusError`.
    """
    required = dict(labels or {}) | ({_VERSION: version} if version is not None else {})
    matchers = [
        f"{_AGENT}!={quoted(OVERFLOW)}",
        *(f"{name}={quoted(text)}" for name, text in required.items()),
    ]
    totals = []
    for part in ("sum", "count"):
        series = f"gen_ai_evaluation_score_{part}{{{','.join(matchers)}}}"
        expression = f"sum by ({_AGENT}, {_EVALUATION}) (increase({series}[{window}]))"
        totals.append(server.by_evaluation(expression, unix_nano / 1e9))
    sums, counts = totals
    return {
        # `increase` extrapolates to the edges of the window, by the same factor in sum and count: the mean is
        # exact, the number of scores is not.
        key: PinnedScore(mean=min(max(sums[key] / count, 0.0), 1.0), samples=round(count))
        for key, count in counts.items()
        if key in sums and count > 0 and math.isfinite(sums[key] / count)
    }


def scores_of_runs(runs: Iterable[GradedRun], version: str | None = None) -> Scores:
    """The scores in graded traffic, those of evaluations in shadow left out as in the live series.

    With `version`, runs of other versions of the agents are left out.
    """
    by_evaluation: dict[tuple[str, str], list[float]] = {}
    for graded in runs:
        agent = graded.run.agent
        if version is not None and agent.version != version:
            continue
        for result in graded.results:
            if result.score is not None and result.stage is Stage.LIVE:
                by_evaluation.setdefault((agent.name, result.name), []).append(result.score)
    return {
        key: PinnedScore(mean=math.fsum(scores) / len(scores), samples=len(scores))
        for key, scores in by_evaluation.items()
    }


def pin(scores: Scores, *, release: str, unix_nano: int, min_samples: int = MIN_SAMPLES) -> Baseline:
    """The baseline of a release from what was measured at `unix_nano`.

    A mean of fewer than `min_samples` scores is too uncertain to be pinned. Alerts will show `release`, of 1
    to 200 characters.
    """
    agents: dict[str, dict[str, PinnedScore]] = {}
    left_out = []
    pinned = 0
    for (agent, evaluation), score in sorted(scores.items()):
        if score.samples < min_samples:
            left_out.append(f"{agent}: {evaluation}: {score.samples} of {min_samples} scores, not pinned")
        elif not all(0 < len(name) <= MAX_NAME_LENGTH for name in (agent, evaluation)):
            left_out.append(f"{agent[:40]}: {evaluation[:40]}: no name that a baseline can hold, not pinned")
        else:
            mean = round(score.mean, 6)
            agents.setdefault(agent, {})[evaluation] = PinnedScore(mean=mean, samples=score.samples)
            pinned += 1
    created = datetime.fromtimestamp(unix_nano // 1_000_000_000, UTC).isoformat().replace("+00:00", "Z")
    return Baseline(BaselinesFile(release=release, created=created, agents=agents), pinned, left_out)


def write_whole(path: Path, text: str) -> None:
    """Put `text` at `path`, in the place of what is there: whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
