"""Readers of the page that do harm: `python -m tests.support.hostile_readers ENDPOINT PATH SECONDS`.

Connections that request `PATH` eight times and read nothing, that send nothing, and that send a byte of a
header a second; each comes back when it is cut. How many there were is printed as one JSON object.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from contextlib import suppress

CONNECTIONS = 200
_PIPELINED = 8


class HostileReaders:
    """All of them until a moment."""

    def __init__(self, endpoint: str, path: str, seconds: float) -> None:
        self._address = endpoint.split(":")
        self._request = f"GET {path} HTTP/1.1\r\nhost: {endpoint}\r\n\r\n".encode()
        self._end = time.monotonic() + seconds
        self.opened: Counter[str] = Counter()

    async def run(self) -> None:
        kinds = ("unread", "idle", "dripping")
        await asyncio.gather(*(self._again_and_again(kinds[n % len(kinds)]) for n in range(CONNECTIONS)))

    async def _again_and_again(self, kind: str) -> None:
        while (left := self._end - time.monotonic()) > 0:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(left):
                    await self._connect(kind)
            await asyncio.sleep(random.random())

    async def _connect(self, kind: str) -> None:
        """Return when the connection was cut."""
        _, writer = await asyncio.open_connection(*self._address)
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport of a socket
        self.opened[kind] += 1
        try:
            if kind == "unread":
                writer.write(self._request * _PIPELINED)
            elif kind == "dripping":
                writer.write(self._request.removesuffix(b"\r\n") + b"x-padding: ")
            while not writer.transport.is_closing():
                if kind == "dripping":
                    writer.write(b"x")
                await asyncio.sleep(1)
        finally:
            writer.transport.abort()


async def _main(endpoint: str, path: str, seconds: str) -> None:
    readers = HostileReaders(endpoint, path, float(seconds))
    await readers.run()
    print(json.dumps(readers.opened))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
