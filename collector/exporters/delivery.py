"""The spans of one trace on their way to every span exporter, and who still holds them."""

from collections.abc import Callable, Sequence

from processors.spans.span import RawSpan

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
    bound of the spans' encoded size. Queues hold a delivery from its making on.
    """

    __slots__ = ("_holders", "_release", "_required_holders", "held_bytes", "size", "spans")

    def __init__(
        self,
        spans: Sequence[RawSpan],
        held_bytes: int,
        release: Callable[[int], None],
        *,
        holders: int,
        required_holders: int,
    ) -> None:
        self.spans = spans
        self.held_bytes = held_bytes
        self.size = encoded_size(spans)
        self._release = release
        self._holders = holders
        self._required_holders = required_holders
        if not holders:
            release(held_bytes)

    @property
    def is_required(self) -> bool:
        """True while a queue holds it that must not drop it: dropping it elsewhere would free nothing."""
        return self._required_holders > 0

    def let_go(self, *, required: bool) -> None:
        """One holder, required or not, is done with it: delivered or dropped."""
        self._holders -= 1
        if required:
            self._required_holders -= 1
        if not self._holders:
            self._release(self.held_bytes)
