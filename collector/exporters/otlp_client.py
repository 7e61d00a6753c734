"""The connection of an exporter (TLS, headers, user agent), and what OTLP backends answer."""

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, TypeAlias

from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from pydantic import AfterValidator, Field, SecretStr

from collector.config_fields import ClientCertificateConfig, PositiveDuration
from collector.errors import StartupError
from collector.exporters.exporter import ACCEPTED, ExportResponse
from processors.documents import StrictModel

_HEADER_NAME = re.compile(r"[A-Za-z0-9_.!#$%&'*+^`|~-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_RESERVED = re.compile(
    r"grpc-|.*-bin$|content-(type|encoding|length)$|host$|te$|transfer-encoding$", re.IGNORECASE
)


def _check_headers(headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a header name")
        if _RESERVED.match(name):
            raise ValueError(f"the header {name!r} cannot be set: the protocol uses it")
        if not _HEADER_VALUE.fullmatch(value.get_secret_value()):
            raise ValueError(f"the value of the header {name!r} must be printable ASCII on one line")
    return headers


Headers: TypeAlias = Annotated[dict[str, SecretStr], AfterValidator(_check_headers)]
"""Headers of every request (gRPC metadata); their values are secrets and never printed."""


def header_values(headers: Headers) -> dict[str, str]:
    """The headers as they are sent."""
    return {name: value.get_secret_value() for name, value in headers.items()}


class ClientTlsConfig(ClientCertificateConfig):
    """`tls` of an exporter. Without keys: TLS, checked against the system's authorities. Files are PEM."""

    insecure: bool = False
    """No TLS. A scheme in the endpoint (`http://`, `https://`) decides instead where there is one."""
    server_name_override: str | None = None
    """The name that the backend's certificate must carry, where it is not the endpoint's host."""


class ClientConfig(StrictModel):
    """The keys that all exporters over gRPC or HTTP share; their configuration models derive from it."""

    endpoint: str | None = None
    """Where it is, as each of them states."""
    tls: ClientTlsConfig = ClientTlsConfig()
    headers: Headers = Field(default_factory=dict)
    """Headers of every request; over gRPC its metadata."""
    timeout: PositiveDuration = 10.0
    """For one attempt."""


def read_tls_file(path: Path | None, exporter: str, key: str) -> bytes | None:
    """The content of a file named in `tls`; raises `StartupError` naming exporter, key and file."""
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartupError(
            f"exporters.{exporter}.tls.{key}: {path} cannot be read: {error.strerror or error}"
        ) from error


def user_agent() -> str:
    """The `User-Agent` of all exporters."""
    try:
        return f"tracegrade/{version('tracegrade')}"
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "tracegrade"


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
    """`text` for a log: one line, printable, not long."""
    flat = " ".join(text[: 4 * _MAX_TEXT_LENGTH].split())
    shown = "".join(character if character.isprintable() else "?" for character in flat)
    return shown if len(shown) <= _MAX_TEXT_LENGTH else shown[: _MAX_TEXT_LENGTH - 1] + "…"
