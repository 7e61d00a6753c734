"""How OTLP reports a failed request to its sender: gRPC code, HTTP status, retry delay.

Only this module maps refusals to codes. OTLP clients retry only UNAVAILABLE and 503 (and a few codes never
sent from here), so whatever may succeed later must end as one of these.
"""

from collections.abc import Callable
from dataclasses import dataclass

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToJson
from google.rpc import code_pb2, error_details_pb2, status_pb2

from collector.errors import (
    Draining,
    MalformedRequest,
    Overloaded,
    Refusal,
    RequestTooLarge,
    Unauthenticated,
    UnsupportedRequest,
)

UNEXPECTED_ERROR_MESSAGE = "The request could not be processed now; send it again."
"""Sent to the sender in place of the message of an unexpected exception."""

MAX_MESSAGE_LENGTH = 1024
"""Longer messages are truncated, since the size of gRPC trailers is limited."""

_MIN_RETRY_DELAY_SECONDS, _MAX_RETRY_DELAY_SECONDS = 1.0, 3.0

# (gRPC code, HTTP status) of permanent refusals.
_FINAL: dict[type[Refusal], tuple[int, int]] = {
    MalformedRequest: (code_pb2.INVALID_ARGUMENT, 400),
    RequestTooLarge: (code_pb2.RESOURCE_EXHAUSTED, 413),
    UnsupportedRequest: (code_pb2.UNIMPLEMENTED, 415),
    Unauthenticated: (code_pb2.UNAUTHENTICATED, 401),
}
_RETRYABLE = (Overloaded, Draining)


@dataclass(frozen=True, slots=True)
class ErrorStatus:
    """The answer to a request that failed.

    `code` is a google.rpc.Code. `retry_delay_seconds` is set for retryable answers and only for them.
    """

    code: int
    http_status: int
    message: str
    retry_delay_seconds: float | None = None

    @property
    def code_name(self) -> str:
        """The name of `code`, such as `INVALID_ARGUMENT`."""
        return str(code_pb2.Code.Name(self.code))

    @property
    def retry_after(self) -> str | None:
        """The HTTP header `Retry-After` in whole seconds, at least 1; None if a retry is useless."""
        if self.retry_delay_seconds is None:
            return None
        return str(max(1, round(self.retry_delay_seconds)))

    def to_protobuf(self) -> bytes:
        """The serialised google.rpc.Status, with BadRequest or RetryInfo as its detail."""
        return bytes(self._status().SerializeToString())

    def to_json(self) -> bytes:
        """The google.rpc.Status in JSON, on one line."""
        return MessageToJson(self._status(), indent=None).encode()

    def grpc_trailers(self) -> tuple[tuple[str, bytes], ...]:
        """Trailing metadata: the standard rich status and, if the answer is retryable, the bare RetryInfo.

        The OpenTelemetry exporter for Python reads the delay from the latter only.
        """
        trailers = [("grpc-status-details-bin", self.to_protobuf())]
        if self.retry_delay_seconds is not None:
            trailers.append(("google.rpc.retryinfo-bin", self._retry_info().SerializeToString()))
        return tuple(trailers)

    def _status(self) -> status_pb2.Status:
        status = status_pb2.Status(code=self.code, message=self.message)
        if self.retry_delay_seconds is not None:
            status.details.add().Pack(self._retry_info())
        elif self.code == code_pb2.INVALID_ARGUMENT:
            violation = error_details_pb2.BadRequest.FieldViolation(description=self.message)
            status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
        return status

    def _retry_info(self) -> error_details_pb2.RetryInfo:
        delay = Duration()
        delay.FromMilliseconds(round((self.retry_delay_seconds or 0.0) * 1000))
        return error_details_pb2.RetryInfo(retry_delay=delay)


def error_status(error: Exception, random: Callable[[], float]) -> ErrorStatus:
    """The answer to a request that ended with `error`; `random` returns numbers in [0, 1).

    Everything but permanent refusals is retryable; the message of an unexpected exception is not sent. The
    delay of a retryable answer is random, from 1 to 3 seconds, so that senders do not return all at once.
    """
    if isinstance(error, Refusal):
        for kind, (code, http_status) in _FINAL.items():
            if isinstance(error, kind):
                return ErrorStatus(code, http_status, _message(error))
    delay = _MIN_RETRY_DELAY_SECONDS + (_MAX_RETRY_DELAY_SECONDS - _MIN_RETRY_DELAY_SECONDS) * random()
    message = _message(error) if isinstance(error, _RETRYABLE) else UNEXPECTED_ERROR_MESSAGE
    return ErrorStatus(code_pb2.UNAVAILABLE, 503, message, delay)


def no_such_path(path: str) -> ErrorStatus:
    """The answer to an HTTP request for another path."""
    return ErrorStatus(
        code_pb2.NOT_FOUND,
        404,
        _cut(f"There is no {path} here; send traces to /v1/traces and logs to /v1/logs."),
    )


def method_not_allowed(method: str) -> ErrorStatus:
    """The answer to an HTTP request with another method than POST."""
    return ErrorStatus(
        code_pb2.UNIMPLEMENTED, 405, _cut(f"{method} is not allowed; export requests are sent by POST.")
    )


def foreign_site(host: str) -> ErrorStatus:
    """The answer to a browser's request for a site that is not this service."""
    return ErrorStatus(
        code_pb2.PERMISSION_DENIED,
        403,
        _cut(
            f"A browser may not send to this listener as {host}: expected localhost or a bearer token "
            "(auth); a proxy in front of it may remove the Origin header."
        ),
    )


def no_such_service(method: str) -> ErrorStatus:
    """The answer to a gRPC call of another method; `method` is the full `/service/method`."""
    return ErrorStatus(code_pb2.UNIMPLEMENTED, 501, _cut(f"{method} is not supported; traces and logs are."))


def _message(error: Exception) -> str:
    return _cut(str(error)) or type(error).__name__


def _cut(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE_LENGTH else message[: MAX_MESSAGE_LENGTH - 1] + "…"
