"""uvicorn's HTTP/2 connection, with limits on what a client may make it do.

uvicorn calls its HTTP/2 experimental, and zttp, the native code below it, calls itself not ready for
production: this module is only imported where a listener asks for it.
"""

from collections.abc import Generator

import zttp
from uvicorn.protocols.http.zttp_h2_impl import ZttpH2Protocol

from collector.asgi_server import LimitedConnection

MAX_IDLE_FRAMES = 10_000
"""Frames that carry no data (pings, settings, resets) between two answers of a connection."""

_NO_ERROR, _PROTOCOL_ERROR, _CANCEL, _ENHANCE_YOUR_CALM = 0, 1, 8, 11
_ANY_STREAM = 2**31 - 1


class Http2Connection(LimitedConnection, ZttpH2Protocol):
    """A connection of `AsgiServer` that speaks HTTP/2, with prior knowledge or negotiated by TLS.

    Requests that have not arrived whole within one to two times `request_timeout_seconds` are reset. A client
    is cut off if its connection carries no request, if it does not read its answers for as long, or if it
    sends nothing but frames without content.
    """

    _had_request = _was_unread = False
    _incomplete: frozenset[int] = frozenset()
    _idle_frames = 0

    def go_away(self) -> None:
        """Send the client to another connection; requests that still arrive are served."""
        if not self.transport.is_closing():
            self.conn.close(_NO_ERROR, _ANY_STREAM)
            self.flush()

    def shutdown(self) -> None:
        """Called by the server: close the connection after the last answer, or let the client close it."""
        self.shutdown_requested = True
        self.go_away()

    def events(self) -> Generator[zttp.Event]:
        """Received events, as long as the client does not flood the connection."""
        for event in super().events():
            if isinstance(event, zttp.Request):
                self._had_request = True
                if not (event.path.isascii() and event.method.isascii()):  # uvicorn would fail on it
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
        """Read nothing while the client does not read: its frames may require answers by the protocol."""
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

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self._request_timeout_seconds, self._cut_late)

    def _cut_late(self) -> None:
        """Reset what is as incomplete as it was one timeout ago."""
        if not self._had_request or (self._was_unread and self.flow.write_paused):
            self.transport.abort()
            return
        incomplete = frozenset(number for number, cycle in self.cycles.items() if cycle.more_body)
        for number in incomplete & self._incomplete:
            cycle = self.cycles[number]
            self.conn.stream(number).reset(_CANCEL)
            cycle.disconnected = True
            cycle.message_event.set()
        self.flush()
        self._incomplete, self._was_unread = incomplete, self.flow.write_paused
        self._start_timer()
