"""What became of requests that failed: the answer to the sender, the log line, nothing else."""

import logging
from collections.abc import Callable

from collector.clock import Clock
from collector.errors import Refusal
from collector.otlp.status import ErrorStatus, error_status
from collector.telemetry.logs import RateLimitedLogger


class FailedRequests:
    """Turns what a request ended with into the answer to its sender.

    Refusals are the sender's matter and are not logged. Anything else is a fault of the service: it is
    logged with its traceback, at most once in ten seconds, and the sender is asked to come back.
    """

    def __init__(self, transport: str, clock: Clock, random: Callable[[], float]) -> None:
        self._transport = transport
        self._random = random
        self._log = RateLimitedLogger(logging.getLogger(__name__), clock)

    def answer(self, error: Exception) -> ErrorStatus:
        """The status to answer with; called while `error` is being handled."""
        if not isinstance(error, Refusal):
            self._log.exception(
                "unexpected_error",
                "A request failed unexpectedly; its sender is asked to send it again.",
                transport=self._transport,
            )
        return error_status(error, self._random)
