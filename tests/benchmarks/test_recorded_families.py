from benchmarks.recorded_families import RecordedTrace, recorded_families
from processors.model import AgentRun, FinishReason
from processors.reconstruction import reconstruct
from processors.spans import Span

LATER = 1_900_000_000_000_000_000


def _facts(runs: list[AgentRun]) -> list[object]:
    return [
        (run.agent.name, [(call.name, call.arguments, call.result) for call in run.calls]) for run in runs
    ]


def test_the_families_of_the_recordings_that_users_send_most_are_measured() -> None:
    families = recorded_families()

    assert families.keys() >= {"openinference", "otel_genai", "pydantic_ai", "strands", "traceloop"}
    assert all(trace.spans for traces in families.values() for trace in traces)


def test_a_recorded_trace_is_measured_as_a_new_one_that_ends_now_with_the_same_runs() -> None:
    trace: RecordedTrace = recorded_families()["pydantic_ai"][0]

    again = trace.again(bytes(15) + b"\1", LATER)

    spans = [Span(raw, envelope) for _, raw, envelope in again.spans]
    assert {span.trace_id for span in spans} == {again.trace_id}
    assert max(span.end_unix_nano for span in spans) == LATER
    recorded = [Span(raw, envelope) for _, raw, envelope in trace.spans]
    assert [span.end_unix_nano - span.start_unix_nano for span in spans] == [
        span.end_unix_nano - span.start_unix_nano for span in recorded
    ]
    runs = reconstruct(again.spans, trace_id=again.trace_id, reason=FinishReason.ROOT)
    before = reconstruct(trace.spans, trace_id=recorded[0].trace_id, reason=FinishReason.ROOT)
    assert _facts(runs) == _facts(before)
    assert any(run.calls for run in runs)
