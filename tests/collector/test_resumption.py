"""Going on with a journal that holds much: the loop turns meanwhile."""

import asyncio
from pathlib import Path

from collector.buffer import GroupByTraceConfig, TraceBuffer
from collector.clock import SystemClock
from collector.exporters import FanOut
from collector.exporters.delivery import Delivery
from collector.exporters.fan_out import DiscardingQueue
from collector.grading import Grader, GradingStage
from collector.journal import Journal, JournalConfig
from collector.memory_limiter import MemoryLimiter
from collector.otlp import EnvelopeRegistry
from collector.resumption import Resumption
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, GradedTrace, SpanBatch
from processors.criteria import CriteriaSet
from processors.model import FinishReason
from tests.support.deliveries import make_spans


class _WatchingQueue(DiscardingQueue):
    """Notes how often the loop had turned when each trace came."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__("otlp", metrics)
        self.turns = 0
        self.turns_at: dict[bytes, int] = {}

    def enqueue(self, delivery: Delivery) -> None:
        self.turns_at[delivery.spans[0][0]] = self.turns
        super().enqueue(delivery)

    async def watch(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


def _batch(trace: int) -> SpanBatch:
    return SpanBatch(trace.to_bytes(16, "big"), make_spans(trace, 2))


async def test_the_loop_turns_between_any_two_graded_traces_and_among_the_unfinished(tmp_path: Path) -> None:
    graded, unfinished = range(1, 101), range(101, 3_101)
    metrics, clock, tasks = Metrics(), SystemClock(), TaskSupervisor(lambda: None)
    before = Journal(JournalConfig(directory=tmp_path), metrics=metrics, clock=clock)
    before.open(EnvelopeRegistry())
    before.start(tasks)
    before.add([_batch(trace) for trace in (*graded, *unfinished)])
    for trace in map(_batch, graded):
        finished = FinishedTrace(trace_id=trace.trace_id, spans=trace.spans, reason=FinishReason.ROOT)
        before.add_verdicts(
            finished, GradedTrace(trace_id=trace.trace_id, spans=trace.spans), when_stored=lambda: None
        )
    await before.shutdown()

    metrics = Metrics()
    journal = Journal(JournalConfig(directory=tmp_path), metrics=metrics, clock=clock)
    limiter = MemoryLimiter(1 << 30)
    buffer = TraceBuffer(config=GroupByTraceConfig(), limiter=limiter, metrics=metrics, clock=clock)
    queue = _WatchingQueue(metrics)
    criteria = CriteriaSet([])
    resumption = Resumption(
        journal=journal,
        envelopes=EnvelopeRegistry(),
        buffer=buffer,
        grading=GradingStage(
            grader=Grader(criteria=lambda: criteria, clock=clock, instance="test"),
            metrics=metrics,
            clock=clock,
        ),
        fan_out=FanOut({"traces": [queue]}, [], limiter),
        limiter=limiter,
        metrics=metrics,
        on_runs=lambda graded: None,
    )
    watching = asyncio.create_task(queue.watch())
    await resumption.resume(tasks)
    turns_until_taken_over = queue.turns
    assert not queue.turns_at
    await resumption.send_graded()
    watching.cancel()
    await journal.shutdown()
    await tasks.cancel()

    turns = list(queue.turns_at.values())
    assert [_batch(trace).spans[0][0] for trace in graded] == list(queue.turns_at)
    assert len(graded) == len(set(turns))
    assert turns_until_taken_over > len([*graded, *unfinished]) // 1000
    assert 2 * len(unfinished) == buffer.spans_held
    assert not tasks.failures
