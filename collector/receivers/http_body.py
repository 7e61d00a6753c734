"""The body of one HTTP request, taken in piece by piece within limits."""

from collector.asgi_server import Receive
from collector.errors import Overloaded, RequestTooLarge


class Disconnected(Exception):
    """The sender went away before the body was complete."""


class ReceiveBudget:
    """Bytes that all bodies being received may hold together."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0


class HttpBody:
    """Reads the body of a request, or gets rid of it."""

    def __init__(self, receive: Receive, max_bytes: int, budget: ReceiveBudget) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._budget = budget
        self._is_complete = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing of the body is still to come."""
        return self._is_complete

    async def read(self, content_length: bytes | None) -> bytes:
        """The whole body. Nothing is read once it is known to be too long.

        Raises:
            RequestTooLarge: it is longer than allowed, by its announcement or in fact.
            Overloaded: other requests being received leave no room.
            Disconnected: the sender went away.
        """
        if content_length is not None and content_length.isdigit() and int(content_length) > self._max_bytes:
            raise RequestTooLarge(
                f"The request has {int(content_length)} bytes, more than the allowed {self._max_bytes}."
            )
        piece = await self._next()
        if self._is_complete and len(piece) <= self._max_bytes:
            return piece
        pieces = [piece]
        held = 0
        try:
            while True:
                held += len(piece)
                self._budget.used_bytes += len(piece)
                if held > self._max_bytes:
                    raise RequestTooLarge(f"The request has more than the allowed {self._max_bytes} bytes.")
                if self._budget.used_bytes > self._budget.max_bytes:
                    raise Overloaded("Too many large requests are being received; send the request again.")
                if self._is_complete:
                    return b"".join(pieces)
                piece = await self._next()
                pieces.append(piece)
        finally:
            self._budget.used_bytes -= held

    async def discard(self) -> None:
        """Take what is left of the body and drop it, as far as a body of the allowed length would go.

        A sender that is still writing would otherwise see its connection cut instead of the answer.
        """
        dropped = 0
        try:
            while not self._is_complete and dropped <= self._max_bytes:
                dropped += len(await self._next())
        except Disconnected:
            pass

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] != "http.request":
            self._is_complete = True
            raise Disconnected
        self._is_complete = not message.get("more_body", False)
        return message.get("body", b"")
