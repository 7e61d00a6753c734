"""When is a trace finished, and why.

Times are those of the finish clock. A trace is never finished on sight of its root, only after quiet: a root
is not the last span of its trace even within one request.
"""

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from pydantic import Field

from collector.buffer.held_trace import HeldTrace
from collector.buffer.learned_waits import DEFAULT_WAIT_SECONDS, MIN_WAIT_SECONDS, LearnedWaits
from collector.config_fields import AUTO, EVIDENCE, Duration, DurationOrWord, PositiveDuration
from processors.documents import StrictModel
from processors.model import FinishReason

SETTLED_SECONDS = 1.0
"""Quiet time of a trace that is evidently over. Exporters that wait for 512 spans send about as often under
load (`tests/data/root_gaps.json`), and a retry or a second connection changes the order by less."""


class ServiceFinishConfig(StrictModel):
    """Waiting times of one service; what is left out is as for every service."""

    root_grace: Duration | None = None
    multi_service_grace: Duration | None = None
    incomplete_grace: Duration | None = None
    idle_timeout: Duration | None = None
    max_trace_age: PositiveDuration | None = None


class GroupByTraceConfig(StrictModel):
    """`processors.group_by_trace`: how long spans are held, and how many."""

    root_grace: DurationOrWord = EVIDENCE
    """Quiet time after which a trace with its root, and no span whose parent is missing, is finished.
    `evidence`: 1 s where the trace shows that its runs are over (every call that a model requested has its
    span, and the last turn answers), else `multi_service_grace`, in which a span that ended after the root
    arrives. `auto` learns it for each service from how long after roots spans arrived: 200 ms to 6 s, and
    2 s to begin with. A duration counts whatever the trace shows."""
    multi_service_grace: Duration = 6.0
    """Instead of `root_grace` where several processes report: more than one `service.name`, or a SERVER,
    CONSUMER or MCP client span; and where there is no evidence. The SDKs send every 5 s."""
    incomplete_grace: Duration = 10.0
    """Quiet time for a trace whose root is there while some span's parent is not, and for one that has
    only roots with a remote parent, which may report here too. Never shorter than the grace above."""
    idle_timeout: Duration = 300.0
    """Quiet time for a trace without any root. It should be longer than the longest tool call."""
    max_trace_age: PositiveDuration = 3600.0
    """Time from the first span after which a trace is finished whatever arrives."""
    max_lateness: Duration = 900.0
    """A trace whose last end lies longer than this before its last span arrived is backfill."""
    max_spans_per_trace: int = Field(default=50_000, ge=1)
    max_bytes_per_trace: int = Field(default=64 * 1024 * 1024, ge=1)
    """Bytes of held spans, with 256 for each span in addition to its own."""
    missing_parents: Literal["grade", "not_evaluated"] = "grade"
    """What becomes of runs of a trace that finished as `root_incomplete`."""
    services: Mapping[str, ServiceFinishConfig] = {}
    """Other waiting times by `service.name`. Where a trace shows several services the longest counts."""

    @property
    def fixed_root_grace(self) -> float:
        """`root_grace`; where it is learned the one to begin with, and the longer one without evidence."""
        if self.root_grace == EVIDENCE:
            return self.multi_service_grace
        return DEFAULT_WAIT_SECONDS if self.root_grace == AUTO else self.root_grace


class _Waits(NamedTuple):
    root_grace: float
    multi_service_grace: float
    incomplete_grace: float
    idle_timeout: float
    max_trace_age: float


