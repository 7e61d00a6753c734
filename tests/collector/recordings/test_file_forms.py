"""Traces in the forms of files that people have: who wrote them, and what is read of each."""

import gzip
import json
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import zstandard
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.otlp import request_to_json
from collector.recordings import RecordedStream
from processors.criteria import CriteriaSet
from processors.model import AgentRun
from tests.support.backend_server import free_port
from tests.support.corpus import recorded_requests
from tests.support.otel_collector import OtelCollector
from tests.support.otlp_senders import GrpcSender

Document: TypeAlias = dict[str, Any]

REQUESTS = recorded_requests("pydantic_ai", "s1")


def read(path: Path) -> tuple[RecordedStream, list[str]]:
    stream = RecordedStream()
    return stream, [str(problem) for problem in stream.read([path])]


def runs_of(stream: RecordedStream) -> list[AgentRun]:
    return [graded.run for graded in stream.grade(CriteriaSet([]))]


def documents() -> list[Document]:
    """The recorded requests as OTLP/JSON."""
    return [json.loads(request_to_json(request)) for request in REQUESTS]


def resource_spans() -> list[Document]:
    return [entry for document in documents() for entry in document["resourceSpans"]]


def in_proto3_json() -> list[Document]:
    """The ResourceSpans as the protobuf library prints them: base64 for ids, names for enum values."""
    return [
        entry
        for request in REQUESTS
        for entry in MessageToDict(ExportTraceServiceRequest.FromString(request))["resourceSpans"]
    ]


def before_otlp_0_19() -> bytes:
    text = json.dumps({"batches": resource_spans()})
    return (
        text.replace('"scopeSpans"', '"instrumentationLibrarySpans"')
        .replace('"scope":', '"instrumentationLibrary":')
        .encode()
    )


