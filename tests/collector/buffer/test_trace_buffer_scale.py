"""What the trace buffer does is bounded by what comes in, not by what it holds: operations are counted."""

from collector.buffer import HeldTrace, TraceBuffer
from collector.buffer.finish_policy import FinishPolicy
from collector.clock import ManualClock
from collector.memory_limiter import MemoryLimiter
from collector.telemetry import Metrics
from collector.trace import SpanBatch
from processors.model import FinishReason
from processors.spans.envelope import NO_ENVELOPE
from tests.support.held_spans import FIXED_GRACE, raw_span, trace_id


class CountingPolicy(FinishPolicy):
    looks = 0

    def deadline(self, trace: HeldTrace) -> tuple[float, FinishReason]:
        self.looks += 1
        return super().deadline(trace)


class Service:
    """A buffer with a counting policy, polled every half second."""

    def __init__(self) -> None:
        config = FIXED_GRACE
        self.policy = CountingPolicy(config)
        self.clock = ManualClock()
        self.buffer = TraceBuffer(
            config=config,
            policy=self.policy,
            limiter=MemoryLimiter(1 << 40),
            metrics=Metrics(),
            clock=self.clock,
        )
        self.buffer.poll()

    def pass_time(self, seconds: float) -> int:
        finished = 0
        for _ in range(round(seconds * 2)):
            self.clock.advance(0.5)
            finished += len(self.buffer.poll())
        return finished


def test_polling_does_not_look_at_the_hundred_thousand_traces_that_wait() -> None:
    orphan = raw_span(2, parent=1)[1]
    service = Service()
    traces = 100_000
    for number in range(traces):
        service.buffer.admit([SpanBatch(trace_id(number), [(orphan[20:28], orphan, NO_ENVELOPE)])])

    service.pass_time(3)
    looks_once_quiet = service.policy.looks
    service.pass_time(200)
    looks_while_waiting = service.policy.looks - looks_once_quiet
    finished = service.pass_time(100)

    assert traces == looks_once_quiet
    assert 0 == looks_while_waiting
    assert traces == finished
    assert 2 * traces == service.policy.looks


def test_a_busy_trace_is_not_looked_at_until_it_is_quiet() -> None:
    service = Service()

    for number in range(1, 201):
        service.buffer.admit([SpanBatch(trace_id(1), [raw_span(number)])])
        service.pass_time(1)

    assert 0 == service.policy.looks


def test_deadlines_left_behind_by_busy_traces_do_not_pile_up() -> None:
    service = Service()
    most = 0

    for number in range(1, 3000):
        service.buffer.admit([SpanBatch(trace_id(1), [raw_span(number, parent=number + 1)])])
        service.pass_time(2.5)
        most = max(most, len(service.buffer._deadlines))

    assert most <= 4 + 1024 + 1
