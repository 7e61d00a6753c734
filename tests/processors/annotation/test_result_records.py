"""Results as log records say what their events say, and belong to the span that they judge."""

from dataclasses import replace

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from processors.annotation import EVENT_NAME, append_results, result_records
from processors.model import AgentIdentity, EvaluationResult
from tests.support.agent_spans import TRACE_ID, span_id
from tests.support.graded_spans import (
    BROKEN,
    FAILED_CALL,
    NOT_EVALUATED,
    PASSED,
    RUN,
    SPANS,
    WITHOUT_CRITERIA,
    attributes_of,
)


def _records(*results: EvaluationResult) -> list[LogRecord]:
    made = result_records(SPANS, [(RUN, results)], time_unix_nano=7, instance="i-1")
    return [LogRecord.FromString(payload) for _, payload, _ in made]


def test_a_record_names_its_event_its_span_and_the_time_of_the_verdict() -> None:
    (record,) = _records(PASSED)

    assert EVENT_NAME == record.event_name
    assert (TRACE_ID, span_id(1)) == (record.trace_id, record.span_id)
    assert (7, 7) == (record.time_unix_nano, record.observed_time_unix_nano)
    assert not record.HasField("body")


def test_a_verdict_on_a_call_belongs_to_the_span_of_the_call() -> None:
    records = result_records(SPANS, [(RUN, [PASSED, FAILED_CALL])], time_unix_nano=7, instance="i-1")

    assert [span_id(2), span_id(1)] == [carrier for carrier, _, _ in records]
    assert [span_id(2), span_id(1)] == [LogRecord.FromString(record[1]).span_id for record in records]


@pytest.mark.parametrize("result", [PASSED, FAILED_CALL, BROKEN, NOT_EVALUATED], ids=lambda each: each.name)
def test_the_attributes_are_those_of_the_span_event_and_whose_run_it_is(result: EvaluationResult) -> None:
    annotated = append_results(SPANS, [(RUN, [result])], time_unix_nano=7, instance="i-1")
    (event,) = [event for span in annotated for event in Span.FromString(span[1]).events]

    (record,) = _records(result)

    whose = {"gen_ai.agent.name": "planner", "tracegrade.run.end_time": "1970-01-01T00:00:00.100000000Z"}
    assert whose | attributes_of(list(event.attributes)) == attributes_of(list(record.attributes))
    assert len(whose) + len(event.attributes) == len(record.attributes)


def test_whose_run_it_is_stands_in_the_record_as_far_as_it_is_known() -> None:
    whole = replace(RUN, agent=AgentIdentity(name="a", id="7", version="2.1"), session="s", tenant="blue")
    nobody = replace(RUN, agent=AgentIdentity(name=""))
    made = result_records(SPANS, [(whole, [PASSED]), (nobody, [PASSED])], time_unix_nano=7, instance="i-1")

    of_whole, of_nobody = (attributes_of(list(LogRecord.FromString(each[1]).attributes)) for each in made)
    assert {
        "gen_ai.agent.name": "a",
        "gen_ai.agent.id": "7",
        "gen_ai.agent.version": "2.1",
        "gen_ai.conversation.id": "s",
        "tracegrade.tenant": "blue",
    } == {key: value for key, value in of_whole.items() if key not in of_nobody}


def test_the_severity_tells_the_outcome() -> None:
    records = _records(PASSED, BROKEN, NOT_EVALUATED)

    assert [(9, "INFO"), (17, "ERROR"), (9, "INFO")] == [
        (record.severity_number, record.severity_text) for record in records
    ]
    assert [(13, "WARN")] == [(each.severity_number, each.severity_text) for each in _records(FAILED_CALL)]


def test_a_record_travels_under_the_resource_and_scope_of_its_span() -> None:
    (record,) = result_records(SPANS, [(RUN, [PASSED])], time_unix_nano=7, instance="i-1")

    assert SPANS[1][2] is record[2]


def test_what_makes_no_event_makes_no_record() -> None:
    assert [] == _records(WITHOUT_CRITERIA)
    assert [] == result_records((), [(RUN, [PASSED])], time_unix_nano=7, instance="i-1")
