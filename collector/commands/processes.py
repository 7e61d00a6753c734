"""Work of a command in processes of its own, with results in order."""

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, Literal, TypeVar

from collector.errors import TracegradeError

MAX_PROCESSES = 64
_AHEAD = 2
"""Items in work or waiting, for each process."""

_ItemT = TypeVar("_ItemT")
_ResultT = TypeVar("_ResultT")

_work: Callable[[Any], Any] | None = None
"""What a process does with an item."""


def in_processes(
    make: Callable[[], Callable[[_ItemT], _ResultT]],
    items: Iterable[_ItemT],
    processes: int,
    method: Literal["fork", "spawn"],
) -> Iterator[_ResultT]:
    """What the function that `make` returns in each process makes of every item, in the order of the items.

    Results and items are pickled; with `spawn`, where processes know nothing of this one, `make` is too.

    Raises:
        TracegradeError: a process ended, for want of memory mostly.
    """
    context = get_context(method)
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_start, initargs=(make,)) as pool:
        waiting: deque[Future[_ResultT]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(_worked, item))
                if len(waiting) >= _AHEAD * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise TracegradeError(
                "a process ended, perhaps for want of memory: use fewer processes"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _start(make: Callable[[], Callable[[Any], Any]]) -> None:
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one decides
    _work = make()


def _worked(item: Any) -> Any:
    assert _work is not None
    return _work(item)
