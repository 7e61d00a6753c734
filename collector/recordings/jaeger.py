"""Traces in Jaeger's JSON, from its API or its UI, to OTLP/JSON.

The Collector's translation between the two (`pkg/translator/jaeger` of opentelemetry-collector-contrib)
decides which tag stands for which field of a span.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError

from collector.errors import MalformedRequest
from processors.model import JsonObject, JsonValue

_T = TypeVar("_T")
_Many = Annotated[list[_T], BeforeValidator(lambda value: [] if value is None else value)]
"""A list; Jaeger writes null for an empty one."""


class _Tag(BaseModel):
    key: str
    type: str = ""
    value: str | bool | int | float | None = None


class _Reference(BaseModel):
    refType: str = "CHILD_OF"
    traceID: str
    spanID: str


class _Log(BaseModel):
    timestamp: int
    fields: _Many[_Tag] = []


class _Process(BaseModel):
    serviceName: str
    tags: _Many[_Tag] = []


class _Span(BaseModel):
    traceID: str
    spanID: str
    parentSpanID: str = ""
    operationName: str
    references: _Many[_Reference] = []
    startTime: int
    duration: int = 0
    tags: _Many[_Tag] = []
    logs: _Many[_Log] = []
    processID: str = ""
    process: _Process | None = None


class _Trace(BaseModel):
    spans: list[_Span]
    processes: dict[str, _Process] = {}


_KINDS: Final = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUS: Final = {"OK": 1, "ERROR": 2}
_VALUES: Final[dict[str, tuple[str, Callable[[object], JsonValue]]]] = {
    "string": ("stringValue", str),
    "bool": ("boolValue", lambda value: str(value).lower() == "true"),
    "int64": ("intValue", str),
    "float64": ("doubleValue", str),
    "binary": ("bytesValue", str),
}
"""By the type of a tag: the member of an OTLP value, and its conversion."""
_TYPES: Final[dict[type, str]] = {bool: "bool", int: "int64", float: "float64"}
"""The type of a tag without one, by the type of its value; any other is a string."""
_SCOPE_NAMES: Final = ("otel.scope.name", "otel.library.name")
_SCOPE_VERSIONS: Final = ("otel.scope.version", "otel.library.version")
_NO_ATTRIBUTES: Final = frozenset(
    {*_SCOPE_NAMES, *_SCOPE_VERSIONS, "span.kind", "otel.status_code", "otel.status_description"}
)
"""Tags that are fields of an OTLP span or its scope."""


def resource_spans_of_jaeger(trace: JsonValue) -> Iterator[JsonObject]:
    """The OTLP/JSON ResourceSpans of one trace, `{"spans": [...], "processes": {...}}`: one for each span.

    Raises:
        MalformedRequest: `trace` is not of that form; the message names the first place.
    """
    try:
        read = _Trace.model_validate(trace)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise MalformedRequest(f"The document is not a Jaeger trace: {place}: {first['msg']}.") from error
    for span in read.spans:
        process = span.process or read.processes.get(span.processID)
        if process is None:
            raise MalformedRequest(f"The document is not a Jaeger trace: no process {span.processID!r}.")
        yield _resource_spans(span, process)


def _resource_spans(span: _Span, process: _Process) -> JsonObject:
    texts = {tag.key: str(tag.value) for tag in span.tags}
    service = _Tag(key="service.name", value=process.serviceName)
    status = texts.get("otel.status_code", "ERROR" if texts.get("error", "").lower() == "true" else "")
    in_trace = [reference for reference in span.references if reference.traceID == span.traceID]
    in_trace.sort(key=lambda reference: reference.refType != "CHILD_OF")
    parent = in_trace[0].spanID if in_trace else span.parentSpanID
    converted: JsonObject = {
        "traceId": span.traceID.zfill(32),
        "spanId": span.spanID.zfill(16),
        "parentSpanId": parent and parent.zfill(16),
        "name": span.operationName,
        "kind": _KINDS.get(texts.get("span.kind", ""), 0),
        "startTimeUnixNano": span.startTime * 1000,
        "endTimeUnixNano": (span.startTime + span.duration) * 1000,
        "attributes": _attributes(tag for tag in span.tags if tag.key not in _NO_ATTRIBUTES),
        "events": [_event(log) for log in span.logs],
        "status": {
            "code": _STATUS.get(status.upper(), 0),
            "message": texts.get("otel.status_description", ""),
        },
    }
    scope: JsonObject = {
        "name": next((texts[key] for key in _SCOPE_NAMES if key in texts), ""),
        "version": next((texts[key] for key in _SCOPE_VERSIONS if key in texts), ""),
    }
    return {
        "resource": {"attributes": _attributes([service, *process.tags])},
        "scopeSpans": [{"scope": scope, "spans": [converted]}],
    }


def _attributes(tags: Iterable[_Tag]) -> list[JsonValue]:
    attributes: list[JsonValue] = []
    for tag in tags:
        kind = tag.type or _TYPES.get(type(tag.value), "")
        member, converted = _VALUES.get(kind, _VALUES["string"])
        attributes.append({"key": tag.key, "value": {member: converted(tag.value)}})
    return attributes


def _event(log: _Log) -> JsonObject:
    return {
        "timeUnixNano": log.timestamp * 1000,
        "name": next((str(field.value) for field in log.fields if field.key == "event"), ""),
        "attributes": _attributes(field for field in log.fields if field.key != "event"),
    }
