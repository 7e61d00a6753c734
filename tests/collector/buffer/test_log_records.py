"""Copies of agents' log records wait with their trace, or for it, within bounds; nothing is counted twice."""

from contextlib import suppress
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector.buffer import GroupByTraceConfig, LearnedWaits, RecordAdmission
from collector.errors import Overloaded, RequestTooLarge
from collector.grading import evidence_reader
from collector.trace import SpanBatch, held_bytes
from processors.model import FinishReason
from processors.spans import RawRecord
from tests.processors.reconstruction.test_settled import AGENT as AGENT_SPAN
from tests.processors.reconstruction.test_settled import ANSWERING, PAY, REQUESTING
from tests.support.agent_spans import TRACE_ID
from tests.support.held_spans import AGENT, START_UNIX_NANO, BufferUnderTest, batch, raw_span, trace_id

GRACE = 2.0
CONFIG = GroupByTraceConfig.model_validate(
    {"root_grace": "2s", "incomplete_grace": "4s", "idle_timeout": "20s", "max_trace_age": "60s"}
)


def record(number: int, size: int = 20) -> RawRecord:
    return b"", b"%d " % number + b"x" * size, AGENT


def run_record(number: int, size: int = 20, *, at: int = START_UNIX_NANO) -> RawRecord:
    body = AnyValue(string_value="x" * size)
    message = LogRecord(time_unix_nano=at, severity_number=number, body=body)  # type: ignore[arg-type]
    return b"", message.SerializeToString(), AGENT


def admit_run(buffer: BufferUnderTest, *records: RawRecord, run: int = 1) -> RecordAdmission:
    """Admit records that name no trace, of one prompt."""
    content = [SpanBatch(trace_id(run), list(records), is_run=True)]
    admitted = buffer.buffer.admit_records(records, content)
    buffer.limiter.release(admitted.held_bytes)
    return admitted


def under_test(**settings: object) -> BufferUnderTest:
    return BufferUnderTest(CONFIG, **settings)  # type: ignore[arg-type]


def admit(buffer: BufferUnderTest, *records: RawRecord, trace: int = 1) -> RecordAdmission:
    """Admit records of a trace, all of which leave at once."""
    admitted = buffer.buffer.admit_records(records, [SpanBatch(trace_id(trace), list(records))])
    assert held_bytes(records) == admitted.held_bytes
    buffer.limiter.release(admitted.held_bytes)
    return admitted


def release(buffer: BufferUnderTest, finished: list) -> None:  # type: ignore[type-arg]
    for trace in finished:
        buffer.limiter.release(held_bytes(trace.spans) + held_bytes(trace.records))


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_records_finish_with_their_trace_whenever_they_come(order: tuple[int, ...]) -> None:
    buffer = under_test()
    records = [record(1), record(2)]
    spans = [raw_span(1), raw_span(2, 1)]
    for step in order:
        if step < 2:
            assert [] == buffer.admit(batch(spans[step]))
        else:
            assert 1 == len(admit(buffer, records[step - 2]).kept)
        buffer.pass_time(0.5)

    finished = buffer.pass_time(GRACE + 2)

    (trace,) = finished
    assert (FinishReason.ROOT, set(spans), set(records)) == (
        trace.reason,
        set(trace.spans),
        set(trace.records),
    )
    release(buffer, finished)
    assert 0 == buffer.buffer.held_bytes == buffer.buffer.log_records_held
    assert 0 == buffer.limiter.used - buffer.limiter.shared_bytes()


def test_a_record_restarts_the_quiet_time_and_a_repeat_does_not() -> None:
    buffer = under_test()
    buffer.admit(batch(raw_span(1)))
    buffer.pass_time(1.5)
    admit(buffer, record(1))
    assert [] == buffer.pass_time(1.5)
    admit(buffer, record(1))

    (trace,) = buffer.pass_time(1)

    assert [record(1)] == list(trace.records)


def test_a_record_of_a_finished_trace_is_late() -> None:
    buffer = under_test()
    buffer.admit(batch(raw_span(1)))
    release(buffer, buffer.pass_time(GRACE))

    admitted = admit(buffer, record(1), record(2))

    assert () == tuple(admitted.kept)
    assert [trace_id(1)] == [late.trace_id for late in admitted.late]
    assert 2 == buffer.metrics.late_log_records.value()
    assert 0 == buffer.limiter.used - buffer.limiter.shared_bytes()


