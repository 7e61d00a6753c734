"""Windows of rules: the scale that shortens all of them together, and which one fits a volume of results."""

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from collector.config_fields import parse_duration
from collector.tools.alerting.objectives import Thresholds, Volume
from collector.tools.prometheus_api import PrometheusApi

WINDOWS = ("1h", "6h", "1d", "3d", "7d")
"""From which a window for mean scores is chosen. The first is looked at for everyone."""

_MARGIN = 2
"""Traffic has quiet hours: a window must expect this many times the results that an alert needs."""

_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_BLANK = re.compile(r"<([a-z_]+|[0-9][0-9a-z+]*)(?:-([0-9a-z]+))?(:seconds)?>")
_EXPECTED = "expected a fraction such as 1/600, above 0 and at most 1"

_BY = "by (gen_ai_agent_name, gen_ai_evaluation_name)"
_VERDICTS = 'gen_ai_evaluation_results_total{gen_ai_evaluation_score_label=~"pass|fail"}'
_OVERFLOW = "__overflow__"


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Durations of rules, each multiplied by one factor, above 0 and at most 1."""

    factor: Fraction = Fraction(1)

    @staticmethod
    def parse(text: str) -> "TimeScale":
        """The scale that `text` names: `1/600`, `0.5`, `1`.

        Raises:
            ValueError: it names none; the message says what was expected.
        """
        try:
            factor = Fraction(text)
        except (ValueError, ZeroDivisionError):
            factor = Fraction(0)
        if not 0 < factor <= 1:
            raise ValueError(f"{_EXPECTED}, got {text!r}")
        return TimeScale(factor)

    def scaled(self, *durations: str, less: str = "0s") -> str:
        """The sum of `durations`, minus `less`, at this scale as Prometheus writes it.

        `7d` and `1h` at 1 are `7d1h`. The result is a whole number of milliseconds, never less than one.
        """
        left = max(1, round((sum(map(_milliseconds, durations)) - _milliseconds(less)) * self.factor))
        text = ""
        for unit, length in _UNITS.items():
            count, left = divmod(left, length)
            text += f"{count}{unit}" if count else ""
        return text

    def seconds(self, duration: str) -> str:
        """`duration` at this scale as a number of seconds, for comparisons of times."""
        return f"{float(_milliseconds(duration) * self.factor / 1000):g}"

    def fill(self, text: str, thresholds: Thresholds) -> str:
        """`text` with its blanks filled in. It must contain nothing that users wrote.

        `<5m>` is a duration, `<7d+6h-1h>` a sum of durations minus another, `<5m:seconds>` a number of
        seconds; `<min_results>` is a threshold by its name.
        """

        def value(blank: re.Match[str]) -> str:
            name, less, in_seconds = blank.groups()
            if not name[0].isdigit():
                return f"{getattr(thresholds, name):g}"
            return self.seconds(name) if in_seconds else self.scaled(*name.split("+"), less=less or "0s")

        return _BLANK.sub(value, text)


def hours(duration: str) -> float:
    """How many hours `duration` has at scale 1."""
    return _milliseconds(duration) / _UNITS["h"]


def volume_on_server(server: PrometheusApi, unix_seconds: float) -> Volume:
    """The mean of the last seven days, or of the part of them in which an evaluation was present.

    Agents without series of their own are left out.

    Raises:
        PrometheusError: the server gives no usable answer.
    """
    results = server.by_evaluation(f"sum {_BY} (increase({_VERDICTS}[7d]))", unix_seconds)
    hourly = f"count_over_time((group {_BY} ({_VERDICTS}))[7d:1h])"
    present = server.by_evaluation(hourly, unix_seconds)
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


def _milliseconds(duration: str) -> int:
    return round(parse_duration(duration) * 1000)
