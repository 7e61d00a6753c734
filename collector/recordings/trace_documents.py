"""JSON documents that contain traces or logs, in the forms that people have, converted to export requests.

An OTLP request, also of both signals, an array of them, or one ResourceSpans or ResourceLogs (as Java's
logging exporter writes, opentelemetry-java #6749); what Tempo's API answers (`batches` of `/api/traces`,
`trace` of `/api/v2/traces`) and Jaeger's (`/api/traces`, and `result` of `/api/v3`). Tempo's and whatever
`google.protobuf` printed is proto3's own JSON: base64 for ids, names for enum values.
"""

import base64
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.errors import MalformedRequest
from collector.otlp import logs_object_to_request, object_to_request
from collector.recordings.jaeger import resource_spans_of_jaeger
from collector.trace import Signal
from processors.model import JsonObject, JsonValue

_IDS = frozenset({"traceId", "spanId", "parentSpanId"})
_HEX_ID = re.compile(r"(?:[0-9a-fA-F]{16}){1,2}")
_BASE64_ID = re.compile(r"[A-Za-z0-9+/]{22}==")
"""A trace id in base64."""
_RENAMED = {"instrumentationLibrarySpans": "scopeSpans", "instrumentationLibrary": "scope"}
"""Keys of OTLP before 0.19, and their present names."""
_FORM_KEYS = frozenset({"traceId", "instrumentationLibrarySpans"})
"""The first of these in a document shows how it is written."""
_MAX_KEYS_SHOWN, _MAX_TEXT_SHOWN = 8, 200


class _Form(NamedTuple):
    """How a request of one signal is written."""

    keys: frozenset[str]
    message: type[Message]
    to_request: Callable[[JsonValue], bytes]


_FORMS: Mapping[Signal, _Form] = {
    "traces": _Form(
        frozenset({"resourceSpans", "resource_spans"}), ExportTraceServiceRequest, object_to_request
    ),
    "logs": _Form(
        frozenset({"resourceLogs", "resource_logs"}), ExportLogsServiceRequest, logs_object_to_request
    ),
}

_OTHER_FORMS: Sequence[tuple[frozenset[str], str]] = (
    (frozenset({"agent"}), "an agent run: name such a file *.runs.jsonl"),
    (frozenset({"resourceMetrics"}), "OTLP metrics"),
    (frozenset({"resourceProfiles"}), "OTLP profiles"),
    (frozenset({"name", "context", "start_time"}), "what the SDK's console exporter prints"),
    (frozenset({"traceId", "id", "localEndpoint"}), "a span of Zipkin"),
    (frozenset({"traceId", "spanId", "name"}), "a span without its resource"),
    (frozenset({"trace_id", "span_id", "resource", "meta"}), "a span of Datadog"),
    (frozenset({"observations"}), "a trace of Langfuse's API"),
    (frozenset({"run_type"}), "a run of LangSmith's API"),
    (frozenset({"spans"}), "a list of spans without resources"),
)
"""Keys that identify documents that cannot be read; the first match counts."""


def requests_in_document(document: JsonValue) -> Iterator[tuple[Signal, bytes]]:
    """The serialised export requests in `document` with what each is of, in order; none for an empty object.

    Raises:
        MalformedRequest: `document` has none of the forms above (the message says what it looks like), or the
            value of a known key does not fit it.
    """
    if isinstance(document, list):
        for item in document:
            yield from requests_in_document(item)
        return
    if not isinstance(document, dict):
        raise MalformedRequest("not a JSON object, expected an OTLP request")
    inner = document.get("trace", document.get("result"))
    signals = [signal for signal, form in _FORMS.items() if not form.keys.isdisjoint(document)]
    if signals or not document:
        for signal in signals or ["traces"]:
            yield signal, _request(document, signal)
    elif isinstance(batches := document.get("batches"), list):
        yield "traces", _request({"resourceSpans": batches})
    elif isinstance(inner, dict):
        yield from requests_in_document(inner)
    elif not document.keys().isdisjoint(("scopeSpans", "scope_spans", "instrumentationLibrarySpans")):
        yield "traces", _request({"resourceSpans": [document]})
    elif not document.keys().isdisjoint(("scopeLogs", "scope_logs")):
        yield "logs", _request({"resourceLogs": [document]}, "logs")
    elif isinstance(traces := document.get("data", [document] if "processes" in document else None), list):
        spans = [span for trace in traces for span in resource_spans_of_jaeger(trace)]
        yield "traces", object_to_request({"resourceSpans": [*spans]})
    else:
        raise MalformedRequest(f"not an OTLP request, this looks like {_name_of(document)}")


def _request(request: JsonObject, signal: Signal = "traces") -> bytes:
    form = _FORMS[signal]
    if len(request) > 1:  # the other signal is read apart, and its ids may be written in another way
        request = {key: value for key, value in request.items() if key in form.keys}
    first = _first(request, _FORM_KEYS)
    if first is None or (first[0] not in _RENAMED and not _BASE64_ID.fullmatch(str(first[1]))):
        return form.to_request(request)
    try:
        message = ParseDict(_as_proto3_json(request), form.message(), ignore_unknown_fields=True)
    except ParseError as error:
        raise MalformedRequest(f"The document is not valid JSON of OTLP's messages: {error}.") from error
    return message.SerializeToString()


def _first(value: JsonValue, keys: Collection[str]) -> tuple[str, JsonValue] | None:
    """The first member of the document whose key is one of `keys`, and its key."""
    if isinstance(value, dict):
        for key in value.keys() & keys:
            return key, value[key]
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if (member := _first(item, keys)) is not None:
            return member
    return None


def _as_proto3_json(value: JsonValue) -> Any:
    """The document with old keys renamed, and with ids in base64 where they are hex."""
    if isinstance(value, list):
        return [_as_proto3_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        _RENAMED.get(key, key): base64.b64encode(bytes.fromhex(item)).decode()
        if key in _IDS and isinstance(item, str) and _HEX_ID.fullmatch(item)
        else _as_proto3_json(item)
        for key, item in value.items()
    }


def _name_of(document: Mapping[str, JsonValue]) -> str:
    for keys, name in _OTHER_FORMS:
        if keys <= document.keys():
            return name
    shown = ", ".join(sorted(document)[:_MAX_KEYS_SHOWN])
    return f"an object with the keys {shown[:_MAX_TEXT_SHOWN]}"
