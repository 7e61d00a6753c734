"""Time as components see it: injected, never read from `time` inside a component."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Protocol


class Clock(Protocol):
    """Monotonic and wall time, and sleeping on the former."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes back."""

    def unix_nano(self) -> int:
        """Nanoseconds since the Unix epoch."""

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes back."""
        return time.monotonic()

    def unix_nano(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(seconds)


class ManualClock:
    """A clock that moves only by `advance`: for tests and for replaying recorded traffic."""

    def __init__(self, monotonic: float = 0.0, unix_nano: int = 0) -> None:
        self._monotonic = monotonic
        self._unix_nano = unix_nano
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        return self._monotonic

    def unix_nano(self) -> int:
        """The start plus the time advanced so far."""
        return self._unix_nano

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced by `seconds`."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._monotonic + seconds, future))
        await future

    def advance(self, seconds: float) -> None:
        """Move both times forward, and end the sleep of all that slept until then."""
        self._monotonic += seconds
        self._unix_nano += round(seconds * 1e9)
        due = [future for at, future in self._sleepers if at <= self._monotonic]
        self._sleepers = [(at, future) for at, future in self._sleepers if at > self._monotonic]
        for future in due:
            if not future.done():
                future.set_result(None)


async def ends_within(seconds: float, work: Awaitable[object], clock: Clock) -> bool:
    """Wait for `work`, at most `seconds`; whether it has ended, in whatever way.

    If it has not, a coroutine is cancelled; a task or another future goes on.
    """
    working = asyncio.ensure_future(work)
    timer = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait((working, timer), return_when=asyncio.FIRST_COMPLETED)
        return working.done()
    finally:
        timer.cancel()
        if working is not work:
            working.cancel()
