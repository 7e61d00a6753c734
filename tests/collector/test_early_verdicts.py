"""Which traces are looked at for early failures, when, and how much of a core that takes."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from collector.buffer import FinishedTraces, RecordClock, TraceBuffer
from collector.grading import EarlyFailure, Grader
from collector.path import EarlyVerdicts
from collector.task_supervisor import TaskSupervisor
from collector.trace import FinishedTrace, RecordSource, SpanBatch
from processors.criteria import CriteriaSet, read_criteria
from processors.model import FinishReason
from processors.spans import RawRecord, RawSpan
from tests.support.agent_spans import TRACE_ID, model, tool
from tests.support.held_spans import SECOND, START_UNIX_NANO, BufferUnderTest

EARLY = read_criteria(
    'agents: {"*": {evaluations: [{evaluator: tool-call-budget, criteria: {max_calls: 2}, early: true}]}}',
    "criteria.yaml",
    {},
).agents


class _NoOwnTraces:
    def is_own(self, trace_id: bytes) -> bool:
        return False

    def finish(self, trace: FinishedTrace) -> None:
        raise AssertionError("there are none")

    def drop_records(self, records: Sequence[RawRecord]) -> None:
        raise AssertionError("there are none")


class _Source:
    """Records that nothing is held of."""

    has_room = True

    def hold(self, record: int) -> None:
        pass

    def has_all(self, trace_id: bytes) -> bool:
        return True


class _Looks:
    """The looks at a real buffer, on its clock, and what they report."""

    def __init__(self, criteria: CriteriaSet | None = None) -> None:
        self.under_test = BufferUnderTest()
        self.clock, self.metrics = self.under_test.clock, self.under_test.metrics
        self.criteria = criteria or CriteriaSet(EARLY)
        self.reported: list[EarlyFailure] = []
        self.verdicts = EarlyVerdicts(
            group=self.under_test.buffer.group,
            grader=Grader(criteria=lambda: self.criteria, clock=self.clock, instance="test"),
            service_traces=_NoOwnTraces(),
            on_failure=self.reported.append,
            metrics=self.metrics,
            clock=self.clock,
        )
        self.tasks = TaskSupervisor(lambda: None)

    async def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.25)):
            self.clock.advance(0.25)
            for _ in range(20):  # a look takes a thread
                await asyncio.sleep(0.001)

    def calls(self, count: int, *, began: float = 0.0, trace: int = 1, first: int = 2) -> SpanBatch:
        """A turn and calls of an agent that goes on, which began so many seconds after the start."""
        at = START_UNIX_NANO // 1_000_000 + int(began * 1000)
        spans = [model(first, 1, (at, at + 1))]
        spans += [tool(first + each, 1, f"tool-{each}", at=(at, at + 1)) for each in range(1, count + 1)]
        trace_id = trace.to_bytes(16, "big")
        own: Sequence[RawSpan] = [
            (span_id, payload.replace(TRACE_ID, trace_id), of) for span_id, payload, of in spans
        ]
        return SpanBatch(trace_id, own)


@pytest.fixture
async def looks() -> _Looks:
    return _Looks()


async def test_a_trace_is_looked_at_a_second_after_it_began_and_again_when_it_grew(looks: _Looks) -> None:
    looks.verdicts.start(looks.tasks)
    looks.under_test.admit(looks.calls(2))
    await looks.pass_time(3)
    assert looks.reported == []

    looks.under_test.admit(looks.calls(1, first=20))
    decided = looks.clock.unix_nano()
    await looks.pass_time(0.75)
    (failure,) = looks.reported
    assert failure.failed.results[0].explanation == "all tools: 3 calls, at most 2"

    looks.under_test.admit(looks.calls(1, first=30))
    await looks.pass_time(3)
    assert len(looks.reported) == 1
    (running,) = looks.verdicts.running()
    assert (running.trace_id, running.evaluation) == ((1).to_bytes(16, "big"), "tool-call-budget")
    assert running.explanation == "all tools: 3 calls, at most 2"
    assert decided < running.unix_nano <= decided + SECOND

    looks.under_test.buffer.finish_all(FinishReason.SHUTDOWN)
    await looks.pass_time(0.5)
    assert looks.verdicts.running() == []
    await looks.tasks.cancel()


async def test_a_trace_of_the_millisecond_in_which_looking_began_is_looked_at(looks: _Looks) -> None:
    looks.clock.advance(0.0009)
    looks.verdicts.start(looks.tasks)
    looks.under_test.admit(looks.calls(3))  # whose times are in whole milliseconds
    await looks.pass_time(2)
    assert len(looks.reported) == 1
    await looks.tasks.cancel()


async def test_nothing_is_looked_at_without_early_evaluations(looks: _Looks) -> None:
    looks.criteria = CriteriaSet()
    looks.verdicts.start(looks.tasks)
    looks.under_test.admit(looks.calls(3))
    await looks.pass_time(3)
    held = looks.under_test.buffer.held((1).to_bytes(16, "big"))
    assert held is not None
    assert held.early is None

    looks.criteria = CriteriaSet(EARLY)  # criteria are reloaded
    looks.under_test.admit(looks.calls(1, first=20))
    await looks.pass_time(1)
    assert len(looks.reported) == 1
    await looks.tasks.cancel()


async def test_what_began_before_this_process_or_reader_is_left_out(looks: _Looks) -> None:
    main = looks.under_test.buffer
    main.restore(looks.calls(3, began=-5), START_UNIX_NANO - 2 * SECOND, START_UNIX_NANO)
    looks.verdicts.start(looks.tasks)
    await looks.pass_time(1)
    partition: TraceBuffer = main.sibling(
        cast(RecordSource, _Source()), RecordClock(looks.clock), FinishedTraces()
    )
    await looks.pass_time(1)
    partition.admit([looks.calls(3, began=0.5, trace=2)], 0)  # read again: another reader had it
    partition.admit([looks.calls(3, began=2.5, trace=3)], 1)
    main.admit([looks.calls(1, began=3, first=20)])
    await looks.pass_time(3)
    assert [failure.failed.run.trace_id[-1] for failure in looks.reported] == [3]
    await looks.tasks.cancel()
