"""Who owns the background tasks: none of them dies unnoticed, and none takes the others along.

A task group would cancel everything when one task fails. Here the failure is logged and reported, and the
others go on, so that the service can drain what it has accepted.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol

_logger = logging.getLogger(__name__)


class TaskOwner(Protocol):
    """Runs background tasks and notices when one dies."""

    def create_task(self, coroutine: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Run `coroutine` as a task."""


def start_at_once(
    coroutine: Coroutine[Any, Any, None], tasks: TaskOwner, *, name: str
) -> asyncio.Task[None] | None:
    """Run `coroutine` until it waits for something, and the rest as a task; None if it waits for nothing.

    An eager task, as Python has from 3.12 on; until it first waits it belongs to the caller's task.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration:
        return None
    return tasks.create_task(_Waiting(coroutine, awaited), name=name)


class _Waiting(Coroutine[Any, Any, None]):
    """A coroutine that waits already: the first thing that its task gets is what it waits for."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], awaited: object) -> None:
        self._coroutine = coroutine
        self._awaited = [awaited]

    def send(self, value: Any) -> object:
        return self._awaited.pop() if self._awaited else self._coroutine.send(value)

    def throw(self, *error: Any) -> object:
        self._awaited.clear()
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, None]:
        raise NotImplementedError("awaited by a task only")


class TaskSupervisor:
    """Owns tasks until `cancel`; `on_failure` is called for each that ends with an exception of its own."""

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()
        self.failures: list[BaseException] = []
        """What tasks died of, in order."""

    def create_task(self, coroutine: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Run `coroutine` as a task of this supervisor."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def cancel(self) -> None:
        """Cancel what still runs, and return when it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        failure = task.exception()
        if failure is not None:
            self.failures.append(failure)
            _logger.critical("The task %r died.", task.get_name(), exc_info=failure)
            self._on_failure()