class FinishPolicy:
    """Finishes a trace by quiet time, by what it shows of its root and parents, and by age.

    Attributes:
        shortest_quiet: no trace finishes by quiet before this many seconds after its last span.
        shortest_age: no trace finishes by age before this many seconds after its first span.
    """

    def __init__(
        self, config: GroupByTraceConfig, learned: LearnedWaits | None = None, verdict_delay: float = 0.0
    ) -> None:
        """Follow `config`.

        Args:
            config: The waiting times.
            learned: What stands for `root_grace` where that is `auto`; not for services with their own.
            verdict_delay: By how much every quiet time is longer.
        """

        def waits_of(waits: GroupByTraceConfig | ServiceFinishConfig) -> dict[str, float]:
            return {
                name: seconds + (0.0 if name == "max_trace_age" else verdict_delay)
                for name in _Waits._fields
                if isinstance(seconds := getattr(waits, name), float)
            }

        self._by_evidence = config.root_grace == EVIDENCE
        self._learned = learned
        self._delay = verdict_delay
        self._own_grace = {
            service for service, waits in config.services.items() if waits.root_grace is not None
        }
        fixed = {"root_grace": config.fixed_root_grace + verdict_delay}
        self._default = _Waits(**{**fixed, **waits_of(config)})
        self._by_service = {
            service: self._default._replace(**waits_of(waits)) for service, waits in config.services.items()
        }
        every = [self._default, *self._by_service.values()]
        shortest = [min(each.root_grace, each.multi_service_grace, each.idle_timeout) for each in every]
        if learned is not None:
            shortest.append(MIN_WAIT_SECONDS + verdict_delay)
        if self._by_evidence:
            shortest.append(SETTLED_SECONDS + verdict_delay)
        self.shortest_quiet = min(shortest)
        self.shortest_age = min(each.max_trace_age for each in every)

    def deadline(self, trace: HeldTrace) -> tuple[float, FinishReason]:
        """When `trace` is finished if no further span arrives, and for what reason."""
        waits = self._waits(trace.services)
        reason = self.settled_reason(trace)
        quiet = waits.idle_timeout if reason is FinishReason.IDLE else self.grace(trace)
        due = trace.last_arrival + quiet
        oldest = trace.first_arrival + waits.max_trace_age
        return (due, reason) if due <= oldest else (oldest, FinishReason.MAX_AGE)

    def evidence_due(self, trace: HeldTrace) -> float | None:
        """When to look whether `trace` is settled, if that decides and no further span arrives; else None."""
        decides = (
            self._by_evidence
            and trace.has_root
            and not trace.is_distributed
            and not trace.may_continue_elsewhere
            and not trace.is_missing_refused_spans
            and self.settled_reason(trace) is FinishReason.ROOT
            and self._own_grace.isdisjoint(trace.services)
        )
        return trace.last_arrival + SETTLED_SECONDS + self._delay if decides else None

    def grace(self, trace: HeldTrace) -> float:
        """How long the trace must have been quiet before the runs that have ended in it count as whole."""
        waits = self._waits(trace.services)
        if trace.is_distributed:
            grace = waits.multi_service_grace
        elif not self._own_grace.isdisjoint(trace.services):
            grace = waits.root_grace
        elif self._by_evidence:
            grace = SETTLED_SECONDS + self._delay if trace.is_settled else waits.multi_service_grace
        elif self._learned is None:
            grace = waits.root_grace
        else:
            grace = self._learned.wait(next(iter(trace.services), "")) + self._delay
        if (
            not trace.has_root
            or trace.is_missing_refused_spans
            or self.settled_reason(trace) is not FinishReason.ROOT
        ):
            grace = max(grace, waits.incomplete_grace)
        return grace

    def settled_reason(self, trace: HeldTrace) -> FinishReason:
        """The reason that unlimited quiet would give.

        A span whose parent is remote and absent stands for the root (`root`): the parent may report
        elsewhere. Next to a root of the trace itself it shows a hole in the trace (`root_incomplete`).
        """
        if trace.has_root:
            if trace.is_missing_parents or trace.has_remote_root:
                return FinishReason.ROOT_INCOMPLETE
            return FinishReason.ROOT
        if trace.has_remote_root:
            return FinishReason.ROOT_INCOMPLETE if trace.is_missing_parents else FinishReason.ROOT
        return FinishReason.IDLE

    def _waits(self, services: Collection[str]) -> _Waits:
        if not self._by_service or self._by_service.keys().isdisjoint(services):
            return self._default
        shown = [self._by_service.get(service, self._default) for service in services]
        return _Waits(*map(max, zip(*shown, strict=True)))
