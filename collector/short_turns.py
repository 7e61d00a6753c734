"""Short turns of the interpreter while threads work beside the data path."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_TURN_SECONDS = 0.001
"""How long the loop waits for another thread, each time it has something to do. The interpreter's own 5 ms
make a small request wait several times as long, since answering it takes several such turns."""

_lock = threading.Lock()
_users = 0
_usual_seconds = 0.0


@contextmanager
def short_turns() -> Iterator[None]:
    """While any thread is within, threads that compute give way to others after a millisecond."""
    global _users, _usual_seconds
    with _lock:
        if not _users:
            _usual_seconds = sys.getswitchinterval()
            sys.setswitchinterval(_TURN_SECONDS)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                sys.setswitchinterval(_usual_seconds)
