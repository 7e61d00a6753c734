"""A run as the page shows it."""

from pathlib import Path

from collector.criteria import load_criteria
from collector.otlp import join_spans, split_request
from collector.page.run_view import shown_run
from collector.recordings import RecordedStream
from processors.annotation import run_to_json
from processors.spans import parse_span
from tests.support.corpus import recorded_requests


def test_what_an_sdk_gave_up_is_shown_as_missing_and_not_as_not_executed(tmp_path: Path) -> None:
    recorded = [
        span
        for body in recorded_requests("pydantic_ai", "s1")
        for spans in split_request(body).traces.values()
        for span in spans
    ]
    # The last batch was lost: the end of the run, and its own span.
    arrived = [span for span in recorded if parse_span(span[1]).name != "invoke_agent weather_agent"][:-4]
    (tmp_path / "fragment.binpb").write_bytes(join_spans(arrived))
    stream = RecordedStream()
    assert [] == stream.read([tmp_path / "fragment.binpb"])

    (graded,) = stream.grade(load_criteria(["builtin"], environment={}))
    shown = shown_run(run_to_json(graded))

    assert "spans of it did not arrive, its own among them" == dict(shown["facts"])["Not complete"]
    assert [
        ("get_temperature", []),
        ("get_weather_condition", []),
        ("get_humidity", ["requested; no span of it arrived"]),
    ] == [(call["name"], call["notes"]) for call in shown["calls"]]
