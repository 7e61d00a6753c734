"""The spans of one trace on their way to every span exporter, and who still holds them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from collector.task_supervisor import TaskOwner
from collector.trace import UnsplitRecords
from processors.spans import RawSpan

Notify: TypeAlias = Callable[[str], None]
"""Takes note of a holder that has delivered or dropped something."""

_SPAN_FRAMING_BYTES = 6
"""Tag and length of a span in its ScopeSpans, at most (spans are shorter than 256 MiB)."""

_ENVELOPE_FRAMING_BYTES = 12
"""Tag and length of the ResourceSpans and ScopeSpans around them."""


def encoded_size(spans: Sequence[RawSpan]) -> int:
    """An upper bound, tight to a few bytes a span, of what `join_spans` encodes `spans` to."""
    if type(spans) is UnsplitRecords:  # an abstract class is slow to recognise
        return len(spans.body)
    size = _SPAN_FRAMING_BYTES * len(spans)
    last = None
    seen = set()
    for _, payload, envelope in spans:
        size += len(payload)
        if envelope is not last:
            last = envelope
            if envelope not in seen:
                seen.add(envelope)
                size += len(envelope.resource) + len(envelope.scope) + _ENVELOPE_FRAMING_BYTES
    return size


@dataclass(slots=True, eq=False)
class Delivery:
    """One trace's spans, shared by the queues of all span exporters, which hold it from the start.

    `held_bytes` is what was acquired for the spans; `release` returns it, once, when the last of `holders`
    is done. `notify`, if given, is called for each that is done, with its name and `form`.
    """

    spans: Sequence[RawSpan]
    held_bytes: int
    release: Callable[[int], None]
    holders: int
    required_holders: int
    notify: Notify | None = None
    form: str = ""
    size: int = field(init=False)
    """Upper bound of the spans' encoded size."""

    def __post_init__(self) -> None:
        self.size = encoded_size(self.spans)
        if not self.holders:
            self.release(self.held_bytes)

    @property
    def is_stored_elsewhere(self) -> bool:
        """Whether the journal or the source of its records has it until it is delivered."""
        return self.notify is not None

    @property
    def is_required(self) -> bool:
        """True while a queue holds it that must not drop it: dropping it elsewhere would free nothing."""
        return self.required_holders > 0

    def done(self, holder: str, *, required: bool) -> None:
        """`holder`, required or not, has delivered or dropped it."""
        self.holders -= 1
        if self.notify is not None:
            self.notify(holder + self.form)
        if required:
            self.required_holders -= 1
        if not self.holders:
            self.release(self.held_bytes)


class SpanQueue:
    """What takes deliveries for one exporter; this one holds nothing."""

    def __init__(self, name: str, *, is_required: bool) -> None:
        self.name = name
        self.is_required = is_required
        """Whether it may never drop anything for want of memory."""

    @property
    def queued_bytes(self) -> int:
        """Encoded size of what is held."""
        return 0

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Start sending."""

    def enqueue(self, delivery: Delivery) -> None:
        """Take a delivery, and call its `done` once all its spans are forwarded or dropped."""
        delivery.done(self.name, required=self.is_required)

    def turn_away(self, count: int) -> None:
        """Count as dropped, for want of memory, what is not enqueued."""

    def shed(self, needed_bytes: int = 0) -> int:
        """Drop what may be dropped for want of memory; the held bytes of what was."""
        return 0

    async def shutdown(self, deadline: float) -> None:
        """Flush until `deadline`, then drop."""
