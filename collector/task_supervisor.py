"""Who owns the background tasks: none of them dies unnoticed, and none takes the others along.

A task group would cancel everything when one task fails. Here the failure is logged and told, and the
others go on, so that the service can drain what it has accepted.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Protocol

_logger = logging.getLogger(__name__)


class TaskOwner(Protocol):
    """Who runs background tasks and notices when one dies."""

    def create_task(self, coroutine: Coroutine[object, object, None], *, name: str) -> asyncio.Task[None]:
        """Run `coroutine` as a task."""
        ...


class TaskSupervisor:
    """Owns tasks until they are cancelled by `cancel`.

    Args:
        on_failure: Called (once for each) when a task ends with an exception of its own.
    """

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()
        self.failures: list[BaseException] = []
        """What tasks died of, in order."""

    def create_task(self, coroutine: Coroutine[object, object, None], *, name: str) -> asyncio.Task[None]:
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
