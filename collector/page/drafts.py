"""A draft of criteria that is graded over stored runs, in a process apart from the data path."""

import asyncio
import pickle
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from collector.page.page_access import Visitor
from collector.store import RegradeRefused, Regrades, RunFilter, RunQueries, StoreUnusable
from collector.workers.worker_process import WorkerDied, WorkerProcess, worker_command

COMMAND = worker_command("collector.regrading.draft_worker")
_LONGEST_SECONDS = 900.0
_PAGES_AHEAD = 2
_MAX_REPLY_BYTES = 64 << 20


class InThread(Protocol):
    """What work returns that is done in a thread, within what the page may take of the CPU."""

    def __call__(self, work: Callable[..., Any], *arguments: object) -> Awaitable[Any]:
        """The result of `work`."""
        ...


DraftOrder: TypeAlias = Callable[[str, str, str | None, bool], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a visitor wants to try; `replaced` is a file in force, `*` for all, empty for none.

    `fields` are what the form has.
    """

    visitor: Visitor
    credential: str
    text: str
    replaced: str
    run_filter: RunFilter
    fields: dict[str, str]


@dataclass(slots=True)
class DraftState:
    """How far a draft is; while it is graded, `graded` of `total` runs are.

    `problems` are its mistakes, each with its line, 0 if it has none; `failure` is why it was given up.
    `regrade` has the results.
    """

    draft: Draft
    is_running: bool = True
    graded: int = 0
    total: int = 0
    problems: list[tuple[int, str]] = field(default_factory=list)
    failure: str = ""
    regrade: int = 0


class Drafts:
    """Grades one draft at a time; all methods are for the loop of the page.

    `order` makes the first message to the worker: of a text, what it replaces, a tenant, and whether only
    some runs of a conversation are known.
    """

    def __init__(self, order: DraftOrder, in_thread: InThread) -> None:
        self._order = order
        self._in_thread = in_thread
        self._task: asyncio.Task[None] | None = None
        self.state: DraftState | None = None
        """The last draft; safe to read in any thread."""

    @property
    def is_running(self) -> bool:
        """Whether a draft is being graded."""
        return self._task is not None and not self._task.done()

    def start(self, draft: Draft, queries: RunQueries, milliseconds: int) -> None:
        """Begin to grade a draft at this Unix time; none may be running. What the last one left goes."""
        before, self.state = self.state, DraftState(draft)
        self._task = asyncio.create_task(self._grade(self.state, before, queries, milliseconds))

    async def cancel(self) -> None:
        """Stop grading, and remove what was graded; nothing if no draft is being graded."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _grade(
        self, state: DraftState, before: DraftState | None, queries: RunQueries, milliseconds: int
    ) -> None:
        regrades = Regrades(queries)
        worker: WorkerProcess | None = None
        is_graded = False
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                if before is not None:
                    await self._in_thread(_remove_unless_written, regrades, before.regrade)
                worker = await WorkerProcess.start(COMMAND, _MAX_REPLY_BYTES)
                await self._grade_with(worker, state, queries, regrades, milliseconds)
                is_graded = not state.problems
        except asyncio.CancelledError:
            state.failure = "It was cancelled."
        except TimeoutError:
            state.failure = "It took longer than 15 minutes: choose a shorter time or one agent."
        except (WorkerDied, OSError):
            state.failure = "The process that graded it ended, perhaps for want of memory."
        except (RegradeRefused, StoreUnusable, sqlite3.Error) as error:
            state.failure = f"The results cannot be stored: {error}."
        finally:
            if worker is not None:
                await worker.end()
            if not is_graded and state.regrade:
                await self._in_thread(_remove_unless_written, regrades, state.regrade)
                state.regrade = 0
            state.is_running = False

    async def _grade_with(
        self,
        worker: WorkerProcess,
        state: DraftState,
        queries: RunQueries,
        regrades: Regrades,
        milliseconds: int,
    ) -> None:
        draft = state.draft
        tenant = draft.visitor.tenant
        is_partial = bool(draft.run_filter.agent) or tenant is not None
        loaded = pickle.loads(
            await worker.request(self._order(draft.text, draft.replaced, tenant, is_partial))
        )
        state.problems = loaded["problems"]
        if state.problems:
            return
        begun = await self._in_thread(
            lambda: regrades.begin(
                milliseconds,
                name="draft",
                criteria=draft.fields.get("name") or _REPLACES.get(draft.replaced, draft.replaced),
                digest=loaded["digest"],
                author="",
                credential=draft.credential,
            )
        )
        state.regrade = begun.id
        state.total = await self._in_thread(queries.count, draft.run_filter)
        pages = _packed_pages(queries, draft.run_filter, with_traces=loaded["with_traces"])
        sent = 0
        while True:
            while sent < _PAGES_AHEAD and (page := await self._in_thread(next, pages, None)) is not None:
                worker.send(pickle.dumps(page))
                sent += 1
            if not sent:
                return
            answer = await worker.receive()
            sent -= 1
            state.graded += await self._in_thread(_stored, regrades, state.regrade, answer)


_REPLACES = {"*": "a draft in place of all criteria", "": "a draft added to the criteria in force"}


def _packed_pages(
    queries: RunQueries, run_filter: RunFilter, *, with_traces: bool
) -> Iterator[Sequence[object]]:
    for page in queries.pages(run_filter):
        yield from queries.packed_pages(page, with_traces=with_traces)


def _stored(regrades: Regrades, regrade: int, answer: bytes) -> int:
    """Store the results in an answer; the number of its runs."""
    runs, changed, same, removed = pickle.loads(answer)
    regrades.add(regrade, runs, changed, same, removed)
    return len(runs)


def _remove_unless_written(regrades: Regrades, regrade: int) -> None:
    existing = regrades.get(regrade)
    if existing is not None and not existing.is_written:
        regrades.remove(regrade)
