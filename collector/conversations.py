"""What is known of conversations: what the runs that were graded called, for criteria over all of them.

Bounded in time and bytes, and in memory, so that grading waits for nothing; `collector.store` keeps it over a
restart. A conversation may have begun before the service, run past it, been forgotten, or met a time in which
spans may have been lost. Then only what no further run could change is decided.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from pydantic import Field

from collector.config_fields import PositiveDuration
from processors.documents import StrictModel
from processors.model import AgentRun, Conversation, reference_of, time_text

MAX_RUNS, MAX_CALLS = 100, 2_000
"""Of one conversation; beyond, its earliest runs are discarded."""
MAX_AWAY_SECONDS = 10.0
"""How long a restart may take without a run being lost: for so long senders try again."""
_MAX_FORGOTTEN = 100_000
_RUN_BYTES, _CALL_BYTES, _MODEL_CALL_BYTES = 1_200, 900, 250
"""About what a run, a call and a model call take in memory without their texts. Values take as much as their
texts."""


class ConversationsConfig(StrictModel):
    """`processors.evaluation.conversations`: what is kept for evaluations with `scope: conversation`."""

    max_pause: PositiveDuration = Field(default=3600.0, examples=["30m", "1d"])
    """Maximum time between two runs of a conversation. A conversation that is new to the service counts as
    known from its start once the service has missed nothing for that long."""
    retention: PositiveDuration = Field(default=24 * 3600.0, examples=["24h"])
    """How long a conversation is retained after its last run. After that only its existence is known, not
    what happened in it."""
    max_mib: int = Field(default=64, ge=1, le=64 * 1024, examples=[64])
    """Memory limit for the calls of all conversations, in addition to `limit_mib`; the least recently active
    are discarded first."""


class Conversations:
    """The runs of each conversation, by tenant and session.

    Args:
        config: The bounds; None: everything is kept, and everything there is was seen, as in a recording.
        hidden: Why this service sees only a part of every conversation; empty: it sees all of them.
        lost_until: Until when spans may have been lost on the way in, in Unix nanoseconds; 0: never.
    """

    def __init__(
        self,
        config: ConversationsConfig | None = None,
        *,
        hidden: str = "",
        lost_until: Callable[[], int] = lambda: 0,
    ) -> None:
        self._hidden = hidden
        self._lost_until = lost_until
        self._is_recording = config is None
        bounds = config or ConversationsConfig()
        self._max_pause = int(bounds.max_pause * 1e9)
        self._retention = int(bounds.retention * 1e9)
        self._max_bytes = bounds.max_mib << 20
        self._known: OrderedDict[bytes, _Runs] = OrderedDict()  # the longest quiet first
        self._forgotten: OrderedDict[bytes, int] = OrderedDict()
        self.used_bytes = 0
        self._known_from: int | None = None
        self._is_open = False
        self.is_needed = False
        """Whether criteria in force look at conversations."""
        self.closed_unix_nano = 0
        """When the service stopped taking spans; 0: it takes them."""

    def __len__(self) -> int:
        return len(self._known)

    @property
    def known_from(self) -> int | None:
        """From when on every run that was graded is known, in Unix nanoseconds; None: none was looked for."""
        return None if self._known_from is None else max(self._known_from, self._lost_until())

    def follow(self, is_needed: bool, unix_nano: int) -> None:
        """Whether criteria in force look at conversations; if none does, nothing is retained."""
        self.is_needed = is_needed
        if self._is_open:
            self.open(unix_nano)

    def open(self, unix_nano: int) -> None:
        """Runs are looked for from now on; what went before is known as far as it was restored."""
        self._is_open = True
        if not self.is_needed:
            self._known_from = None
            self._known.clear()
            self._forgotten.clear()
            self.used_bytes = 0
        elif self._known_from is None:
            self._known_from = unix_nano

    def close(self, unix_nano: int) -> None:
        """The service takes no more spans."""
        self.closed_unix_nano = unix_nano

    def restore(self, runs: Iterable[tuple[AgentRun, int]], known_from: int) -> None:
        """Take back what a process before knew: runs, and when each was graded.

        `known_from` 0: it is not known since when that is all.

        Raises:
            ValueError: runs are looked for already.
        """
        if self._is_open:
            raise ValueError("restored too late")
        for run, unix_nano in runs:
            if run.session is not None and not run.stands_for_trace:
                self._add(run, unix_nano)
                self._forget(unix_nano)
        if known_from:
            self._known_from = known_from

    def look_up(self, runs: Sequence[AgentRun], unix_nano: int) -> list[AgentRun]:
        """`runs`, graded now, each with what is known of its conversation; from now on they belong to it."""
        collected = [None if run.session is None else self._add(run, unix_nano) for run in runs]
        known = [
            run if conversation is None else run.in_conversation(self._without(run, conversation))
            for run, conversation in zip(runs, collected, strict=True)
        ]
        self._forget(unix_nano)
        return known

    def _without(self, run: AgentRun, result: "_Runs") -> Conversation:
        own = reference_of(run)
        return Conversation(
            tuple(other for other in result.runs if reference_of(other) != own), self._gap(result)
        )

    def _gap(self, result: "_Runs") -> str:
        if self._is_recording:
            return ""
        if self._hidden:
            return self._hidden
        if result.is_cut:
            return "earlier ones are no longer kept"
        known_from = self.known_from
        if known_from is None:
            return "none was looked for"
        if known_from >= result.first - self._max_pause:
            return f"not all before {time_text(known_from)} are known"
        return ""

    def _add(self, run: AgentRun, unix_nano: int) -> "_Runs":
        key = blake2b(f"{run.tenant}\0{run.session}".encode(errors="replace"), digest_size=16).digest()
        result = self._known.get(key)
        if result is None:
            result = self._known[key] = _Runs(is_cut=self._forgotten.pop(key, None) is not None)
        self._known.move_to_end(key)
        self.used_bytes -= result.size
        result.add(run, unix_nano)
        if not self._is_recording:
            result.cut()
        self.used_bytes += result.size
        return result

    def _forget(self, unix_nano: int) -> None:
        """Discard what is too old or too much; that it was there is remembered."""
        if self._is_recording:
            return
        while self._known:
            key, oldest = next(iter(self._known.items()))
            if self.used_bytes <= self._max_bytes and oldest.last > unix_nano - self._retention:
                break
            del self._known[key]
            self.used_bytes -= oldest.size
            self._forgotten[key] = oldest.last
        while len(self._forgotten) > _MAX_FORGOTTEN:
            _, last = self._forgotten.popitem(last=False)
            if self._known_from is not None:
                self._known_from = max(self._known_from, last)


@dataclass(slots=True)
class _Runs:
    """The runs of one conversation, in order of arrival, each as `calls_of` returns it.

    `first` is when the first of them began, as far as they show, `last` when the last of them arrived.
    """

    is_cut: bool
    """Whether earlier ones were discarded."""
    runs: list[AgentRun] = field(default_factory=list)
    first: int = 0
    last: int = 0
    size: int = 0

    def add(self, run: AgentRun, unix_nano: int) -> None:
        """Add a run unless it is there."""
        own = reference_of(run)
        if any(reference_of(other) == own for other in self.runs):
            return
        began = run.start_unix_nano or unix_nano
        self.first = min(self.first, began) if self.runs or self.is_cut else began
        self.last = max(self.last, unix_nano)
        kept = calls_of(run)
        self.runs.append(kept)
        self.size += _size(kept)

    def cut(self) -> None:
        """Discard the earliest runs while there are too many, or too many calls."""
        while len(self.runs) > 1 and (
            len(self.runs) > MAX_RUNS
            or sum(len(run.tool_calls) + len(run.requested_calls) for run in self.runs) > MAX_CALLS
        ):
            earliest = min(self.runs, key=lambda run: (run.start_unix_nano, run.trace_id, run.span_id or b""))
            self.runs.remove(earliest)
            self.size -= _size(earliest)
            self.is_cut = True


def calls_of(run: AgentRun) -> AgentRun:
    """The run with its calls and model calls alone: all that evaluations over a conversation look at.

    It holds no spans.
    """
    return AgentRun(
        trace_id=run.trace_id,
        span_id=run.span_id,
        agent=run.agent,
        parent_agent=run.parent_agent,
        session=run.session,
        tenant=run.tenant,
        tool_calls=tuple(run.tool_calls),
        requested_calls=tuple(run.requested_calls),
        model_calls=tuple(run.model_calls),
        models=tuple(run.models),
        usage=run.usage,
        cost=run.cost,
        complete=run.complete,
        incomplete_reason=run.incomplete_reason,
        start_unix_nano=run.start_unix_nano,
    )


def _size(run: AgentRun) -> int:
    calls = [*run.tool_calls, *(call for _, call in run.requested_calls)]
    texts = sum(len(call.arguments_text or "") + len(call.result_text or "") for call in calls)
    return _RUN_BYTES + _CALL_BYTES * len(calls) + _MODEL_CALL_BYTES * len(run.model_calls) + 2 * texts
