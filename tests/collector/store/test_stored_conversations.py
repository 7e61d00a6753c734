"""Conversations outlive a restart in a store, as far as it can be said that none of their runs was lost."""

from pathlib import Path

import pytest

from collector.clock import ManualClock, SystemClock
from collector.conversations import Conversations, ConversationsConfig
from collector.store import RunStore, StoreConfig, StoredConversations
from collector.telemetry import Metrics
from processors.annotation import run_from_json
from processors.model import AgentIdentity, AgentRun, Conversation, GradedRun, ToolCall
from tests.support.backends import eventually
from tests.support.graded_runs import trace_of

NOW = 1_769_846_400_000_000_000
HOUR = 3600 * 1_000_000_000


class _Process:
    """What one process of a service has of conversations."""

    def __init__(self, path: Path, at: int, *, wanted: bool = True, as_graded: bool = True) -> None:
        self.at = at
        self._path = path
        self.conversations = Conversations(ConversationsConfig())
        self.conversations.follow(wanted, at)
        self.store = RunStore(
            StoreConfig(path=path),
            metrics=Metrics(),
            clock=ManualClock(unix_nano=at),
            conversations=StoredConversations(
                self.conversations,
                read_run=run_from_json,
                are_as_graded=as_graded,
                retention=24 * 3600.0,
                clock=ManualClock(unix_nano=at),
            ),
        )

    def grade(self, number: int, at: int, *tools: str, session: str = "s") -> Conversation:
        """Look a run up as grading does, and keep it as it is graded."""
        run = AgentRun(
            trace_id=number.to_bytes(16, "big"),
            span_id=number.to_bytes(8, "big"),
            agent=AgentIdentity(name="agent"),
            session=session,
            start_unix_nano=at,
            tool_calls=[ToolCall(name=name) for name in tools],
        )
        (told,) = self.conversations.look_up([run], at)
        self.store.export_results(trace_of(GradedRun(run=run, results=[], graded_unix_nano=at)))
        assert told.conversation is not None
        return told.conversation

    async def start(self) -> None:
        await self.store.start()
        self.conversations.open(self.at)

    async def stop(self, at: int | None) -> None:
        """End in order at some time; None: without a word."""
        if at is not None:
            self.conversations.close(at)
        await self.store.shutdown(SystemClock().monotonic() + 10)
        wal = self._path.with_name(f"{self._path.name}-wal")
        await eventually(lambda: not wal.exists(), "it is closed")


async def _first(path: Path, closed: int | None = NOW + 2 * HOUR) -> None:
    """A process that was there for two hours, and saw one conversation from its beginning."""
    process = _Process(path, NOW)
    await process.start()
    process.grade(1, NOW, "other", session="first")
    process.grade(2, NOW + 2 * HOUR - 1, "verify")
    await process.stop(closed)


async def test_after_a_restart_in_order_everything_is_known(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await _first(path)
    process = _Process(path, NOW + 2 * HOUR + 9_000_000_000)
    await process.start()

    known = process.grade(3, process.at, "refund")

    assert (["verify"], "") == ([call.name for run in known.runs for call in run.tool_calls], known.gap)
    await process.stop(process.at)


@pytest.mark.parametrize(
    ("closed", "back"),
    [(NOW + 2 * HOUR, 11_000_000_000), (None, 1_000_000_000)],
    ids=["away for long", "without a word"],
)
async def test_what_may_have_been_lost_meanwhile_is_not_known(
    tmp_path: Path, closed: int | None, back: int
) -> None:
    path = tmp_path / "runs.db"
    await _first(path, closed)
    process = _Process(path, NOW + 2 * HOUR + back)
    await process.start()

    known = process.grade(3, process.at, "refund")

    assert (1, True) == (len(known.runs), "not all before" in known.gap)
    await process.stop(process.at)


async def test_a_word_counts_once(tmp_path: Path) -> None:
    """The second process crashed, and whatever it graded is gone."""
    path = tmp_path / "runs.db"
    await _first(path)
    second = _Process(path, NOW + 2 * HOUR + 1)
    await second.start()
    await second.stop(None)
    third = _Process(path, NOW + 2 * HOUR + 2)
    await third.start()

    assert third.grade(3, third.at, "refund").gap
    await third.stop(None)


async def test_runs_that_the_store_could_not_keep_are_not_known_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    first = _Process(path, NOW)
    await first.start()
    first.grade(1, NOW, "other", session="first")
    for number in range(2, 3_000):
        first.grade(number, NOW + 2 * HOUR, "verify", session=f"s{number}")
    await first.stop(NOW + 2 * HOUR)
    process = _Process(path, NOW + 2 * HOUR + 1)
    await process.start()

    assert process.grade(5_000, process.at, "refund", session="s2999").gap
    await process.stop(None)


@pytest.mark.parametrize("how", [{"wanted": False}, {"as_graded": False}], ids=str)
async def test_nothing_is_taken_back_that_nobody_asks_for_or_that_does_not_say_whose_it_is(
    tmp_path: Path, how: dict[str, bool]
) -> None:
    path = tmp_path / "runs.db"
    await _first(path)
    process = _Process(path, NOW + 2 * HOUR + 1, **how)
    await process.start()

    known = process.grade(3, process.at, "refund")

    assert (0, True) == (len(known.runs), bool(known.gap))
    await process.stop(None)
