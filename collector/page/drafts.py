"""A draft of criteria that is graded over stored runs, in a process apart from the data path."""

import asyncio
import pickle
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeAlias

from collector.errors import ExportError, StartupError
from collector.exporters import ScoreSender
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


DraftOrder: TypeAlias = Callable[[str, str, str | None, bool, bool], bytes]


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


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far something is: `graded` of `total` runs. `failure` is why it was given up."""

    is_running: bool = True
    graded: int = 0
    total: int = 0
    failure: str = ""


@dataclass(slots=True, kw_only=True)
class ScoresProgress(Progress):
    """How far verdicts of a draft are written to exporters of scores; `sender` counts them."""

    sender: ScoreSender


@dataclass(slots=True, kw_only=True)
class DraftState(Progress):
    """How far a draft is.

    `problems` are its mistakes, each with its line, 0 if it has none. `regrade` has the results, of runs
    before `milliseconds`. With `over_conversations`, some verdicts are over conversations. `scores` is how
    far they are written to exporters of scores, if they are.
    """

    draft: Draft
    milliseconds: int
    problems: list[tuple[int, str]] = field(default_factory=list)
    regrade: int = 0
    digest: str = ""
    over_conversations: bool = False
    scores: ScoresProgress | None = None

    @property
    def is_busy(self) -> bool:
        """Whether it is graded or written."""
        return self.is_running or (self.scores is not None and self.scores.is_running)

    @property
    def problem_of_scores(self) -> str:
        """Why its verdicts cannot be written to exporters of scores; empty: they can."""
        if self.draft.visitor.tenant is not None:
            return "those of one tenant are not written there"
        if self.over_conversations:
            return "verdicts over conversations are not written there, since the store may lack runs of one"
        return "it is being graded or written, or was not graded" if self.is_busy or not self.regrade else ""


class Drafts:
    """Grades one draft at a time; all methods are for the loop of the page.

    `order` makes the first message to the worker: of a text, what it replaces, a tenant, whether only some
    runs of a conversation are known, and whether verdicts are to be sent.
    """

    def __init__(self, order: DraftOrder, in_thread: InThread) -> None:
        self._order = order
        self._in_thread = in_thread
        self._task: asyncio.Task[None] | None = None
        self.state: DraftState | None = None
        """The last draft; safe to read in any thread."""

    @property
    def is_running(self) -> bool:
        """Whether a draft is being graded or written."""
        return self._task is not None and not self._task.done()

    def start(self, draft: Draft, queries: RunQueries, milliseconds: int) -> None:
        """Begin to grade a draft at this Unix time; none may be running. What the last one left goes."""
        before, self.state = self.state, DraftState(draft=draft, milliseconds=milliseconds)
        self._task = asyncio.create_task(self._grade(self.state, before, queries))

    def write_scores(self, state: DraftState, sender: ScoreSender, queries: RunQueries) -> None:
        """Begin to send the verdicts of a draft that was graded; none may be running."""
        state.scores = ScoresProgress(total=state.graded, sender=sender)
        self._task = asyncio.create_task(self._write_scores(state, state.scores, queries))

    async def cancel(self) -> None:
        """Stop grading, and remove what was graded, or stop sending; nothing if neither is under way."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _grade(self, state: DraftState, before: DraftState | None, queries: RunQueries) -> None:
        regrades = Regrades(queries)
        try:
            await self._with_worker(state, partial(self._grade_with, state, before, queries, regrades))
        finally:
            if (state.failure or state.problems) and state.regrade:
                await self._in_thread(_remove_unless_written, regrades, state.regrade)
                state.regrade = 0
            state.is_running = False

    async def _write_scores(self, state: DraftState, scores: ScoresProgress, queries: RunQueries) -> None:
        try:
            await self._with_worker(scores, partial(self._send_scores, state, scores, queries))
        finally:
            scores.is_running = False

    async def _with_worker(
        self, progress: Progress, work: Callable[[WorkerProcess], Awaitable[None]]
    ) -> None:
        """Do some work with a worker of its own, for a limited time."""
        worker: WorkerProcess | None = None
        is_done = False
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                worker = await WorkerProcess.start(COMMAND, _MAX_REPLY_BYTES)
                await work(worker)
            is_done = True
        except asyncio.CancelledError:
            progress.failure = "It was cancelled."
        except TimeoutError:
            progress.failure = "It took longer than 15 minutes: choose a shorter time or one agent."
        except (WorkerDied, OSError):
            progress.failure = "The process that graded it ended, perhaps for want of memory."
        except RegradeRefused as error:
            progress.failure = f"The results cannot be stored: {error}."
        except (StoreUnusable, sqlite3.Error) as error:
            progress.failure = f"The store cannot be used: {error}."
        except (ExportError, StartupError) as error:
            progress.failure = f"Not accepted: {error}"
        finally:
            if not (is_done or progress.failure):
                progress.failure = "It ended unexpectedly."
            if worker is not None:
                await worker.end()

    async def _grade_with(
        self,
        state: DraftState,
        before: DraftState | None,
        queries: RunQueries,
        regrades: Regrades,
        worker: WorkerProcess,
    ) -> None:
        draft = state.draft
        if before is not None:
            await self._in_thread(_remove_unless_written, regrades, before.regrade)
        loaded = await self._loaded(worker, draft, writes=False)
        state.problems = loaded["problems"]
        if state.problems:
            return
        state.digest, state.over_conversations = loaded["digest"], loaded["over_conversations"]
        begun = await self._in_thread(
            lambda: regrades.begin(
                state.milliseconds,
                name="draft",
                criteria=draft.fields.get("name") or _REPLACES.get(draft.replaced, draft.replaced),
                digest=state.digest,
                author="",
                credential=draft.credential,
            )
        )
        state.regrade = begun.id
        state.total = await self._in_thread(queries.count, draft.run_filter)
        async for answer in self._answers(worker, queries, draft.run_filter, loaded["with_traces"]):
            state.graded += await self._in_thread(_stored, regrades, state.regrade, answer)

    async def _send_scores(
        self, state: DraftState, scores: ScoresProgress, queries: RunQueries, worker: WorkerProcess
    ) -> None:
        """Grade a draft once more, and send its verdicts: they are not stored, only what they change."""
        run_filter = state.draft.run_filter
        run_filter = replace(run_filter, until=run_filter.until or state.milliseconds)
        loaded = await self._loaded(worker, state.draft, writes=True)
        if loaded.get("digest") != state.digest:
            scores.failure = "The criteria in force have changed since it was graded: grade it again."
            return
        async for answer in self._answers(worker, queries, run_filter, loaded["with_traces"]):
            runs, requests = await self._in_thread(pickle.loads, answer)
            for request, count in requests:
                await scores.sender.send(request, count)
            scores.graded += runs

    async def _loaded(self, worker: WorkerProcess, draft: Draft, *, writes: bool) -> dict[str, Any]:
        """What the worker answers when it has read a draft."""
        tenant = draft.visitor.tenant
        is_partial = bool(draft.run_filter.agent) or tenant is not None
        order = self._order(draft.text, draft.replaced, tenant, is_partial, writes)
        loaded: dict[str, Any] = pickle.loads(await worker.request(order))
        return loaded

    async def _answers(
        self, worker: WorkerProcess, queries: RunQueries, run_filter: RunFilter, with_traces: bool
    ) -> AsyncIterator[bytes]:
        """What the worker makes of each page of runs."""
        pages = _packed_pages(queries, run_filter, with_traces=with_traces)
        sent = 0
        while True:
            while sent < _PAGES_AHEAD and (page := await self._in_thread(next, pages, None)) is not None:
                worker.send(pickle.dumps(page))
                sent += 1
            if not sent:
                return
            yield await worker.receive()
            sent -= 1


_REPLACES = {"*": "a draft in place of all criteria", "": "a draft added to the criteria in force"}


def _packed_pages(
    queries: RunQueries, run_filter: RunFilter, *, with_traces: bool
) -> Iterator[Sequence[object]]:
    for page in queries.pages(run_filter):
        yield from queries.packed_pages(page, with_traces=with_traces)


def _stored(regrades: Regrades, regrade: int, answer: bytes) -> int:
    """Store the results in an answer; the number of its runs."""
    runs, *results = pickle.loads(answer)
    regrades.add(regrade, runs, *results)
    return len(runs)


def _remove_unless_written(regrades: Regrades, regrade: int) -> None:
    existing = regrades.get(regrade)
    if existing is not None and not existing.is_written:
        regrades.remove(regrade)
