"""Resources and scopes around spans: each kept once, as long as any span holds it, and measured."""

from threading import Lock
from weakref import WeakValueDictionary, finalize

from processors.spans import Envelope

OVERHEAD_BYTES = 1024
"""Counted for every resource and scope beside their own bytes: the objects, and entries in indexes."""


class EnvelopeRegistry:
    """Gives spans with the same resource and scope one `Envelope`, wherever they are held."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[bytes, bytes], Envelope] = WeakValueDictionary()
        self._bytes = 0
        self._adding = Lock()  # large requests are split in a thread

    def envelope(self, resource: bytes, scope: bytes) -> Envelope:
        """The one for the bytes around `spans` in a ResourceSpans and around those in a ScopeSpans."""
        key = (resource, scope)
        known = self._known.get(key)
        if known is None:
            with self._adding:
                known = self._known.get(key)
                if known is None:
                    known = self._known[key] = Envelope(resource, scope)
                    size = len(resource) + len(scope) + OVERHEAD_BYTES
                    finalize(known, self._count, -size).atexit = False
                    self._count(size)
        return known

    def bytes_held(self) -> int:
        """Bytes that all envelopes take that somebody holds."""
        return self._bytes

    def _count(self, size: int) -> None:
        """Called by whichever thread lets go last; nothing is called within, so no other comes between."""
        self._bytes += size
