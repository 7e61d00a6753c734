"""uvicorn's HTTP/2 connection, with limits on what a client may make it do.

uvicorn calls its HTTP/2 experimental, and zttp, the native code below it, calls itself not ready for
production: this module is only imported where a listener asks for it.
"""

import asyncio
from collections.abc import Generator

import uvicorn
import zttp
from uvicorn.protocols.http.zttp_h2_impl import ZttpH2Protocol

from collector.asgi_server import Connections

MAX_IDLE_FRAMES = 10_000
"""Frames that carry no data (pings, settings, resets) between two answers of a connection."""

_NO_ERROR, _PROTOCOL_ERROR, _CANCEL, _ENHANCE_YOUR_CALM = 0, 1, 8, 11
_ANY_STREAM = 2**31 - 1


class Http2Connection(ZttpH2Protocol):
    """A connection of `AsgiServer` that speaks HTTP/2, with prior knowledge or negotiated by TLS.

    Requests that have not arrived whole within one to two times `request_timeout_seconds` are reset. A client
    that opens a connection for nothing, does not read its answers for as long, or sends nothing but frames
    without content is cut off.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: Connections,
        loop: asyncio.AbstractEventLoop,
        request_timeout_seconds: float,
    ) -> None:
        super().__init__(config=config, server_state=server_state, app_state={}, _loop=loop)
        self._registry = server_state
        self._request_timeout_seconds = request_timeout_seconds
        self._had_request = self._was_unread = False
        self._incomplete: set[int] = set()
        self._idle_frames = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn narrows it
        """Called when the client is there; its protocol is to follow."""
        super().connection_made(transport)
        self._look_for_late()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the client is gone."""
        self._timer.cancel()
        super().connection_lost(exc)
        self._registry.connection_gone()

    def go_away(self) -> None:
        """Let the client use another connection for further requests; what comes all the same is taken."""
        if not self.transport.is_closing():
            self.conn.close(_NO_ERROR, _ANY_STREAM)
            self.flush()

    def shutdown(self) -> None:
        """Called by the server: let the client close the connection, and close it with the last answer."""
        self.shutdown_requested = True
        self.go_away()

    def events(self) -> Generator[zttp.Event]:
        """What has arrived, as far as the client is not flooding the connection."""
        for event in super().events():
            if isinstance(event, zttp.Request):
                self._had_request = True
                if not (event.path.isascii() and event.method.isascii()):  # uvicorn would break over it
                    self.conn.stream(event.stream_id).reset(_PROTOCOL_ERROR)
                    continue
            elif not isinstance(event, zttp.Data):
                self._idle_frames += 1
                if self._idle_frames > MAX_IDLE_FRAMES:
                    self.conn.close(_ENHANCE_YOUR_CALM)
                    raise zttp.RemoteProtocolError("too many frames without content")
            yield event

    def on_response_complete(self, stream_id: int) -> None:
        """Called when a request ends, by its answer or without one."""
        if stream_id in self.cycles:  # it was not reset by the client
            self._idle_frames = 0
        super().on_response_complete(stream_id)

    def pause_writing(self) -> None:
        """Read nothing while the client does not read: what it sends may call for answers of the protocol."""
        super().pause_writing()
        self.flow.pause_reading()

    def resume_writing(self) -> None:
        """Called when the client has read what was written."""
        super().resume_writing()
        self.resume_reading_if_idle()

    def resume_reading_if_idle(self) -> None:
        """Called when a request could take more."""
        if not self.flow.write_paused:
            super().resume_reading_if_idle()

    def _look_for_late(self) -> None:
        """Find what is as incomplete as it was one timeout ago."""
        self._timer = self.loop.call_later(self._request_timeout_seconds, self._cut_late)

    def _cut_late(self) -> None:
        if not self._had_request or (self._was_unread and self.flow.write_paused):
            self.transport.abort()
            return
        incomplete = {number for number, cycle in self.cycles.items() if cycle.more_body}
        for number in incomplete & self._incomplete:
            cycle = self.cycles[number]
            self.conn.stream(number).reset(_CANCEL)
            cycle.disconnected = True
            cycle.message_event.set()
        self.flush()
        self._incomplete, self._was_unread = incomplete, self.flow.write_paused
        self._look_for_late()
