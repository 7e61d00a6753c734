"""The steps of the data path one by one, in this process, without any network; then recorded traffic."""

from collections.abc import Callable, Iterator, Sequence
from time import process_time, time_ns

from benchmarks.agent_criteria import CRITERIA_TEXT
from benchmarks.agent_trace import SPANS_PER_TRACE
from benchmarks.page import with_range
from benchmarks.readers import python_alone
from benchmarks.recorded_families import family_lines
from benchmarks.workload import SHAPES, Shape, process_requests
from collector.buffer import GroupByTraceConfig, TraceBuffer
from collector.clock import ManualClock
from collector.grading import Grader, GradingStage
from collector.memory_limiter import MemoryLimiter
from collector.otlp import join_spans, split_request
from collector.store import RunDatabase
from collector.store.run_rows import rows_of
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, SpanBatch
from processors.annotation import append_results
from processors.criteria import CriteriaSet, read_criteria
from processors.evaluate import evaluate_run
from processors.model import FinishReason, GradedRun
from processors.reconstruction import reconstruct
from processors.spans import NATIVE, RawSpan, Span

_REPEATS = 7
_SECONDS_PER_REPEAT = 0.15
_HELD_BYTES = 1 << 40
_STORE_BYTES = 1 << 26
_RUNS_PER_WRITE = 100


def micro_lines() -> Iterator[str]:
    """Measure step after step, one row of a Markdown table each, then every family of recordings.

    Both readers take turns at each step; the recordings are read by the one in Rust where it is in use.
    """
    yield "| step | CPU µs | with the native reader | for a |"
    yield "| --- | --- | --- | --- |"
    for shape in SHAPES:
        yield from _per_span_lines(shape)
    traces = _traces(SHAPES[0])
    yield _line("Span view", "span", _spans(traces), lambda: [Span(raw, of) for _, raw, of in _flat(traces)])
    yield from _per_trace_lines(traces)
    yield ""
    yield from family_lines()


def _per_span_lines(shape: Shape) -> Iterator[str]:
    bodies = bodies_of(shape)
    # Each request is split once in each timing, as the service does; trace ids do not matter here.
    yield _line(
        f"split_request, {shape.name}", "span", shape.spans, lambda: [split_request(body) for body in bodies]
    )
    split = [split_request(body) for body in bodies]
    requests = [[span for spans in request.traces.values() for span in spans] for request in split]
    yield _line(
        f"join_spans, {shape.name}", "span", shape.spans, lambda: [join_spans(spans) for spans in requests]
    )
    batches = [batches_of(body) for body in bodies]
    yield _line(f"buffer in and out, {shape.name}", "span", shape.spans, lambda: _through_buffer(batches))


def _per_trace_lines(traces: dict[bytes, list[RawSpan]]) -> Iterator[str]:
    count = len(traces)
    criteria = CriteriaSet(read_criteria(CRITERIA_TEXT, "criteria.yaml", {}).agents)
    finished = [
        FinishedTrace(trace_id=trace_id, spans=spans, reason=FinishReason.ROOT)
        for trace_id, spans in traces.items()
    ]
    runs = [
        run
        for trace in finished
        for run in reconstruct(trace.spans, trace_id=trace.trace_id, reason=trace.reason)
    ]
    if len(runs) != count:
        raise ValueError(f"{count} traces gave {len(runs)} agent runs")
    yield _line(
        "reconstruct",
        "trace",
        count,
        lambda: [
            reconstruct(trace.spans, trace_id=trace.trace_id, reason=trace.reason) for trace in finished
        ],
    )
    evaluations = criteria.evaluations_for(runs[0].agent.name)
    yield _line(
        f"evaluate_run, {len(evaluations)} evaluations",
        "trace",
        count,
        lambda: [evaluate_run(run, evaluations) for run in runs],
    )
    results = [evaluate_run(run, evaluations) for run in runs]
    yield _line(
        "append_results",
        "trace",
        count,
        lambda: [
            append_results(trace.spans, [(run, graded)], time_unix_nano=1, instance="micro")
            for trace, run, graded in zip(finished, runs, results, strict=True)
        ],
    )
    clock = ManualClock()
    grader = Grader(criteria=lambda: criteria, clock=clock, instance="micro")
    stage = GradingStage(grader=grader, metrics=Metrics(), clock=clock)
    yield _line(
        "evaluation stage, whole", "trace", count, lambda: [stage.grade_now(trace) for trace in finished]
    )
    graded = [run for trace in finished for run in stage.grade_now(trace).runs]
    yield _line("store of runs, in its own thread", "trace", count, lambda: _stored(graded))


def _stored(runs: Sequence[GradedRun]) -> None:
    database = RunDatabase(None, _STORE_BYTES)
    database.open()
    for start in range(0, len(runs), _RUNS_PER_WRITE):
        database.write([rows_of(run, 1).packed() for run in runs[start : start + _RUNS_PER_WRITE]], 0)
    database.close()


def new_buffer(clock: ManualClock) -> TraceBuffer:
    """A buffer as the service has it, without a limit."""
    return TraceBuffer(
        config=GroupByTraceConfig(), limiter=MemoryLimiter(_HELD_BYTES), metrics=Metrics(), clock=clock
    )


def batches_of(body: bytes) -> list[SpanBatch]:
    """The spans of a request as the buffer takes them."""
    return [SpanBatch(trace_id, spans) for trace_id, spans in split_request(body).traces.items()]


def _through_buffer(requests: Sequence[Sequence[SpanBatch]]) -> None:
    clock = ManualClock(unix_nano=time_ns())
    buffer = new_buffer(clock)
    for batches in requests:
        buffer.admit(batches)
    clock.advance(0.5)
    while buffer.spans_held:
        buffer.poll()
        clock.advance(0.5)


def bodies_of(shape: Shape) -> list[bytes]:
    return [request.for_pass(1) for request in process_requests(0, shape, time_ns())]


def _traces(shape: Shape) -> dict[bytes, list[RawSpan]]:
    traces: dict[bytes, list[RawSpan]] = {}
    for body in bodies_of(shape):
        for trace_id, spans in split_request(body).traces.items():
            traces.setdefault(trace_id, []).extend(spans)
    return traces


def _flat(traces: dict[bytes, list[RawSpan]]) -> Iterator[RawSpan]:
    for spans in traces.values():
        yield from spans


def _spans(traces: dict[bytes, list[RawSpan]]) -> int:
    return len(traces) * SPANS_PER_TRACE


def _line(name: str, unit: str, units: int, step: Callable[[], object]) -> str:
    python: list[float] = []
    native: list[float] = []
    for _ in range(_REPEATS):
        with python_alone():
            python.append(cpu_seconds_each(step, _SECONDS_PER_REPEAT) * 1e6 / units)
        if NATIVE is not None:
            native.append(cpu_seconds_each(step, _SECONDS_PER_REPEAT) * 1e6 / units)
    cells = [with_range(micros, ".2f") if micros else "–" for micros in (python, native)]
    return f"| {name} | {cells[0]} | {cells[1]} | {unit} |"


def cpu_seconds_each(step: Callable[[], object], seconds: float) -> float:
    """CPU seconds of one step, over as many as fill `seconds`."""
    loops = 0
    started = process_time()
    while True:
        step()
        loops += 1
        used = process_time() - started
        if used >= seconds:
            return used / loops
