"""Writes scrapes beside the data path: in short turns of the loop, compressed in a thread beside it."""

import asyncio
import zlib
from concurrent.futures import ThreadPoolExecutor

from collector.clock import Clock
from collector.telemetry.registry import MetricsSnapshot

TURN_SECONDS = 0.001
"""How long text is written before requests get their turn again."""

_ROUNDS_BETWEEN_TURNS = 4
"""Rounds of the loop between two turns: a request takes several from its first byte to its answer."""
_CHUNK_CHARACTERS = 256 * 1024
_GZIP = 31
"""zlib's window size with a gzip header and trailer."""


class ScrapeWriter:
    """Turns snapshots into bodies, between `start` and `shutdown`.

    Whatever the size of a scrape, the loop is held for about `TURN_SECONDS` at a time. Compressing lets go of
    the interpreter, and is one thread's work however many scrapes there are.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._compressing: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Get ready to compress."""
        self._compressing = ThreadPoolExecutor(1, thread_name_prefix="metrics")

    def shutdown(self) -> None:
        """Compress nothing any more. Safe before `start` and twice."""
        if self._compressing is not None:
            self._compressing.shutdown(wait=False, cancel_futures=True)
            self._compressing = None

    async def body(self, snapshot: MetricsSnapshot, accept: str, *, gzipped: bool) -> list[bytes]:
        """The text of `snapshot` for an Accept header, in pieces that one write can take."""
        pieces: list[bytes] = []
        compressed: list[asyncio.Future[bytes]] = []
        loop = asyncio.get_running_loop()
        compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        blocks: list[str] = []
        characters = 0
        turn_ends = self._clock.monotonic() + TURN_SECONDS
        for block in snapshot.blocks(accept):
            blocks.append(block)
            characters += len(block)
            if characters >= _CHUNK_CHARACTERS:
                piece = _encoded(blocks)
                characters = 0
                if gzipped:
                    compressed.append(loop.run_in_executor(self._compressing, compressor.compress, piece))
                else:
                    pieces.append(piece)
            if self._clock.monotonic() >= turn_ends:
                for _ in range(_ROUNDS_BETWEEN_TURNS):
                    await self._clock.sleep(0)
                turn_ends = self._clock.monotonic() + TURN_SECONDS
        if not gzipped:
            return [*pieces, _encoded(blocks)]
        compressed.append(loop.run_in_executor(self._compressing, compressor.compress, _encoded(blocks)))
        compressed.append(loop.run_in_executor(self._compressing, compressor.flush))
        return await asyncio.gather(*compressed)


def _encoded(blocks: list[str]) -> bytes:
    """The blocks as one piece; the list is empty then."""
    piece = "".join(blocks).encode(errors="replace")
    blocks.clear()
    return piece
