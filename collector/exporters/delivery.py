"""The spans of one trace on their way to every span exporter, and who still holds them."""

from collections.abc import Callable, Sequence
from itertools import chain

from collector.otlp import join_spans
from collector.trace import Receipt
from processors.spans import RawSpan

_SPAN_FRAMING_BYTES = 6
"""Tag and length of a span in its ScopeSpans, at most (spans are shorter than 256 MiB)."""

_ENVELOPE_FRAMING_BYTES = 12
"""Tag and length of the ResourceSpans and ScopeSpans around them."""


def encoded_size(spans: Sequence[RawSpan]) -> int:
    """An upper bound, tight to a few bytes a span, of the request that `join_spans` makes of `spans`."""
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


class Delivery:
    """One trace's spans, shared by the queues of all span exporters.

    `held_bytes` is what was acquired for the spans when they were admitted (result events appended since
    are not in it); `release` gets it back, once, when the last holder has let go. `size` is the upper
    bound of the spans' encoded size. Queues hold a delivery from its making on. `receipt` takes note of each
    that lets go, by its name and `form`.
    """

    __slots__ = (
        "_form",
        "_holders",
        "_receipt",
        "_release",
        "_required_holders",
        "held_bytes",
        "size",
        "spans",
    )

    def __init__(
        self,
        spans: Sequence[RawSpan],
        held_bytes: int,
        release: Callable[[int], None],
        *,
        holders: int,
        required_holders: int,
        receipt: Receipt | None = None,
        form: str = "",
    ) -> None:
        self.spans = spans
        self.held_bytes = held_bytes
        self.size = encoded_size(spans)
        self._release = release
        self._holders = holders
        self._required_holders = required_holders
        self._receipt = receipt
        self._form = form
        if not holders:
            release(held_bytes)

    @property
    def is_kept(self) -> bool:
        """Whether somebody else has it until it is delivered."""
        return self._receipt is not None

    @property
    def is_required(self) -> bool:
        """True while a queue holds it that must not drop it: dropping it elsewhere would free nothing."""
        return self._required_holders > 0

    def let_go(self, holder: str, *, required: bool) -> None:
        """`holder`, required or not, is done with it: delivered or dropped."""
        self._holders -= 1
        if self._receipt is not None:
            self._receipt.delivered(holder + self._form)
        if required:
            self._required_holders -= 1
        if not self._holders:
            self._release(self.held_bytes)


class QueuedTrace:
    """A delivery in one queue: first its spans wait, then they are taken into requests, then settled."""

    __slots__ = (
        "_spans",
        "_taken",
        "delivery",
        "is_given_up",
        "requests_on_wire",
        "unsettled_spans",
        "waiting_bytes",
        "waiting_spans",
    )

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.waiting_spans = len(delivery.spans)
        self.waiting_bytes = delivery.size
        self.unsettled_spans = self.waiting_spans
        self.requests_on_wire = 0
        self.is_given_up = False
        self._spans = delivery.spans
        self._taken = 0

    def spans_that_fit(self, max_spans: int, max_bytes: int) -> int:
        """How many of the waiting spans a request of that size holds, at least one."""
        start = self._taken
        count = min(max_spans, self.waiting_spans)
        while count > 1 and encoded_size(self._spans[start : start + count]) > max_bytes:
            count //= 2
        return count

    def take(self, span_count: int) -> Sequence[RawSpan]:
        """The next `span_count` spans, which wait no longer."""
        if span_count == self.waiting_spans:
            taken = self._spans[self._taken :] if self._taken else self._spans
            self._spans = ()
            self.waiting_bytes = 0
        else:
            taken = self._spans[self._taken : self._taken + span_count]
            self._taken += span_count
            self.waiting_bytes = max(self.waiting_bytes - encoded_size(taken), 0)
        self.waiting_spans -= span_count
        return taken

    def give_up(self) -> None:
        """Forget the waiting spans; requests that hold others of this trace leave them out."""
        self.is_given_up = True
        self._spans = ()
        self.waiting_spans = self.waiting_bytes = 0


class ExportRequest:
    """Spans that travel in one request, by the trace they belong to."""

    __slots__ = ("shares", "span_count")

    def __init__(self) -> None:
        self.shares: list[tuple[QueuedTrace, Sequence[RawSpan]]] = []
        self.span_count = 0

    def add(self, trace: QueuedTrace, spans: Sequence[RawSpan]) -> None:
        """Append spans of a trace."""
        self.shares.append((trace, spans))
        self.span_count += len(spans)

    def encode(self) -> bytes:
        """The request as it goes out; made anew for each attempt, so that no copy is held between them."""
        return join_spans(chain.from_iterable(spans for _, spans in self.shares))

    def mark_on_wire(self, change: int) -> None:
        """Enter (1) or strike (-1) this request on each of its traces while it is being sent."""
        for trace, _ in self.shares:
            trace.requests_on_wire += change

    def discard_given_up(self) -> None:
        """Leave out the spans of traces that were given up since."""
        if any(trace.is_given_up for trace, _ in self.shares):
            self.shares = [share for share in self.shares if not share[0].is_given_up]
            self.span_count = sum(len(spans) for _, spans in self.shares)

    def halves(self) -> tuple["ExportRequest", "ExportRequest"]:
        """Two requests with half of the spans each, in order; `span_count` must be 2 or more."""
        first, second = ExportRequest(), ExportRequest()
        room = self.span_count // 2
        for trace, spans in self.shares:
            if room >= len(spans):
                first.add(trace, spans)
                room -= len(spans)
            elif room:
                first.add(trace, spans[:room])
                second.add(trace, spans[room:])
                room = 0
            else:
                second.add(trace, spans)
        return first, second
