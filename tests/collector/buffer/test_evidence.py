"""Traces that show that their runs are over finish sooner than those that do not."""

from collections.abc import Sequence

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.buffer import GroupByTraceConfig
from collector.buffer.trace_buffer import JUDGED_A_SECOND, JUDGED_SPANS, TIMES_JUDGED
from collector.grading import evidence_reader
from collector.trace import FinishedTrace, SpanBatch
from processors.model import FinishReason
from processors.reconstruction import Scopes
from processors.spans import RawSpan
from tests.processors.reconstruction.test_settled import AGENT, ANSWERING, PAY, REQUESTING
from tests.support.agent_spans import REMOTE_PARENT, TRACE_ID, envelope, span, tool
from tests.support.held_spans import START_UNIX_NANO, BufferUnderTest

WHOLE = [AGENT, REQUESTING, PAY, ANSWERING]
DEFAULT = GroupByTraceConfig()


class Judge:
    """The real judge, and how often it was asked."""

    def __init__(self) -> None:
        self.read = evidence_reader(())
        self.times = 0

    def __call__(self, spans: Sequence[RawSpan]) -> Scopes | None:
        self.times += 1
        return self.read(spans)


def buffer(
    config: GroupByTraceConfig = DEFAULT, judge: Judge | None = None, verdict_delay: float = 0.0
) -> BufferUnderTest:
    return BufferUnderTest(config, settled_scopes=judge or Judge(), verdict_delay=verdict_delay)


def admit(under_test: BufferUnderTest, *spans: RawSpan) -> None:
    under_test.admit(SpanBatch(TRACE_ID, spans))


def finish(under_test: BufferUnderTest) -> tuple[float, FinishedTrace]:
    """Seconds until the trace finishes, and the trace."""
    for half_seconds in range(1, 100):
        for trace in under_test.pass_time(0.5):
            return half_seconds / 2, trace
    raise AssertionError("nothing finished")


def test_a_settled_trace_finishes_after_a_second_and_brings_what_was_read() -> None:
    under_test = buffer()
    admit(under_test, *WHOLE)

    seconds, trace = finish(under_test)

    assert (1.0, FinishReason.ROOT, True) == (seconds, trace.reason, trace.was_quiet)
    assert trace.scopes is not None
    assert WHOLE == trace.spans


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        pytest.param([AGENT, REQUESTING], 6.0, id="a requested call has not come"),
        pytest.param([AGENT, REQUESTING, PAY], 6.0, id="no answer"),
        pytest.param([AGENT, PAY], 6.0, id="no turns"),
        pytest.param(
            [*WHOLE, span(9, 3, "POST", {"http.request.method": "POST"}, kind=Span.SPAN_KIND_CLIENT)],
            6.0,
            id="another process may go on",
        ),
        pytest.param([*WHOLE, span(9, 3, "send", kind=Span.SPAN_KIND_PRODUCER)], 6.0, id="a message is sent"),
        pytest.param(
            [*WHOLE, span(9, 3, "SELECT", {"db.system.name": "x"}, kind=Span.SPAN_KIND_CLIENT)],
            1.0,
            id="a database answers",
        ),
        pytest.param([*WHOLE, span(9, 3, "server", kind=Span.SPAN_KIND_SERVER)], 6.0, id="a server"),
        pytest.param([*WHOLE, span(9, 3, "other", of=envelope("other"))], 6.0, id="two services"),
        pytest.param([*WHOLE, span(9, 8, "orphan")], 10.0, id="a parent is missing"),
        pytest.param([*WHOLE, span(9, 8, "remote", flags=REMOTE_PARENT)], 10.0, id="a remote root beside"),
        pytest.param(
            [*WHOLE, *(span(10 + at, 1, "step") for at in range(JUDGED_SPANS))], 6.0, id="a large trace"
        ),
    ],
)
def test_what_is_not_evidently_over_waits_longer(spans: list[RawSpan], seconds: float) -> None:
    under_test = buffer()
    admit(under_test, *spans)

    assert seconds == finish(under_test)[0]


def test_a_call_that_ends_after_the_root_and_comes_with_the_next_batch_is_graded() -> None:
    under_test = buffer()
    admit(under_test, AGENT, REQUESTING)

    assert not under_test.pass_time(5.0)
    admit(under_test, PAY)
    seconds, trace = finish(under_test)

    assert (6.0, 3) == (seconds, len(trace.spans))


