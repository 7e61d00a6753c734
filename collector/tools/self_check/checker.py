"""The self-check: one good and one bad trace through the service's own listener, over and over.

Up to the trace buffer it is a sender like any other. Its traces are recognised by their random ids alone:
they are graded by criteria of their own and go no further; anything else that names the reserved agent is an
ordinary trace.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from collector.clock import Clock, ends_within
from collector.errors import TracegradeError
from collector.grading import Grader, GradingStage
from collector.receivers import ServerConfig
from collector.task_supervisor import TaskOwner
from collector.telemetry import BEFORE_FAN_OUT, Metrics, RateLimitedLogger, SelfCheckConfig
from collector.tools.self_check.listener_client import ListenerClient, NotAcceptedError
from collector.tools.self_check.traces import misgrading, self_check_criteria, self_check_requests
from collector.trace import FinishedTrace, held_bytes
from processors.model import JsonObject, Outcome
from processors.spans import RawRecord

VERDICT_MARGIN_SECONDS = 20.0
"""How long after the grace a verdict may come. The finish clock may stand still for 10 s of it."""

DROP_REASON = "self_check"
"""Under which the spans and log records of self-checks are counted as dropped."""

_MAX_TRACES = 1000
"""Trace ids that are remembered until their traces finish."""

_MAX_PROBES = 100
"""Traces of others whose verdicts are remembered."""

_logger = logging.getLogger(__name__)


class SelfCheckFailedError(TracegradeError):
    """A check went wrong behind the listener; `reason` is a word from a closed list."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(eq=False)
