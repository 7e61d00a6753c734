"""When a refused request is sent again: exponential back-off with jitter, or what the backend asked for."""

from random import Random

from pydantic import BaseModel, ConfigDict, Field

from collector.config_fields import Duration, PositiveDuration

MAX_RETRY_AFTER_SECONDS = 300.0
"""A backend's own delay counts up to this: a wrong clock over there must not stop deliveries for days."""


class RetryConfig(BaseModel):
    """`retry_on_failure` of an exporter; names and meaning are the Collector's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    initial_interval: PositiveDuration = 1.0
    """Wait after the first failure."""
    multiplier: float = Field(default=1.5, ge=1, le=10, allow_inf_nan=False)
    """Factor from one wait to the next."""
    randomization_factor: float = Field(default=0.5, ge=0, lt=1, allow_inf_nan=False)
    """Each wait is drawn between (1 - factor) and (1 + factor) times the interval."""
    max_interval: PositiveDuration = 30.0
    """Upper bound of the interval."""
    max_elapsed_time: Duration = 0.0
    """From the first attempt of a request until its spans are dropped; 0: never given up."""


class BackOff:
    """The waits of one request, one after the other."""

    __slots__ = ("_config", "_interval", "_random")

    def __init__(self, config: RetryConfig, random: Random) -> None:
        self._config = config
        self._random = random
        self._interval = min(config.initial_interval, config.max_interval)

    def next_wait(self, retry_after_seconds: float | None = None) -> float:
        """Seconds until the next attempt; the backend's own delay wins where it gave one."""
        config = self._config
        interval = self._interval
        self._interval = min(interval * config.multiplier, config.max_interval)
        if retry_after_seconds is not None:
            return min(max(retry_after_seconds, 0.0), MAX_RETRY_AFTER_SECONDS)
        spread = config.randomization_factor
        return interval * self._random.uniform(1 - spread, 1 + spread)
