import asyncio
from collections.abc import Coroutine

import pytest

from collector.clock import ManualClock
from collector.cluster import ClusterConfig
from collector.cluster.peer_watch import Answer, LookupFailed, PeerWatch
from collector.telemetry import Metrics

TWO = frozenset({"127.0.0.2", "127.0.0.3"})


class Tasks:
    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    def create_task(self, coroutine: Coroutine[object, object, None], *, name: str) -> asyncio.Task[None]:
        self.tasks.append(asyncio.get_running_loop().create_task(coroutine, name=name))
        return self.tasks[-1]


class Watching:
    """A watch whose lookups end as the test says, one after another."""

    def __init__(self, **config: object) -> None:
        self.clock = ManualClock()
        self.metrics = Metrics()
        self.reroutings: list[tuple[int, float]] = []
        self.outcome: Answer | LookupFailed = Answer(TWO, 0)
        self.lookups = 0
        self.tasks = Tasks()
        self.watch = PeerWatch(
            ClusterConfig.model_validate(config),
            note_rerouting=lambda start, seconds: self.reroutings.append((start, seconds)),
            metrics=self.metrics,
            clock=self.clock,
            lookup=self._look_up,
        )

    async def _look_up(self, name: str) -> Answer:
        assert "replicas" == name
        self.lookups += 1
        if isinstance(self.outcome, LookupFailed):
            raise self.outcome
        return self.outcome

    async def pass_seconds(self, seconds: int) -> None:
        for _ in range(seconds):
            for _ in range(5):
                await asyncio.sleep(0)
            self.clock.advance(1)

    async def stop(self) -> None:
        for task in self.tasks.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks.tasks, return_exceptions=True)


async def test_a_change_is_told_once_and_counted() -> None:
    watching = Watching(peers_dns="replicas")
    watching.watch.start(watching.tasks)
    await watching.pass_seconds(5)
    told_before = len(watching.reroutings)

    watching.outcome = Answer(TWO | {"127.0.0.4"}, 0)
    await watching.pass_seconds(5)
    await watching.stop()

    assert 10 == watching.lookups
    assert 1 == len(watching.reroutings) - told_before
    assert 1 == watching.metrics.cluster_changes.value("change")
    assert 3 == watching.metrics.cluster_peers.value()


async def test_an_answer_that_is_missing_empty_or_truncated_leaves_the_set_as_it_was() -> None:
    watching = Watching(peers_dns="replicas")
    watching.watch.start(watching.tasks)
    await watching.pass_seconds(2)
    told_before = len(watching.reroutings)

    for reason in ("failed", "empty", "truncated"):
        watching.outcome = LookupFailed(reason, "no")
        await watching.pass_seconds(2)
    watching.outcome = Answer(TWO, 0)
    await watching.pass_seconds(2)
    await watching.stop()

    assert told_before == len(watching.reroutings)
    assert 2 == watching.metrics.cluster_peers.value()
    problems = watching.metrics.cluster_resolve_problems
    assert [2, 2, 2, 0] == [problems.value(r) for r in ("failed", "empty", "truncated", "long_ttl")]


@pytest.mark.parametrize(
    ("ttl", "settings"),
    [(5, {"resolver_interval": "5s"}), (6, {"resolver_interval": "10s"})],
    ids=["as_the_interval", "more_than_told"],
)
async def test_an_answer_that_may_be_cached_for_too_long_counts_and_is_counted(
    ttl: int, settings: dict[str, str]
) -> None:
    watching = Watching(peers_dns="replicas", **settings)
    watching.outcome = Answer(TWO, ttl)
    watching.watch.start(watching.tasks)
    await watching.pass_seconds(1)
    await watching.stop()

    assert 2 == watching.metrics.cluster_peers.value()
    assert 1 == watching.metrics.cluster_resolve_problems.value("long_ttl")


async def test_a_list_is_uncertain_after_the_start_alone_and_nothing_is_looked_up() -> None:
    watching = Watching(peers=["one:4317", "two:4317"], resolver_interval="1m")

    watching.watch.start(watching.tasks)

    assert [] == watching.tasks.tasks
    assert [(0, 61.0)] == watching.reroutings
    assert 2 == watching.metrics.cluster_peers.value()
