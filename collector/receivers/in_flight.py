"""Messages while they are being received: one budget of bytes for all, and the bodies of HTTP requests.

A message waits between two pieces if the budget is used up, and its transport then takes no more of it from
its sender. So that messages cannot wait for each other forever, the last part of the budget, as large as a
message may be, is for one message alone, which is always received to its end.
"""

import asyncio
from collections import deque

from starlette.types import Receive

from collector.errors import Overloaded, RequestTooLarge


class InFlightBudget:
    """Bytes of messages in flight, from their first piece until they are accepted or refused.

    All messages together have no more than `max_bytes`, provided that none has more than `max_message_bytes`.
    """

    def __init__(self, max_bytes: int, max_message_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.max_message_bytes = max_message_bytes
        self.used_bytes = 0
        self._ahead: MessageShare | None = None
        """The message that may use the last part."""
        self._waiting: deque[tuple[MessageShare, int, asyncio.Future[None]]] = deque()

    def share(self) -> "MessageShare":
        """The share of one message, which is empty at first."""
        return MessageShare(self)


class MessageShare:
    """What one message holds of the budget, until `give_back`."""

    __slots__ = ("_budget", "held_bytes")

    def __init__(self, budget: InFlightBudget) -> None:
        self._budget = budget
        self.held_bytes = 0

    async def take(self, count: int) -> None:
        """Take `count` more bytes, once there is room."""
        if self.try_take(count):
            return
        waiting = self._budget._waiting
        place = (self, count, asyncio.get_running_loop().create_future())
        waiting.append(place)
        try:
            await place[2]
        except asyncio.CancelledError:
            if place in waiting:
                waiting.remove(place)
            raise

    def try_take(self, count: int) -> bool:
        """Take `count` more bytes if there is room now and no other message waits."""
        budget = self._budget
        if (budget._waiting and self is not budget._ahead) or not self._fits(count):
            return False
        self._grant(count)
        return True

    def give_back(self) -> None:
        """Return all bytes, and let messages continue that waited for them. Safe twice."""
        budget = self._budget
        if not self.held_bytes and budget._ahead is not self:
            return
        budget.used_bytes -= self.held_bytes
        self.held_bytes = 0
        if budget._ahead is self:
            budget._ahead = None
        while budget._waiting:
            share, count, granted = budget._waiting[0]
            if not share._fits(count):
                return
            budget._waiting.popleft()
            if not granted.done():
                share._grant(count)
                granted.set_result(None)

    def _fits(self, count: int) -> bool:
        budget = self._budget
        if budget.used_bytes + count <= budget.max_bytes - budget.max_message_bytes:
            return True
        if budget._ahead is None:
            budget._ahead = self
        return budget._ahead is self

    def _grant(self, count: int) -> None:
        self._budget.used_bytes += count
        self.held_bytes += count


class Disconnected(Exception):
    """The sender closed the connection before the body was complete."""


class HttpBody:
    """Reads or discards the body of a request.

    A body of several pieces takes its bytes out of the budget until `release`. While that is used up nothing
    is read and the sender waits; without `waits` the body is refused: on a shared connection it would block
    others.
    """

    def __init__(
        self, receive: Receive, max_bytes: int, budget: InFlightBudget, *, waits: bool = True
    ) -> None:
        self._receive = receive
        self._waits = waits
        self._max_bytes = max_bytes
        self._share = budget.share()
        self.is_complete = False
        """Whether the whole body has been received."""

    def check_announced(self, length: int) -> None:
        """Check the announced length of a body before it is read; raises `RequestTooLarge`."""
        if length > self._max_bytes:
            raise RequestTooLarge(f"The request has {length} bytes, more than the allowed {self._max_bytes}.")

    async def read(self, start: bytes | None = None) -> bytes:
        """The whole body, or `start` and what follows it. Nothing is read once it is too long.

        Raises:
            RequestTooLarge: it is longer than allowed.
            Overloaded: there is no room, and this body does not wait for it.
            Disconnected: the sender closed the connection.
        """
        piece = await self.next() if start is None else start
        if self.is_complete and len(piece) <= self._max_bytes:
            return piece
        pieces = [piece]
        while True:
            if self._share.held_bytes + len(piece) > self._max_bytes:
                raise RequestTooLarge(f"The request has more than the allowed {self._max_bytes} bytes.")
            if self._waits:
                await self._share.take(len(piece))
            elif not self._share.try_take(len(piece)):
                raise Overloaded("Too many large requests are being received; send the request again.")
            if self.is_complete:
                return b"".join(pieces)
            piece = await self.next()
            pieces.append(piece)

    def release(self) -> None:
        """Return the bytes of the body to the budget. Safe twice."""
        self._share.give_back()

    async def discard(self) -> None:
        """Receive the rest of the body and drop it, up to the allowed length.

        A sender that is still writing would otherwise see its connection cut instead of the answer.
        """
        dropped = 0
        try:
            while not self.is_complete and dropped <= self._max_bytes:
                dropped += len(await self.next())
        except Disconnected:
            pass

    async def next(self) -> bytes:
        """The next piece of the body; raises `Disconnected`."""
        message = await self._receive()
        if message["type"] != "http.request":
            self.is_complete = True
            raise Disconnected
        self.is_complete = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body
