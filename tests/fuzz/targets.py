"""What is fuzzed: entry points for bytes that others write, and what must hold whatever the bytes are.

A target returns for every input or raises: `AssertionError` where a promise is broken, anything else where
the code let through what it should have answered with a message.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from benchmarks.readers import python_alone
from collector.errors import MalformedRequest, RequestTooLarge
from collector.otlp import (
    count_records,
    gzip_decompress,
    join_spans,
    json_to_request,
    logs_json_to_request,
    logs_request_to_json,
    request_to_json,
    split_records,
    split_request,
    zlib_decompress,
)
from docs.generate.evaluators import example_file, graded_example
from processors.annotation import append_results, format_run, run_from_json
from processors.criteria import CriteriaSet, Evaluation, criteria_warnings, evaluator_types, read_criteria
from processors.documents import InvalidInput
from processors.evaluate import evaluate_run
from processors.model import (
    AgentRun,
    EvaluationResult,
    FinishReason,
    GradedRun,
    decode_arguments,
    decode_json,
    decode_result,
    encode_json,
)
from processors.reconstruction import explain_trace, reconstruct, span_reader
from tests.fuzz.damaged_journals import recover_damaged
from tests.fuzz.mutations import Mutate, mutated_bytes, mutated_spans, mutated_text, mutated_wire

MAX_INFLATED = 1 << 20


@dataclass(frozen=True)
class FuzzTarget:
    """A name, which is also that of the folder with its corpus; the check; how inputs are varied."""

    name: str
    check: Callable[[bytes], None]
    mutate: Mutate
    max_bytes: int = 4096


def check_codec(data: bytes) -> None:
    """The walk over the bytes finds the spans that the protobuf runtime finds, or refuses."""
    for inflate in (gzip_decompress, zlib_decompress):
        with suppress(MalformedRequest, RequestTooLarge):
            assert len(inflate(data, MAX_INFLATED)) <= MAX_INFLATED
    try:
        split = split_request(data)
    except MalformedRequest:
        return
    request = ExportTraceServiceRequest.FromString(data)
    count = sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
    assert count == split.accepted + split.rejected
    taken = [span for found in split.traces.values() for span in found]
    assert len(taken) == split.accepted
    for trace_id, found in split.traces.items():
        for span_id, payload, _ in found:
            message = Span.FromString(payload)
            # Of an id that stands there twice, which no sender writes, the first counts here.
            if message.ByteSize() == len(payload):
                assert (trace_id, span_id) == (message.trace_id, message.span_id)
    again = split_request(join_spans(taken))
    assert again.rejected == 0
    assert again.traces.keys() == split.traces.keys()
    for trace_id, before in split.traces.items():
        assert Counter(span[:2] for span in before) == Counter(span[:2] for span in again.traces[trace_id])
    with suppress(MalformedRequest):
        request_to_json(data)
    with suppress(MalformedRequest):
        logs_request_to_json(data)


def check_native(data: bytes) -> None:
    """Both readers split, read and join the same, or refuse with the same message."""
    native = [read(data) for read in _NATIVE_READS]
    with python_alone():
        for read, result in zip(_NATIVE_READS, native, strict=True):
            python = read(data)
            assert result == python, f"{read.__name__}: {result!r}, by Python {python!r}"


def _split_spans(data: bytes) -> object:
    try:
        split = split_request(data)
    except MalformedRequest as error:
        return str(error)
    joined = join_spans(span for found in split.traces.values() for span in found)
    return list(split.traces.items()), split.rejected, joined


def _read_runs(data: bytes) -> object:
    with suppress(MalformedRequest):
        return [
            format_run(GradedRun(run=run, results=[]))
            for trace_id, spans in split_request(data).traces.items()
            for run in reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)
        ]
    return None


def _split_records(data: bytes) -> object:
    try:
        split = split_records(data)
    except MalformedRequest as error:
        return str(error)
    return list(split.records), split.rejected, join_spans(split.records)


def _count_records(data: bytes) -> object:
    try:
        return len(count_records(data).records)
    except MalformedRequest as error:
        return str(error)


_NATIVE_READS = (_split_spans, _read_runs, _split_records, _count_records)


def check_otlp_json(data: bytes) -> None:
    """What is taken as OTLP/JSON is a request, and stays the same request from then on."""
    with suppress(MalformedRequest):
        logs_request_to_json(logs_json_to_request(data))
    try:
        body = json_to_request(data)
    except MalformedRequest:
        return
    ExportTraceServiceRequest.FromString(body)
    printed = request_to_json(body)
    assert printed == request_to_json(json_to_request(printed))


def check_spans(data: bytes) -> None:
    """Arbitrary spans are read, graded by every evaluator, and leave with their verdicts; twice the same."""
    try:
        split = split_request(data)
    except MalformedRequest:
        return
    for trace_id, spans in split.traces.items():
        explain_trace(spans, span_reader())
        runs = reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)
        lines = _graded_lines(runs)
        assert lines == _graded_lines(reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT))
        graded = [(run, _graded(run)) for run in runs]
        out = append_results(spans, graded, time_unix_nano=1, instance="fuzz", openinference=True)
        assert len(out) == len(spans)
        sent = split_request(join_spans(out))
        assert (len(spans), 0) == (sent.accepted, sent.rejected)


def check_values(data: bytes) -> None:
    """Any attribute value and any text decodes to JSON."""
    text = data.decode(errors="surrogateescape" if data[:1] == b"\x00" else "replace")
    for decode in (decode_arguments, decode_result):
        decoded = decode(text)
        decode_json(encode_json(decoded.value))
        decoded = decode(data)
        decode_json(encode_json(decoded.value))
    with suppress(ValueError):
        value = decode_json(data)
        decode_arguments(value)
        assert decode_json(encode_json(value)) == value


def check_criteria(data: bytes) -> None:
    """A criteria file is taken as a whole or told what is wrong with it, place by place."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    with suppress(InvalidInput):
        document = read_criteria(text, "criteria.yaml", {"HOME": "/"}, strict=False)
        for problem in (*document.problems, *document.warnings):
            str(problem).encode()
        if not document.problems:
            criteria = CriteriaSet(document.agents)
            for problem in criteria_warnings(document.agents):
                str(problem).encode()
            run = _example_run()
            _checked(evaluate_run(run, criteria.evaluations_for(run.agent.name)))


