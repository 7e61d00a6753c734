"""Why a request is refused, and what else can go wrong in the service.

There are two kinds of refusal: *retry later* and *never valid*. Which status codes they become is
decided in `collector.otlp.status` alone.
"""


class TracegradeError(Exception):
    """Base of all errors of the service."""


class StartupError(TracegradeError):
    """The service cannot start; the message is one readable line for each problem."""


class BackgroundTaskDied(TracegradeError):
    """A task of the service ended with an error; its cause is chained."""


class Refusal(TracegradeError):
    """A request that was not accepted; nothing of it was kept. The message is told to the sender.

    `reason` is a word from a closed list and the label of `tracegrade_spans_refused_total`.
    """

    reason = "refused"


class MalformedRequest(Refusal):
    """The bytes are no export request (not protobuf, not JSON, broken gzip); never valid."""

    reason = "malformed"


class RequestTooLarge(Refusal):
    """The request exceeds a size limit, on the wire or after decompression; never valid."""

    reason = "too_large"


class UnsupportedRequest(Refusal):
    """A content type or encoding that the receiver does not speak; never valid."""

    reason = "unsupported"


class Unauthenticated(Refusal):
    """Credentials are missing or wrong; never valid."""

    reason = "unauthenticated"


class Overloaded(Refusal):
    """No room now: the sender is to come back."""

    reason = "overloaded"


class Draining(Refusal):
    """The service is shutting down: the sender is to come back."""

    reason = "draining"


class GradingCutShort(TracegradeError):
    """A trace was not graded before it had to leave."""

    def __init__(self) -> None:
        super().__init__("the service stopped before the trace was graded")


class ExportError(TracegradeError):
    """A backend did not take a request."""


class RetryableExportError(ExportError):
    """The backend may take it later; `retry_after_seconds` is its own word on when, if it gave one."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class PermanentExportError(ExportError):
    """The backend will never take it."""


class ContentRefusedError(PermanentExportError):
    """The backend will never take the request as it is (invalid or too large), but maybe parts of it."""
