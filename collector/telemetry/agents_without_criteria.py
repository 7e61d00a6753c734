"""Which agents nobody grades: as a series for each, and in the log."""

import logging
from collections.abc import Container

from collector.clock import Clock
from collector.telemetry.metrics import Metrics

_MAX_NAMES = 20
_INTERVAL_SECONDS = 10.0

_logger = logging.getLogger(__name__)


class AgentsWithoutCriteria:
    """Knows the agents to which no evaluation applies; their names are label values, which are bounded.

    The log names each once, some of them in a line and a line in ten seconds at most.
    """

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._shown = metrics.agents_without_criteria
        self._clock = clock
        self._untold: dict[str, None] = {}
        self._next_line = -_INTERVAL_SECONDS

    def note(self, agent: str, *, has_evaluations: bool) -> None:
        """Show whether anything applies to `agent`."""
        if has_evaluations:
            self._shown.remove(agent)
            self._untold.pop(agent, None)
        elif not self._shown.value(agent):
            self._shown.set(1, agent)
            self._untold[agent] = None

    def keep(self, agents: Container[str]) -> None:
        """Forget those that are not among `agents`."""
        for (agent,) in list(self._shown.values):
            if agent not in agents:
                self._shown.remove(agent)
                self._untold.pop(agent, None)

    def tell(self) -> None:
        """Log the names that were not told yet, if it is time for a line."""
        if not self._untold or self._clock.monotonic() < self._next_line:
            return
        self._next_line = self._clock.monotonic() + _INTERVAL_SECONDS
        names = list(self._untold)[:_MAX_NAMES]
        for name in names:
            del self._untold[name]
        left = f" and {len(self._untold)} more" if self._untold else ""
        _logger.warning(
            "No evaluation applies to these agents. With builtin in processors.evaluation.criteria every "
            "agent gets the checks that need no reference.",
            extra={"agents": ", ".join(names) + left},
        )
