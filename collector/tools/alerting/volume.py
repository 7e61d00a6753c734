"""How many results an evaluation gives, and over which window its scores therefore are looked at."""

import math
from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from collector.tools.alerting.series_selector import Pair
from collector.tools.alerting.time_scale import hours
from collector.tools.baseline.prometheus_api import PrometheusApi

WINDOWS = ("1h", "6h", "1d", "3d", "7d")
"""From which a window is chosen. The first is looked at for everyone."""

_MARGIN = 2
"""Traffic has quiet hours: a window must expect so many times the results that an alert needs."""

_BY = "by (gen_ai_agent_name, gen_ai_evaluation_name)"
_VERDICTS = 'gen_ai_evaluation_results_total{gen_ai_evaluation_score_label=~"pass|fail"}'
_OVERFLOW = "__overflow__"

Text: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Volume = Mapping[Pair, float]
"""Results with a verdict in an hour, on average, by agent and evaluation."""


class VolumeFile(BaseModel):
    """A volume file: results in an hour, by agent and evaluation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agents: dict[Text, dict[Text, Annotated[float, Field(ge=0, allow_inf_nan=False)]]]

    def volume(self) -> Volume:
        """What the file holds."""
        return {
            (agent, evaluation): results
            for agent, evaluations in self.agents.items()
            for evaluation, results in evaluations.items()
        }


def volume_on_server(server: PrometheusApi, unix_seconds: float) -> Volume:
    """The mean of the last seven days, or of the part of them in which an evaluation was there.

    Agents without series of their own are left out.

    Raises:
        PrometheusError: the server gives no usable answer.
    """
    results = _by_pair(server, f"sum {_BY} (increase({_VERDICTS}[7d]))", unix_seconds)
    present = _by_pair(server, f"count_over_time((group {_BY} ({_VERDICTS}))[7d:1h])", unix_seconds)
    return {
        pair: count / max(1.0, min(present.get(pair, 1.0), 168.0))
        for pair, count in results.items()
        if math.isfinite(count) and pair[0] != _OVERFLOW
    }


def window_for(results_an_hour: float, min_results: int) -> str | None:
    """The shortest of `WINDOWS` that expects enough results, None where not even the longest does."""
    for window in WINDOWS:
        if results_an_hour * hours(window) >= _MARGIN * min_results:
            return window
    return WINDOWS[-1] if results_an_hour * hours(WINDOWS[-1]) >= min_results else None


def _by_pair(server: PrometheusApi, expression: str, unix_seconds: float) -> dict[Pair, float]:
    return {
        (
            sample.labels.get("gen_ai_agent_name", ""),
            sample.labels.get("gen_ai_evaluation_name", ""),
        ): sample.value
        for sample in server.query(expression, unix_seconds)
    }
