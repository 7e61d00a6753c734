"""The one dial that shortens every window, offset and `for` of the rules together."""

import re
from fractions import Fraction

_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_PART = re.compile(r"([0-9]+)(ms|[dhms])")
_EXPECTED = "expected a fraction such as 1/600, above 0 and at most 1"


class TimeScale:
    """Durations of rules, each multiplied by one factor."""

    def __init__(self, factor: Fraction = Fraction(1)) -> None:
        if not 0 < factor <= 1:
            raise ValueError(f"{_EXPECTED}, got {factor}")
        self.factor = factor

    @staticmethod
    def parse(text: str) -> "TimeScale":
        """The scale that `text` names: `1/600`, `0.5`, `1`.

        Raises:
            ValueError: it names none; the message says what was expected.
        """
        try:
            return TimeScale(Fraction(text))
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"{_EXPECTED}, got {text!r}") from None

    def scaled(self, *durations: str, less: str = "0s") -> str:
        """The sum of `durations`, without `less`, at this scale as Prometheus writes it.

        `7d` and `1h` at 1 are `7d1h`. A duration is days, hours, minutes, seconds and milliseconds in that
        order, such as `1h30m`. The result is a whole number of milliseconds, never less than one.
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


def hours(duration: str) -> float:
    """How many hours `duration`, written as for `TimeScale.scaled`, has at scale 1."""
    return _milliseconds(duration) / _UNITS["h"]


def _milliseconds(duration: str) -> int:
    parts = _PART.findall(duration)
    if "".join(number + unit for number, unit in parts) != duration or not parts:
        raise ValueError(f"no duration of Prometheus: {duration!r}")
    return sum(int(number) * _UNITS[unit] for number, unit in parts)