def test_what_settles_the_trace_later_ends_its_wait() -> None:
    under_test = buffer()
    admit(under_test, AGENT, REQUESTING, ANSWERING)

    assert not under_test.pass_time(5.0)
    admit(under_test, PAY)

    assert 1.0 == finish(under_test)[0]


def test_a_span_that_unsettles_the_trace_starts_the_longer_wait() -> None:
    under_test = buffer()
    admit(under_test, *WHOLE)
    assert not under_test.pass_time(0.5)
    admit(under_test, tool(9, 1, "log"))

    assert 6.0 == finish(under_test)[0]


def test_a_duration_counts_whatever_the_trace_shows() -> None:
    judge = Judge()
    under_test = buffer(GroupByTraceConfig.model_validate({"root_grace": "3s"}), judge)
    admit(under_test, *WHOLE)

    assert (3.0, 0) == (finish(under_test)[0], judge.times)


def test_the_duration_of_a_service_counts_for_it_alone() -> None:
    config = GroupByTraceConfig.model_validate(
        {"services": {"demo": {"root_grace": "3s"}, "quick": {"root_grace": "0s"}}}
    )
    judge = Judge()
    slow, other = (
        buffer(config, judge),
        buffer(GroupByTraceConfig.model_validate({"services": {"quick": {"root_grace": "0s"}}})),
    )
    admit(slow, *WHOLE)
    admit(other, *WHOLE)

    assert (3.0, 0) == (finish(slow)[0], judge.times)
    assert 1.0 == finish(other)[0]


def test_the_longer_wait_is_that_of_several_processes() -> None:
    config = GroupByTraceConfig.model_validate({"multi_service_grace": "8s"})
    under_test = buffer(config)
    admit(under_test, AGENT, PAY)

    assert 8.0 == finish(under_test)[0]
    assert 8.0 == config.fixed_root_grace


def test_the_delay_of_verdicts_comes_on_top_of_both() -> None:
    settled, unsettled = buffer(verdict_delay=5.0), buffer(verdict_delay=5.0)
    admit(settled, *WHOLE)
    admit(unsettled, AGENT, PAY)

    assert (6.0, 11.0) == (finish(settled)[0], finish(unsettled)[0])


def test_it_is_asked_once_for_each_quiet_second_and_a_few_times_for_a_trace() -> None:
    judge = Judge()
    under_test = buffer(judge=judge)
    for number in range(9, 20):
        admit(under_test, AGENT, PAY, span(number, 1, "step"))
        assert not under_test.pass_time(2.0)

    assert TIMES_JUDGED == judge.times
    assert 4.0 == finish(under_test)[0]


def test_of_more_traces_than_can_be_read_in_a_second_the_others_wait_longer() -> None:
    judge = Judge()
    under_test = buffer(judge=judge)
    for number in range(JUDGED_A_SECOND + 5):
        under_test.admit(SpanBatch((number + 1).to_bytes(16, "little"), WHOLE))

    assert JUDGED_A_SECOND == len(under_test.pass_time(1.0)) == judge.times
    assert not under_test.pass_time(4.5)
    assert 5 == len(under_test.pass_time(0.5))


def test_what_cannot_be_read_waits_longer() -> None:
    under_test = buffer()
    _, payload, of = WHOLE[1]
    unreadable = payload + b"\x4a\x02\x0a\xff"  # an attribute that is cut off
    admit(under_test, *WHOLE, (bytes([9] * 8), unreadable, of))

    assert 6.0 == finish(under_test)[0]


def test_what_was_restored_is_not_read_before_it_is_graded() -> None:
    judge = Judge()
    under_test = buffer(judge=judge)
    under_test.buffer.restore(SpanBatch(TRACE_ID, WHOLE), START_UNIX_NANO, START_UNIX_NANO)

    assert (6.0, 0) == (finish(under_test)[0], judge.times)


def test_where_nothing_judges_every_trace_waits_longer() -> None:
    under_test = BufferUnderTest(DEFAULT)
    admit(under_test, *WHOLE)

    seconds, trace = finish(under_test)

    assert (6.0, None) == (seconds, trace.scopes)
