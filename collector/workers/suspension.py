"""Custom evaluators that break worker after worker are left alone for a while."""

from collector.clock import Clock

_TOLERATED = 3
_LONGEST_SECONDS = 60.0


def back_off(failures: int) -> float:
    """Seconds to wait after that many failures in a row, the first included: 1, 2, 4, to 60."""
    return min(_LONGEST_SECONDS, 2.0 ** min(failures - 1, 10))


class Suspensions:
    """Which evaluators are not asked now: those that cost a worker three times in a row or more.

    After its time an evaluator is asked again; the next failure suspends it for twice as long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def remaining(self, evaluator: str) -> float:
        """Seconds for which `evaluator` is not to be asked, 0 if it may be."""
        until = self._until.get(evaluator)
        return 0.0 if until is None else max(0.0, until - self._clock.monotonic())

    def note_answer(self, evaluator: str) -> None:
        """Its worker lived to answer."""
        if self._failures.pop(evaluator, None) is not None:
            self._until.pop(evaluator, None)

    def note_failure(self, evaluator: str) -> None:
        """It cost a worker."""
        failures = self._failures[evaluator] = self._failures.get(evaluator, 0) + 1
        if failures >= _TOLERATED:
            pause = back_off(failures - _TOLERATED + 1)
            self._until[evaluator] = self._clock.monotonic() + pause
