"""Runs a target on its corpus and on varied inputs: without coverage, the same every time."""

import resource
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic, thread_time
from types import FrameType

from tests.fuzz.targets import FuzzTarget

CORPUS = Path(__file__).parent / "corpus"

MAX_SECONDS = 5.0
"""Of CPU time for one input; the usual takes some milliseconds."""
MIN_VARIED = 20
"""Inputs beside the corpus, however slow the machine is."""
MAX_GROWTH_MIB = 48
"""By how much the process may grow while the second half of the inputs is read."""


class Hang(AssertionError):
    """One input took longer than it may."""


@dataclass(frozen=True)
class Campaign:
    """What was done: inputs, CPU seconds of the slowest, and by how much the process grew in the end."""

    inputs: int
    slowest_seconds: float
    growth_mib: float


def read_corpus(name: str) -> list[bytes]:
    """The seeds of a target, and what was once found wrong with it."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def fuzz(target: FuzzTarget, *, inputs: int, seconds: float, seed: int) -> Campaign:
    """Check the corpus and then varied inputs, so many or for so long, but some of them.

    Raises:
        AssertionError: one input broke a promise, or the process grew; the input stands in the message.
    """
    corpus = read_corpus(target.name)
    chance = Random(f"{target.name} {seed}")
    count, slowest, half = 0, 0.0, 0.0
    end = monotonic() + seconds
    started = monotonic()
    for data in _inputs(target, corpus, chance):
        count += 1
        slowest = max(slowest, check(target, data))
        if not half and (count * 2 >= inputs or monotonic() - started >= seconds / 2):
            half = _resident_mib()
        if count >= len(corpus) + MIN_VARIED and (count >= inputs or monotonic() >= end):
            break
    growth = _resident_mib() - half
    assert growth < MAX_GROWTH_MIB, f"{target.name}: {growth:.0f} MiB more after {count} inputs"
    return Campaign(count, slowest, growth)


def check(target: FuzzTarget, data: bytes) -> float:
    """The CPU seconds that one input took.

    Raises:
        AssertionError: it broke a promise.
    """
    before = thread_time()
    try:
        with _no_longer_than(MAX_SECONDS):
            target.check(data)
    except Exception as error:
        raise AssertionError(f"{target.name}: {type(error).__name__}: {error}: input {data!r}") from error
    return thread_time() - before


def _inputs(target: FuzzTarget, corpus: Sequence[bytes], chance: Random) -> Iterator[bytes]:
    yield from corpus
    while True:
        data = chance.choice(corpus)
        for _ in range(chance.randrange(1, 4)):
            data = target.mutate(data, corpus, chance)[: target.max_bytes]
        yield data


@contextmanager
def _no_longer_than(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang(f"more than {seconds:g} s of CPU time")

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024**2
