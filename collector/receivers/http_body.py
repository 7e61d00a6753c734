"""The body of one HTTP request, taken in piece by piece within limits."""

from starlette.types import Receive

from collector.errors import Overloaded, RequestTooLarge
from collector.receivers.in_flight import InFlightBudget


class Disconnected(Exception):
    """The sender went away before the body was complete."""


class HttpBody:
    """Reads the body of a request, or gets rid of it.

    What comes in several pieces is taken out of a budget until `release`. While that is used up nothing is
    read, and the sender waits.
    """

    def __init__(
        self, receive: Receive, max_bytes: int, budget: InFlightBudget, *, waits: bool = True
    ) -> None:
        """Without `waits`, what finds no room is refused: on a shared connection it would hold up others."""
        self._receive = receive
        self._waits = waits
        self._max_bytes = max_bytes
        self._share = budget.share()
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the body is still to come."""
        return self._is_complete

    def check_announced(self, length: int) -> None:
        """Refuse a body whose length is announced to be more than allowed, before it is read.

        Raises:
            RequestTooLarge: it is.
        """
        if length > self._max_bytes:
            raise RequestTooLarge(f"The request has {length} bytes, more than the allowed {self._max_bytes}.")

    async def read(self, start: bytes | None = None) -> bytes:
        """The whole body, or what follows `start` with that before it. Nothing is read once it is too long.

        Raises:
            RequestTooLarge: it is longer than allowed.
            Overloaded: there is no room, and nobody waits for it.
            Disconnected: the sender went away.
        """
        piece = await self.next() if start is None else start
        if self._is_complete and len(piece) <= self._max_bytes:
            return piece
        pieces = [piece]
        while True:
            if self._share.held_bytes + len(piece) > self._max_bytes:
                raise RequestTooLarge(f"The request has more than the allowed {self._max_bytes} bytes.")
            if self._waits:
                await self._share.take(len(piece))
            elif not self._share.try_take(len(piece)):
                raise Overloaded("Too many large requests are being received; send the request again.")
            if self._is_complete:
                return b"".join(pieces)
            piece = await self.next()
            pieces.append(piece)

    def release(self) -> None:
        """Give back what the body took of the budget: it is taken in or refused. Safe twice."""
        self._share.give_back()

    async def discard(self) -> None:
        """Take what is left of the body and drop it, as far as a body of the allowed length would go.

        A sender that is still writing would otherwise see its connection cut instead of the answer.
        """
        dropped = 0
        try:
            while not self._is_complete and dropped <= self._max_bytes:
                dropped += len(await self.next())
        except Disconnected:
            pass

    async def next(self) -> bytes:
        """A piece of the body, as it comes; `Disconnected` if the sender went away."""
        message = await self._receive()
        if message["type"] != "http.request":
            self._is_complete = True
            raise Disconnected
        self._is_complete = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body