def check_runs(data: bytes) -> None:
    """A line of a runs file is a run or told what is wrong with it; printed and read it is the same run."""
    try:
        run = run_from_json(decode_json(data), "file:1")
    except ValueError as error:
        str(error).encode()
        return
    results = _graded(run)
    line = format_run(GradedRun(run=run, results=results))
    read = run_from_json(decode_json(line), "file:2")
    assert line == format_run(GradedRun(run=read, results=_graded(read)))


def _graded_lines(runs: Sequence[AgentRun]) -> list[bytes]:
    return [format_run(GradedRun(run=run, results=_graded(run))) for run in runs]


def _graded(run: AgentRun) -> list[EvaluationResult]:
    return _checked(evaluate_run(run, _all_evaluations()))


def _checked(results: list[EvaluationResult]) -> list[EvaluationResult]:
    """`results`, none of which may come from an evaluator that broke."""
    for result in results:
        assert result.explanation != f"evaluator {result.evaluator} raised {result.error_type}", result
    return results


@cache
def _all_evaluations() -> Sequence[Evaluation]:
    """Every evaluator with the criteria of its own example."""
    return [
        evaluation
        for kind in evaluator_types().values()
        for agent in read_criteria(example_file(kind), "example.yaml", {}, strict=False).agents
        for evaluation in agent.evaluations
    ]


@cache
def _example_run() -> AgentRun:
    return graded_example(evaluator_types()["tool-call-order"]).run


TARGETS = {
    target.name: target
    for target in (
        FuzzTarget("codec", check_codec, mutated_bytes),
        FuzzTarget("native", check_native, mutated_wire, max_bytes=65_536),
        FuzzTarget("otlp_json", check_otlp_json, mutated_text),
        FuzzTarget("values", check_values, mutated_text),
        FuzzTarget("spans", check_spans, mutated_spans, max_bytes=65_536),
        FuzzTarget("criteria", check_criteria, mutated_text),
        FuzzTarget("runs", check_runs, mutated_text),
        FuzzTarget("journal", recover_damaged, mutated_bytes, max_bytes=512),
    )
}
