"""A run as the page shows it."""

from pathlib import Path

import pytest

from collector.criteria import load_criteria
from collector.otlp import join_spans, split_request
from collector.page.run_view import seconds_text, shown_run
from collector.recordings import RecordedStream
from processors.annotation import run_to_json
from processors.model import JsonObject
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

    assert "spans are missing, including its own" == dict(shown["facts"])["Incomplete"]
    assert [
        ("get_temperature", []),
        ("get_weather_condition", []),
        ("get_humidity", ["requested; its span is missing"]),
    ] == [(call["name"], call["notes"]) for call in shown["calls"]]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.0000474, "47.4 µs"), (0.0009996, "1 ms"), (0.109, "109 ms"), (1500, "1,500 s")],
)
def test_times_have_the_unit_that_fits(seconds: float | None, text: str) -> None:
    assert text == seconds_text(seconds)


def test_passes_and_what_lacks_the_same_are_folded_and_failures_never() -> None:
    def verdict(outcome: str, reason: str | None = None) -> JsonObject:
        return {"name": "check", "outcome": outcome, "reason": reason}

    unmade = [verdict("not_evaluated", "incomplete_trace") for _ in range(3)]
    others = [verdict("pass"), verdict("not_evaluated", "not_applicable"), *[verdict("fail")] * 4]
    shown = shown_run({"evaluations": [*others, *unmade]})

    assert [("", 4), ("3 not evaluated: incomplete trace", 3), ("", 1), ("1 passed", 1)] == [
        (heading, len(verdicts)) for heading, verdicts in shown["verdicts"]
    ]
