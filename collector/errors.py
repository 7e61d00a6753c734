"""Errors of the service, and refusals of requests: *retry later* or *never valid*.

Only `collector.otlp.status` maps refusals to status codes.
"""


class TracegradeError(Exception):
    """Base of all errors of the service."""


class StartupError(TracegradeError):
    """The service cannot start; the message has one line per problem."""


class BackgroundTaskDied(TracegradeError):
    """A background task failed; its error is chained."""


class Refusal(TracegradeError):
    """A request of which nothing was accepted. The message is sent to the sender.

    `reason` is from a closed list, and a label of `tracegrade_spans_refused_total`.
    """

    reason = "refused"


class MalformedRequest(Refusal):
    """Not an export request (not protobuf, not JSON, damaged gzip); never valid."""

    reason = "malformed"


class RequestTooLarge(Refusal):
    """Above a size limit, on the wire or after decompression; never valid."""

    reason = "too_large"


class UnsupportedRequest(Refusal):
    """A content type or encoding that the receiver does not support; never valid."""

    reason = "unsupported"


class Unauthenticated(Refusal):
    """Credentials are missing or wrong; never valid."""

    reason = "unauthenticated"


class Overloaded(Refusal):
    """No room now; the sender is asked to retry."""

    reason = "overloaded"


class Draining(Refusal):
    """The service is shutting down; the sender is asked to retry."""

    reason = "draining"


class GradingCutShort(TracegradeError):
    """A trace had to be forwarded before it was graded."""

    def __init__(self) -> None:
        super().__init__("the service stopped before the trace was graded")


class ExportError(TracegradeError):
    """A backend did not accept a request."""


class RetryableExportError(ExportError):
    """The backend may accept it later; after `retry_after_seconds`, if it specified that."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class PermanentExportError(ExportError):
    """The backend will never accept it."""


class ContentRefusedError(PermanentExportError):
    """The backend will not accept the request as it is (invalid or too large), but perhaps parts of it."""
