"""Traces that a process before had admitted: they go on where they were."""

from collections.abc import Sequence

import pytest

from collector.buffer import GroupByTraceConfig, settled_spans
from collector.grading import reports_end
from collector.trace import SpanBatch
from processors.records import run_of_records
from processors.spans import LogRecord, RawRecord
from tests.support.both_signals import traces_in
from tests.support.held_spans import (
    SECOND,
    START_UNIX_NANO,
    BufferUnderTest,
    batch,
    raw_span,
    span_id,
    trace_id,
)

SENDERS_COME_BACK = 10.0
"""For so long the finish clock stands still after a restart."""


def test_quiet_time_stands_still_while_the_process_is_down() -> None:
    under_test = BufferUnderTest(GroupByTraceConfig.model_validate({"root_grace": "4s"}))
    came, stopped = START_UNIX_NANO - 7 * SECOND, START_UNIX_NANO - 4 * SECOND
    under_test.buffer.restore(batch(raw_span(1, start=came, end=came)), came, stopped)
    under_test.buffer.note_ready(stopped)

    assert not under_test.pass_time(SENDERS_COME_BACK + 0.5)  # three of the four seconds had passed before
    (trace,) = under_test.pass_time(1.0)
    assert not trace.interrupted
    assert 0 == under_test.limiter.used - sum(len(span[1]) + 256 for span in trace.spans)


@pytest.mark.parametrize(
    ("down_seconds", "is_whole", "interrupted"),
    [(4.0, False, False), (6.0, True, False), (6.0, False, True)],
)
def test_what_was_not_whole_when_the_process_was_down_for_long_is_interrupted(
    down_seconds: float, is_whole: bool, interrupted: bool
) -> None:
    under_test = BufferUnderTest()
    stopped = START_UNIX_NANO - int(down_seconds * SECOND)
    root = raw_span(1, start=stopped - SECOND, end=stopped)
    child = raw_span(2, 1, start=stopped - SECOND, end=stopped)
    before, after = ([root, child], []) if is_whole else ([child], [root])
    under_test.buffer.restore(batch(*before), stopped, stopped)
    under_test.buffer.note_ready(stopped)
    if after:
        under_test.admit(batch(*after))

    (trace,) = under_test.pass_time(SENDERS_COME_BACK + 5)
    assert interrupted == trace.interrupted


@pytest.mark.parametrize(
    ("arrived_seconds_ago", "is_whole", "interrupted"),
    [
        (60.0, False, True),
        (60.0, True, False),  # nothing of it can have been missed
        (1.0, False, False),  # it began after the outage
    ],
)
@pytest.mark.parametrize("is_refusal", [False, True])
def test_an_outage_still_counts_after_another_restart(
    arrived_seconds_ago: float, is_whole: bool, interrupted: bool, is_refusal: bool
) -> None:
    before = BufferUnderTest().buffer
    if is_refusal:  # what comes back after the restart is no longer known
        before.note_refused([batch(raw_span(9), trace=9)])
    else:
        before.restore_outages([(START_UNIX_NANO - 10 * SECOND, START_UNIX_NANO)])

    under_test = BufferUnderTest()
    under_test.pass_time(30.0)
    now = under_test.clock.unix_nano()
    arrived, stopped = now - int(arrived_seconds_ago * SECOND), now - SECOND
    root = raw_span(1, start=arrived - SECOND, end=arrived)
    child = raw_span(2, 1, start=arrived - SECOND, end=arrived)
    under_test.buffer.restore_outages(before.outages())
    under_test.buffer.restore(batch(*([root, child] if is_whole else [child])), arrived, stopped)
    under_test.buffer.note_ready(stopped)
    if not is_whole:
        under_test.admit(batch(root))

    (trace,) = under_test.pass_time(SENDERS_COME_BACK + 5)
    assert interrupted == trace.interrupted


@pytest.mark.parametrize("name", ["claude_code_logs_alone", "gemini_cli", "qwen_code_logs_alone"])
@pytest.mark.parametrize("down_seconds", [4.0, 6.0])
@pytest.mark.parametrize("missing", [0, 1])
@pytest.mark.parametrize("goes_on", [False, True])
def test_a_run_of_log_records_is_interrupted_unless_they_show_that_it_was_over(
    name: str, down_seconds: float, missing: int, goes_on: bool
) -> None:
    under_test = BufferUnderTest(
        GroupByTraceConfig.model_validate({"idle_timeout": "20s", "max_lateness": "100000h"}),
        reports_end=reports_end,
    )
    stopped = START_UNIX_NANO - int(down_seconds * SECOND)
    run_id, records = run_records(name)
    restored = records[: len(records) - missing]
    under_test.buffer.restore_records(SpanBatch(run_id, restored, is_run=True), stopped, stopped)
    under_test.buffer.note_ready(stopped)
    if goes_on:
        under_test.buffer.admit_records([], [SpanBatch(run_id, records[-1:], is_run=True)])

    (run,) = under_test.pass_time(SENDERS_COME_BACK + 25)
    # Qwen Code does not report whether a reply with a text requests calls as well.
    is_known_to_be_over = not missing and name != "qwen_code_logs_alone"
    assert run.interrupted == (down_seconds > 5 and not is_known_to_be_over)


def run_records(name: str) -> tuple[bytes, Sequence[RawRecord]]:
    """The records of the one run that a recording has without spans, in order of time, and its id."""
    (of_run,) = (
        (key, trace.records) for key, trace in traces_in(name).items() if run_of_records(trace.records, key)
    )
    return of_run[0], sorted(of_run[1], key=lambda record: LogRecord(record[1], record[2]).unix_nano)


def test_spans_of_traces_that_a_process_before_finished_are_late_or_repeats() -> None:
    under_test = BufferUnderTest()
    under_test.buffer.remember_finished(trace_id(1), [span_id(1), span_id(2)])
    under_test.buffer.remember_finished(trace_id(1), [span_id(3)])

    (late,) = under_test.admit(batch(*(raw_span(number) for number in (1, 2, 3, 4))))

    assert [span_id(4)] == [span[0] for span in late.spans]
    assert 3 == under_test.metrics.spans_dropped.value("duplicate", "")


def test_of_repeats_the_span_is_settled_on_that_a_buffer_would_keep() -> None:
    short, long = raw_span(1, end=START_UNIX_NANO), raw_span(1, end=START_UNIX_NANO + SECOND)

    assert [long] == settled_spans([batch(short), batch(long)]) == settled_spans([batch(long), batch(short)])
