"""What a backend's ExportTraceServiceResponse and google.rpc.Status say."""

from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collector.exporters.exporter import ACCEPTED, ExportResponse

_MAX_TEXT_LENGTH = 300


def read_response(body: bytes) -> ExportResponse:
    """The partial success in a response; a body that is no such message counts as plain success."""
    if not body:
        return ACCEPTED
    try:
        response = ExportTraceServiceResponse.FromString(body)
    except DecodeError:
        return ACCEPTED
    partial = response.partial_success
    return ExportResponse(partial.rejected_spans, one_line(partial.error_message))


def read_status(body: bytes) -> tuple[str, float | None]:
    """Message and retry delay of a serialised google.rpc.Status; ("", None) where it is none."""
    try:
        status = status_pb2.Status.FromString(body)
    except DecodeError:
        return "", None
    delay: float | None = None
    for detail in status.details:
        retry_info = error_details_pb2.RetryInfo()
        try:
            if detail.Unpack(retry_info):
                delay = retry_info.retry_delay.seconds + retry_info.retry_delay.nanos / 1e9
        except DecodeError:
            continue
    return one_line(status.message), delay


def one_line(text: str) -> str:
    """`text` as a log takes it: one line, printable, not long."""
    flat = " ".join(text[: 4 * _MAX_TEXT_LENGTH].split())
    shown = "".join(character if character.isprintable() else "?" for character in flat)
    return shown if len(shown) <= _MAX_TEXT_LENGTH else shown[: _MAX_TEXT_LENGTH - 1] + "…"