class SelfCheck:
    """Checks the service at once when started, and from then on at every interval, if it is enabled.

    A check succeeds when the listener accepted both traces and their log records, and each was graded as
    expected within `grace_seconds` (how long the trace buffer holds a whole trace) and
    `VERDICT_MARGIN_SECONDS`. Anything else is a failure, a service that refuses for want of memory included;
    each is counted, and logged with its cause. `release` gives held bytes back to the memory limiter,
    `random_bytes` makes trace ids.
    """

    config: SelfCheckConfig
    grace_seconds: float
    release: Callable[[int], None]
    metrics: Metrics
    clock: Clock
    random_bytes: Callable[[int], bytes] = secrets.token_bytes

    def __post_init__(self) -> None:
        self._patience = self.grace_seconds + VERDICT_MARGIN_SECONDS
        criteria = self_check_criteria()
        # Counts in metrics of its own, which are not published: users' series are about users' traces.
        self._grading = GradingStage(
            grader=Grader(criteria=lambda: criteria, clock=self.clock, instance="self-check"),
            metrics=Metrics(),
            clock=self.clock,
        )
        self._expected: dict[bytes, Outcome] = {}
        self._probes: dict[bytes, str | None] = {}
        """What is wrong with the verdicts on the traces of probes: empty for nothing, None before there are
        any."""
        self._awaited: dict[bytes, asyncio.Future[str | None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._log = RateLimitedLogger(_logger, self.clock)
        if self.config.enabled:
            self.metrics.self_checks.start("success", "failure")
            self.metrics.self_check_last_success.set(0)
            self.metrics.spans_dropped.add(0, DROP_REASON, BEFORE_FAN_OUT)
            self.metrics.log_records_dropped.add(0, DROP_REASON, BEFORE_FAN_OUT)

    def start(self, listener: ServerConfig, endpoint: str, tasks: TaskOwner) -> None:
        """Begin checking through the listener of that configuration, which serves `endpoint` by now.

        Raises:
            StartupError: a certificate for TLS cannot be read.
        """
        if self.config.enabled:
            client = ListenerClient(listener, endpoint, self.config)
            self._task = tasks.create_task(self._check_for_ever(client), name="self-check")

    async def shutdown(self) -> None:
        """Stop in the middle of whatever it is doing; safe before `start` and twice.

        Traces under way still belong to it: they are to be given to `finish` like any before.
        """
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    def expect_probe(self) -> JsonObject:
        """Traces to treat like those of a check when another sender sends them: `tracegrade doctor`.

        Their ids are created here, so that no one can have users' traces treated like this. `traces` has by
        id how each is to be graded, `unix_nano` is the time here, `patience_seconds` how long a verdict may
        take.
        """
        expected = self._expect()
        self._probes.update(dict.fromkeys(expected))
        _keep_latest(self._probes, _MAX_PROBES)
        return {
            "traces": {trace_id.hex(): outcome.value for trace_id, outcome in expected.items()},
            "unix_nano": self.clock.unix_nano(),
            "patience_seconds": self._patience,
        }

    def probe_verdicts(self) -> JsonObject:
        """What is wrong with the verdicts on the latest of these, by id: "" for nothing, None: not graded."""
        return {trace_id.hex(): problem for trace_id, problem in self._probes.items()}

    def is_own(self, trace_id: bytes) -> bool:
        """Whether the trace is one of a self-check, and not finished yet."""
        return trace_id in self._expected

    def finish(self, trace: FinishedTrace) -> None:
        """Grade a trace that was `made` here, and drop it."""
        spans = trace.spans
        self.metrics.spans_dropped.add(len(spans), DROP_REASON, BEFORE_FAN_OUT)
        self.release(held_bytes(spans))
        expected = self._expected.pop(trace.trace_id)
        awaited = self._awaited.pop(trace.trace_id, None)
        is_awaited = awaited is not None and not awaited.done()
        if not is_awaited and trace.trace_id not in self._probes:
            return
        # Sent straight to the listener: no balancer can have split it.
        whole = replace(trace, interrupted=False) if trace.split else trace
        problem = misgrading(trace, self._grading.grade_now(whole), expected)
        if awaited is not None and is_awaited:
            awaited.set_result(problem)
        else:
            self._probes[trace.trace_id] = problem or ""

    def drop_records(self, records: Sequence[RawRecord]) -> None:
        """Drop log records of traces that were `made` here: copies of them wait to be graded."""
        self.metrics.log_records_dropped.add(len(records), DROP_REASON, BEFORE_FAN_OUT)
        self.release(held_bytes(records))

    def _expect(self) -> Mapping[bytes, Outcome]:
        """The ids of two new traces, one to pass and one to fail."""
        expected = {self.random_bytes(16): outcome for outcome in (Outcome.PASS, Outcome.FAIL)}
        self._expected |= expected
        _keep_latest(self._expected, _MAX_TRACES)
        return expected

    async def _check_for_ever(self, client: ListenerClient) -> None:
        was_failing = False
        while True:
            started = self.clock.monotonic()
            is_failing = not await self._succeeds(client)
            if was_failing and not is_failing:
                _logger.info("The self-check succeeds again.")
            was_failing = is_failing
            await self.clock.sleep(max(0.0, started + self.config.interval - self.clock.monotonic()))

    async def _succeeds(self, client: ListenerClient) -> bool:
        """Check once, count and log."""
        try:
            await self._check(client)
        except NotAcceptedError as error:
            self._log.warning(
                "not_accepted", "A self-check failed: its traces were not accepted.", error=str(error)
            )
        except SelfCheckFailedError as error:
            self._log.error(
                error.reason, "A self-check failed after its traces were accepted.", error=str(error)
            )
        except Exception:  # a check that breaks must not take the service down
            self._log.exception("unexpected_error", "A self-check failed unexpectedly.")
        else:
            self.metrics.self_checks.add(1, "success")
            self.metrics.self_check_last_success.set(self.clock.unix_nano() / 1e9)
            return True
        self.metrics.self_checks.add(1, "failure")
        return False

    async def _check(self, client: ListenerClient) -> None:
        """Send both traces and wait for their verdicts.

        Raises:
            NotAcceptedError: the listener did not accept them.
            SelfCheckFailedError: there was no verdict in time, or a wrong one.
        """
        loop = asyncio.get_running_loop()
        expected = self._expect()  # a request without an answer may have been accepted all the same
        self._awaited = {trace_id: loop.create_future() for trace_id in expected}
        verdicts = list(self._awaited.values())
        for signal, request in self_check_requests(expected, self.clock.unix_nano()).items():
            await client.send(request, signal)
        standstill = self.metrics.finish_clock_standstill_seconds.value()
        await ends_within(self._patience, asyncio.wait(verdicts), self.clock)
        standstill = self.metrics.finish_clock_standstill_seconds.value() - standstill
        if not all(verdict.done() for verdict in verdicts):
            message = f"no verdict within {self._patience:g} s"
            if standstill >= 1:
                message += (
                    f", of which the service could not receive, or had just not been able to, for "
                    f"{standstill:.0f} s"
                )
            raise SelfCheckFailedError("no_verdict", message)
        for verdict in verdicts:
            if (problem := verdict.result()) is not None:
                raise SelfCheckFailedError("wrong_verdict", problem)


def _keep_latest(entries: dict[bytes, Any], count: int) -> None:
    while len(entries) > count:
        del entries[next(iter(entries))]