def lines(entries: list[Document]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def messages(bodies: list[bytes]) -> bytes:
    return b"".join(struct.pack(">I", len(body)) + body for body in bodies)


def in_zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def jaeger_tag(attribute: Document) -> Document:
    ((member, value),) = attribute["value"].items()
    names = {"stringValue": "string", "boolValue": "bool", "intValue": "int64", "doubleValue": "float64"}
    if member not in names:
        return {"key": attribute["key"], "type": "string", "value": json.dumps(value)}
    return {
        "key": attribute["key"],
        "type": names[member],
        "value": int(value) if member == "intValue" else value,
    }


def in_jaeger() -> Document:
    """The spans as Jaeger's API gives them out (times in microseconds, no leading zeros in ids)."""
    spans: list[Document] = []
    processes: dict[str, Document] = {}
    for number, entry in enumerate(resource_spans()):
        attributes = entry["resource"]["attributes"]
        service = next(one["value"]["stringValue"] for one in attributes if one["key"] == "service.name")
        tags = [jaeger_tag(one) for one in attributes if one["key"] != "service.name"]
        processes[f"p{number}"] = {"serviceName": service, "tags": tags}
        for scope_spans in entry["scopeSpans"]:
            for span in scope_spans["spans"]:
                start, end = int(span["startTimeUnixNano"]) // 1000, int(span["endTimeUnixNano"]) // 1000
                parent = span.get("parentSpanId")
                trace_id = span["traceId"]
                spans.append(
                    {
                        "traceID": trace_id,
                        "spanID": span["spanId"].lstrip("0"),
                        "operationName": span["name"],
                        "references": [{"refType": "CHILD_OF", "traceID": trace_id, "spanID": parent}]
                        if parent
                        else None,
                        "startTime": start,
                        "duration": end - start,
                        "tags": [
                            *map(jaeger_tag, span.get("attributes", ())),
                            {
                                "key": "otel.scope.name",
                                "type": "string",
                                "value": scope_spans["scope"]["name"],
                            },
                        ],
                        "logs": None,
                        "processID": f"p{number}",
                        "warnings": None,
                    }
                )
    return {"data": [{"traceID": "", "spans": spans, "processes": processes}], "total": 0, "errors": None}


FORMS: dict[str, Callable[[], bytes]] = {
    "array of requests": lambda: json.dumps(documents()).encode(),
    "array of requests, over several lines": lambda: json.dumps(documents(), indent=1).encode(),
    "a ResourceSpans a line": lambda: lines(resource_spans()),
    "Tempo, /api/traces": lambda: json.dumps({"batches": in_proto3_json()}).encode(),
    "Tempo, /api/v2/traces": lambda: json.dumps(
        {"trace": {"resourceSpans": in_proto3_json()}}, indent=2
    ).encode(),
    "Tempo through Grafana": lambda: json.dumps({"batches": resource_spans()}).encode(),
    "Tempo, OTLP before 0.19": before_otlp_0_19,
    "protobuf's own JSON": lambda: json.dumps({"resourceSpans": in_proto3_json()}).encode(),
    "Jaeger, /api/traces": lambda: json.dumps(in_jaeger()).encode(),
    "Jaeger, one trace": lambda: json.dumps(in_jaeger()["data"][0]).encode(),
    "Jaeger, /api/v3/traces": lambda: json.dumps({"result": {"resourceSpans": resource_spans()}}).encode(),
    "file exporter, proto": lambda: messages(list(REQUESTS)),
    "file exporter, proto in zstd": lambda: messages([in_zstd(body) for body in REQUESTS]),
    "file exporter, JSON in zstd": lambda: messages(
        [in_zstd(json.dumps(one).encode()) for one in documents()]
    ),
}


@pytest.mark.parametrize("compress", [bytes, gzip.compress, in_zstd], ids=["plain", "gzip", "zstd"])
@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_runs_of_the_requests_in_it(
    tmp_path: Path, form: str, compress: Callable[[bytes], bytes]
) -> None:
    for number, request in enumerate(REQUESTS):
        (tmp_path / f"{number:04}.binpb").write_bytes(request)
    requests, _ = read(tmp_path)
    (tmp_path / "trace").write_bytes(compress(FORMS[form]()))

    stream, problems = read(tmp_path / "trace")

    assert [] == [*problems, *stream.warnings]
    assert requests.spans == stream.spans > 0
    for right, run in zip(runs_of(requests), runs_of(stream), strict=True):
        assert (right.agent, right.session, right.input, right.output) == (
            run.agent, run.session, run.input, run.output,
        )  # fmt: skip
        assert right.usage == run.usage
        assert [
            (call.name, call.arguments, call.result, call.error, call.span_id) for call in right.calls
        ] == [(call.name, call.arguments, call.result, call.error, call.span_id) for call in run.calls]


@pytest.mark.parametrize("ending", [".jsonl.gz", ".jsonl.zst", ".otlp.json.gz", ".binpb.zst"])
def test_compressed_files_in_a_folder_are_read_by_their_ending(tmp_path: Path, ending: str) -> None:
    content = REQUESTS[0] if "binpb" in ending else json.dumps(documents()[0]).encode()
    (tmp_path / f"a{ending}").write_bytes((gzip.compress if ending.endswith("gz") else in_zstd)(content))
    (tmp_path / "notes.json.gz").write_bytes(b"")

    stream, problems = read(tmp_path)

    assert [] == problems
    assert stream.spans > 0


@pytest.mark.parametrize("form", ["a ResourceSpans a line", "file exporter, proto"])
def test_a_last_message_that_is_cut_off_is_reported_and_the_rest_is_graded(tmp_path: Path, form: str) -> None:
    whole = FORMS[form]()
    (tmp_path / "traces").write_bytes(whole + whole[: len(whole) // 3])

    stream, problems = read(tmp_path / "traces")

    assert [] == problems
    (warning,) = stream.warnings
    assert "the file ends within its last message" in str(warning)
    assert 1 == len(runs_of(stream))


def test_the_lines_of_a_file_take_no_memory_besides_it(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes((b" " * 1000 + b"\n") * 4000)

    tracemalloc.start()
    try:
        assert read(file)[1] == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 1.5 * file.stat().st_size


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"resourceLogs": []}', None),
        (b'{"resourceLogs": [{"scopeLogs": 5}]}', "resourceLogs[0].scopeLogs: expected an array"),
        (b'{"resourceMetrics": []}', "this looks like OTLP metrics"),
        (b'{"agent": {"name": "a"}}\n', None),
        (b'[{"traceId": "1", "id": "2", "localEndpoint": {}}]', "this looks like a span of Zipkin"),
        (b'{"name": "a", "context": {}, "start_time": "x"}', "what the SDK's console exporter prints"),
        (b'{"id": 1, "value": 2}', "this looks like an object with the keys id, value"),
        (b"PAR1\0\0\0", "this looks like a Parquet file"),
        (b"trace_id,name\n1,a\n", "this looks like text"),
        (b'{"data": [{"spans": [{"traceID": "1"}]}]}', "not a Jaeger trace: spans.0.spanID: Field required"),
        (b'{"batches": [{"scopeSpans": 5}]}', "resourceSpans[0].scopeSpans: expected an array"),
        (b"{5", "The request is not valid JSON"),
    ],
)
def test_what_is_no_trace_is_named(tmp_path: Path, content: bytes, message: str | None) -> None:
    (tmp_path / "file").write_bytes(content)

    _, problems = read(tmp_path / "file")

    if message is None:
        assert [] == problems
    else:
        (problem,) = problems
        assert message in problem


@pytest.mark.end_to_end
@pytest.mark.parametrize("compression", ["", "zstd"])
@pytest.mark.parametrize("form", ["json", "proto"])
async def test_files_of_the_collectors_file_exporter_are_read(
    tmp_path: Path, form: str, compression: str
) -> None:
    endpoint = f"127.0.0.1:{free_port()}"
    exporter: Document = {"path": str(tmp_path / "traces"), "format": form, "flush_interval": "100ms"}
    config: Document = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": endpoint}}}},
        "exporters": {"file": exporter | ({"compression": compression} if compression else {})},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}},
        },
    }
    async with OtelCollector(tmp_path, "collector", config, endpoint), GrpcSender(endpoint) as sender:
        for request in REQUESTS:
            await sender.send(request)

    stream, problems = read(tmp_path / "traces")

    assert [] == [*problems, *stream.warnings]
    assert 1 == len(runs_of(stream))