def test_a_trace_that_never_comes_is_waited_for_until_it_would_be_too_old() -> None:
    buffer = under_test()
    unmatched: list[bytes] = []
    buffer.buffer.on_unmatched = unmatched.append
    admit(buffer, record(1), record(2))
    buffer.pass_time(59)
    assert [] == unmatched
    assert 2 == buffer.buffer.log_records_held

    assert [] == buffer.pass_time(2)

    assert [trace_id(1)] == unmatched
    assert 2 == buffer.metrics.log_records_unmatched.value("max_age")
    assert 0 == buffer.buffer.held_bytes == buffer.buffer.log_records_held
    assert 0 == buffer.limiter.used - buffer.limiter.shared_bytes()


def test_what_waits_for_traces_is_bounded_in_bytes_and_the_oldest_goes_first() -> None:
    buffer = under_test(limit_bytes=1 << 20)
    unmatched: list[bytes] = []
    buffer.buffer.on_unmatched = unmatched.append
    for number in range(1, 12):
        admit(buffer, record(number, 6000), trace=number)

    assert buffer.buffer.held_bytes <= (1 << 20) // 16
    assert [trace_id(1)] == unmatched[:1]
    assert 11 == buffer.buffer.log_records_held + buffer.metrics.log_records_unmatched.value("no_room")
    assert () == tuple(admit(buffer, record(99, 1 << 17), trace=99).kept)


def test_records_that_find_no_room_are_refused_as_a_whole() -> None:
    buffer = under_test(limit_bytes=20_000)
    buffer.admit(batch(raw_span(1, name="x" * 15_000)))
    used = buffer.limiter.used

    with pytest.raises(Overloaded):
        buffer.buffer.admit_records([record(1, 5000)])
    with pytest.raises(RequestTooLarge):
        buffer.buffer.admit_records([record(1, 50_000)])

    assert used == buffer.limiter.used
    assert 0 == buffer.metrics.log_records_received.value()


def test_records_count_towards_the_limit_of_a_trace() -> None:
    config = {**CONFIG.model_dump(exclude_unset=True), "max_bytes_per_trace": 3000}
    buffer = BufferUnderTest(GroupByTraceConfig.model_validate(config))
    buffer.admit(batch(raw_span(1)))

    admit(buffer, record(1, 4000))

    (trace,) = buffer.pass_time(0.1)
    assert FinishReason.OVER_LIMIT is trace.reason
    assert 1 == len(trace.records)
    release(buffer, [trace])
    assert 0 == buffer.limiter.used - buffer.limiter.shared_bytes()


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("record"), st.integers(1, 3), st.integers(1, 4)),
            st.tuples(st.just("span"), st.integers(1, 3), st.integers(1, 4)),
            st.tuples(st.just("run"), st.integers(3, 5), st.integers(1, 4)),
            st.tuples(st.just("time"), st.integers(1, 30), st.just(0)),
        ),
        max_size=25,
    )
)
def test_any_interleaving_keeps_the_books(steps: list[tuple[str, int, int]]) -> None:
    buffer = under_test()
    finished = []
    for kind, trace, number in steps:
        if kind == "record":
            admit(buffer, run_record(number), trace=trace)
        elif kind == "run":
            admit_run(buffer, run_record(number), run=trace)
        elif kind == "span":
            late = buffer.admit(batch(raw_span(number, None if number == 1 else 1, trace=trace)))
            buffer.limiter.release(sum(held_bytes(each.spans) for each in late))
        else:
            finished += buffer.pass_time(trace)
    finished += buffer.pass_time(200)
    release(buffer, finished)

    assert 0 == buffer.buffer.held_bytes == buffer.buffer.log_records_held == buffer.buffer.spans_held
    assert 0 == buffer.limiter.used - buffer.limiter.shared_bytes()


