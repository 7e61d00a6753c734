"""One budget of bytes for all messages that are being received: who finds none of it left, waits.

A message waits between two pieces, and its transport then takes no more of it from its sender. So that
messages cannot wait for each other for ever, the last part of the budget, as large as a message may be, is
for one message alone, which is always received to its end.
"""

import asyncio
from collections import deque


class InFlightBudget:
    """Bytes of messages under way, from their first piece until they are taken in.

    All messages together have no more than `max_bytes`, if none has more than `max_message_bytes`.
    """

    def __init__(self, max_bytes: int, max_message_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.max_message_bytes = max_message_bytes
        self.used_bytes = 0
        self._ahead: MessageShare | None = None
        """The message that may use the last part."""
        self._waiting: deque[tuple[MessageShare, int, asyncio.Future[None]]] = deque()

    def share(self) -> "MessageShare":
        """What one message takes of it."""
        return MessageShare(self)

    async def take(self, share: "MessageShare", count: int) -> None:
        """Take `count` bytes for a message, once there is room for it."""
        if self.try_take(share, count):
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (share, count, granted)
        self._waiting.append(place)
        try:
            await granted
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
            raise

    def try_take(self, share: "MessageShare", count: int) -> bool:
        """Take `count` bytes for a message if there is room for it now, and nobody waits."""
        if (self._waiting and share is not self._ahead) or not self._fits(share, count):
            return False
        self._grant(share, count)
        return True

    def give_back(self, share: "MessageShare") -> None:
        """Let a message have nothing any more, and those go on that waited for it."""
        self.used_bytes -= share.held_bytes
        share.held_bytes = 0
        if self._ahead is share:
            self._ahead = None
        while self._waiting:
            waiting, count, granted = self._waiting[0]
            if not self._fits(waiting, count):
                return
            self._waiting.popleft()
            if not granted.done():
                self._grant(waiting, count)
                granted.set_result(None)

    def _fits(self, share: "MessageShare", count: int) -> bool:
        if self.used_bytes + count <= self.max_bytes - self.max_message_bytes:
            return True
        if self._ahead is None:
            self._ahead = share
        return self._ahead is share

    def _grant(self, share: "MessageShare", count: int) -> None:
        self.used_bytes += count
        share.held_bytes += count


class MessageShare:
    """What one message holds of the budget, until `give_back`."""

    __slots__ = ("_budget", "held_bytes")

    def __init__(self, budget: InFlightBudget) -> None:
        self._budget = budget
        self.held_bytes = 0

    async def take(self, count: int) -> None:
        """Take `count` more bytes, once there is room."""
        await self._budget.take(self, count)

    def try_take(self, count: int) -> bool:
        """Take `count` more bytes if there is room now."""
        return self._budget.try_take(self, count)

    def give_back(self) -> None:
        """The message is taken in, or gone; safe twice."""
        if self.held_bytes or self._budget._ahead is self:
            self._budget.give_back(self)
