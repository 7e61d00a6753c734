"""Runs and all that was read for them are freed when they are released, without the garbage collector."""

import gc

import pytest

from collector.otlp import split_request
from processors.annotation import run_to_json
from processors.model import FinishReason, GradedRun
from processors.reconstruction import reconstruct
from processors.shapes import SpanReading
from processors.spans import RawSpan
from tests.support.corpus import CORPUS, recorded_requests

FRAMEWORKS = sorted(folder.name for folder in CORPUS.iterdir() if folder.is_dir())


def _traces(framework: str) -> dict[bytes, list[RawSpan]]:
    traces: dict[bytes, list[RawSpan]] = {}
    for request in recorded_requests(framework):
        for trace_id, spans in split_request(request).traces.items():
            traces.setdefault(trace_id, []).extend(spans)
    return traces


def _readings() -> list[SpanReading]:
    return [item for item in gc.get_objects() if isinstance(item, SpanReading)]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_released_run_leaves_no_reading_of_its_spans(framework: str) -> None:
    traces = _traces(framework)
    gc.collect()
    held_elsewhere = {id(reading) for reading in _readings()}
    gc.disable()
    try:
        for trace_id, spans in traces.items():
            for run in reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT):
                run_to_json(GradedRun(run=run, results=()))  # reads all that is read late
        del run
        left = [reading for reading in _readings() if id(reading) not in held_elsewhere]
    finally:
        gc.enable()

    assert left == []
