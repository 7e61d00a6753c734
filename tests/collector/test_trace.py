"""Traces on their way: what is left of one where nobody takes its runs."""

from dataclasses import fields

from collector.trace import GradedTrace
from tests.support.agent_spans import DEMO
from tests.support.graded_runs import weather_run


def test_without_runs_all_else_is_as_it_was() -> None:
    """Every field is given another value than its default, so that none can be forgotten."""
    run, record = weather_run(), (bytes(8), b"payload", DEMO)
    graded = GradedTrace(
        trace_id=bytes(16),
        spans=[record],
        runs=[run],
        hidden_runs=[run],
        log_records=[record],
        evaluation_spans=[record],
        backfill=True,
        quarantined=True,
        tenant="acme",
    )
    empty = GradedTrace(trace_id=b"", spans=())

    left = graded.without_runs()

    for field in fields(GradedTrace):
        given = getattr(graded, field.name)
        assert given != getattr(empty, field.name), field.name
        expected = () if field.name in ("runs", "hidden_runs") else given
        assert expected == getattr(left, field.name), field.name