def test_records_of_a_run_finish_together_when_they_were_idle() -> None:
    buffer = under_test()
    records = [run_record(number) for number in range(3)]
    for each in records:
        assert 1 == len(admit_run(buffer, each, each).kept)
        assert [] == buffer.pass_time(19)
    assert (1, 3) == (buffer.buffer.traces_held, buffer.buffer.log_records_held)

    finished = buffer.pass_time(2)
    late = admit_run(buffer, run_record(9))

    (run,) = finished
    assert (FinishReason.IDLE, trace_id(1), 0, False) == (
        run.reason, run.trace_id, len(run.spans), run.interrupted
    )  # fmt: skip
    assert records == list(run.records)
    assert ((), 1) == (tuple(late.kept), len(late.late))
    release(buffer, finished)
    assert 0 == buffer.buffer.held_bytes == buffer.limiter.used - buffer.limiter.shared_bytes()


def test_a_run_of_records_may_have_waits_of_its_service() -> None:
    settings = {**CONFIG.model_dump(exclude_unset=True), "services": {"agent": {"idle_timeout": "3s"}}}
    buffer = BufferUnderTest(GroupByTraceConfig.model_validate(settings))

    admit_run(buffer, run_record(1))

    assert [] == buffer.pass_time(2.5)
    assert 1 == len(buffer.pass_time(1))


@pytest.mark.parametrize(
    ("settings", "limit_bytes", "reason"),
    [
        ({"max_bytes_per_trace": 2000}, 1 << 20, FinishReason.OVER_LIMIT),
        ({"max_spans_per_trace": 2}, 1 << 20, FinishReason.OVER_LIMIT),
        ({"max_trace_age": "3s"}, 1 << 20, FinishReason.MAX_AGE),
        ({}, 7000, FinishReason.PRESSURE),
    ],
)
def test_a_run_of_records_is_bounded_as_a_trace_is(
    settings: dict[str, object], limit_bytes: int, reason: FinishReason
) -> None:
    config = GroupByTraceConfig.model_validate({**CONFIG.model_dump(exclude_unset=True), **settings})
    buffer = BufferUnderTest(config, limit_bytes=limit_bytes)
    for number in range(3):
        with suppress(Overloaded):  # then room is made
            admit_run(buffer, run_record(number, 1000))

    finished = buffer.pass_time(4)

    assert [reason] == [run.reason for run in finished]
    assert 3 >= len(finished[0].records) > 0
    release(buffer, finished)
    assert 0 == buffer.buffer.held_bytes == buffer.limiter.used - buffer.limiter.shared_bytes()


def test_a_run_of_records_that_began_before_the_service_is_interrupted() -> None:
    buffer = under_test()
    buffer.buffer.note_ready()

    admit_run(buffer, run_record(1, at=START_UNIX_NANO - 1), run_record(2))
    admit_run(buffer, run_record(1, at=START_UNIX_NANO + 1), run=2)

    assert [True, False] == [run.interrupted for run in buffer.pass_time(25)]


def test_a_service_whose_records_come_after_its_spans_is_not_over_by_evidence() -> None:
    buffer = BufferUnderTest(GroupByTraceConfig(), settled_scopes=evidence_reader(()))

    def finishes_within_two_seconds(trace: int) -> bool:
        spans = [
            (key, payload.replace(TRACE_ID, trace_id(trace)), of)
            for key, payload, of in (AGENT_SPAN, REQUESTING, PAY, ANSWERING)
        ]
        buffer.admit(SpanBatch(trace_id(trace), spans))
        return bool(buffer.pass_time(2))

    assert finishes_within_two_seconds(1)
    late = b"", b"late", AGENT_SPAN[2]
    buffer.buffer.admit_records([late], [SpanBatch(trace_id(1), [late])])

    assert not finishes_within_two_seconds(2)
    assert 1 == buffer.metrics.late_log_records.value()


def test_late_records_are_gaps_that_waits_are_learned_from() -> None:
    learned = LearnedWaits()
    at_first = learned.wait("agent")
    config = GroupByTraceConfig.model_validate({"root_grace": "auto"})
    buffer = BufferUnderTest(config, learned=learned)
    for number in range(1, 2200):
        buffer.admit(batch(raw_span(1, trace=number), trace=number))
        buffer.pass_time(at_first + 0.5)
        admit(buffer, record(1), trace=number)

    buffer.pass_time(20)
    buffer.admit(batch(raw_span(1, trace=99_999), trace=99_999))
    buffer.pass_time(at_first + 4)

    assert learned.wait("agent") > at_first
