"""The evaluation stage on what instrumentations really send: the recordings of the tests, family by family.

A family is the dialect whose readings go first in a trace. Before every pass its traces become new ones: with
trace ids of their own, and times that end now, so that series are counted as they are for live traffic.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time, time_ns

from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from benchmarks.agent_criteria import EVALUATIONS_PER_TRACE, criteria_text
from benchmarks.child_process import REPOSITORY
from benchmarks.page import with_range
from benchmarks.workload import Shape, process_requests
from collector.clock import ManualClock
from collector.criteria import load_criteria
from collector.grading import Grader, GradingStage
from collector.otlp import SplitRequest, split_request
from collector.recordings.recorded_traffic import RecordedTraffic
from collector.telemetry import Metrics
from collector.trace import FinishedTrace
from processors.criteria import CriteriaSet, read_criteria
from processors.model import FinishReason
from processors.reconstruction import span_reader
from processors.spans import RawSpan, Span

RECORDINGS = REPOSITORY / "tests" / "data"
_FOLDERS = ("corpus", "recordings", "both_signals")
_LEAST_SPANS = 24
"""Of a smaller family hardly more than the clock is measured."""
_PASSES = 15
_WORKLOAD = Shape("families", 512, 512, 30)
_TRACE_ID_BYTES = 16
_TRACE_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """The spans of a recorded trace, without log records that belong to it."""

    messages: Sequence[SpanMessage]
    spans: Sequence[RawSpan]

    def again(self, trace_id: bytes, end_unix_nano: int) -> FinishedTrace:
        """The same trace under another id, as if its last span had ended at `end_unix_nano`."""
        later = end_unix_nano - max(message.end_time_unix_nano for message in self.messages)
        spans = []
        for message, (span_id, _, envelope) in zip(self.messages, self.spans, strict=True):
            moved = SpanMessage.FromString(message.SerializeToString())
            moved.trace_id = trace_id
            moved.start_time_unix_nano += later
            moved.end_time_unix_nano += later
            for event in moved.events:
                event.time_unix_nano = max(event.time_unix_nano + later, 0)
            spans.append((span_id, moved.SerializeToString(), envelope))
        return FinishedTrace(trace_id=trace_id, spans=spans, reason=FinishReason.ROOT)


def recorded_families(root: Path = RECORDINGS) -> dict[str, list[RecordedTrace]]:
    """The recorded traces below `root` by family, those of no dialect left out."""
    traffic = RecordedTraffic()
    families: dict[str, list[RecordedTrace]] = {}
    for folder in sorted(path for name in _FOLDERS for path in (root / name).iterdir() if path.is_dir()):
        read = (item for file in traffic.find([folder]) for item in traffic.read(file))
        for trace in _traces(item for item in read if isinstance(item, SplitRequest)):
            if family := _family(trace.spans):
                families.setdefault(family, []).append(trace)
    return dict(sorted(families.items()))


def _traces(requests: Iterable[SplitRequest]) -> list[RecordedTrace]:
    traces: dict[bytes, list[RawSpan]] = {}
    for request in requests:
        for trace_id, spans in request.traces.items():
            traces.setdefault(trace_id, []).extend(spans)
    return [
        RecordedTrace([SpanMessage.FromString(raw) for _, raw, _ in spans], spans)
        for spans in traces.values()
    ]


def family_lines() -> Iterator[str]:
    """Measure the stage for every family, one row of a Markdown table each; passes take turns."""
    synthetic = (split_request(request.body) for request in process_requests(0, _WORKLOAD, time_ns()))
    families = {"(the workload of the other figures)": _traces(synthetic)} | {
        name: traces
        for name, traces in recorded_families().items()
        if sum(len(trace.spans) for trace in traces) >= _LEAST_SPANS
    }
    yield (
        f"| recorded | traces | spans | bytes a span | CPU µs a span, {EVALUATIONS_PER_TRACE} evaluations "
        "| CPU µs a span, built-in criteria |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    six = CriteriaSet(read_criteria(criteria_text(agents=["*"]), "criteria.yaml", {}).agents)
    both = six, load_criteria(None, environment={})
    micros: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in families}
    for number in range(-1, _PASSES):  # the first learns the shapes
        for name, traces in families.items():
            for criteria, measured in zip(both, micros[name], strict=True):
                cost = _micros_a_span(traces, criteria)
                if number >= 0:
                    measured.append(cost)
    for name, traces in families.items():
        raw = [payload for trace in traces for _, payload, _ in trace.spans]
        costs = " | ".join(with_range(measured, ".1f") for measured in micros[name])
        yield f"| {name} | {len(traces)} | {len(raw)} | {sum(map(len, raw)) // len(raw):,} | {costs} |"


def _family(spans: Sequence[RawSpan]) -> str:
    readings = span_reader().read_all([Span(raw, envelope) for _, raw, envelope in spans])
    dialects = (dialect for reading in readings if reading for dialect in reading.shape.dialects)
    first = min(dialects, key=lambda dialect: (dialect.rank, dialect.name), default=None)
    return "" if first is None else first.name


def _micros_a_span(traces: Sequence[RecordedTrace], criteria: CriteriaSet) -> float:
    clock = ManualClock(unix_nano=time_ns())
    grader = Grader(criteria=lambda: criteria, clock=clock, instance="families")
    stage = GradingStage(grader=grader, metrics=Metrics(), clock=clock)
    again = [
        trace.again(next(_TRACE_NUMBERS).to_bytes(_TRACE_ID_BYTES), clock.unix_nano()) for trace in traces
    ]
    started = process_time()
    for finished in again:
        stage.grade_now(finished)
    return (process_time() - started) * 1e6 / sum(len(trace.spans) for trace in again)
