"""What to do about the answer of a server that was reached and did not accept a request."""

import re
from typing import Literal

from collector.tools.doctor.hop import Hop, broken

_CODE = re.compile(r"(?:HTTP (3|\d{3}):?|([A-Z][A-Z_]+):|No answer (within))")
_KINDS = {
    **dict.fromkeys(("401", "403", "UNAUTHENTICATED", "PERMISSION_DENIED"), "credentials"),
    **dict.fromkeys(("404", "405", "415", "UNIMPLEMENTED"), "path"),
    **dict.fromkeys(("429", "502", "503", "RESOURCE_EXHAUSTED", "UNAVAILABLE"), "busy"),
    **dict.fromkeys(("504", "DEADLINE_EXCEEDED", "within"), "time"),
    "3": "redirect",
}
_ADVICE = {
    "credentials": (
        "credentials that may write there",
        "Correct the token or the key in headers of this exporter, or give it the right to write traces.",
        "Send the header `Authorization: Bearer TOKEN` with a token of the listener's bearer_token_file.",
    ),
    "path": (
        "a server that accepts OTLP as application/x-protobuf under this path",
        "Give the OTLP endpoint of the backend (docs/backends.md): endpoint gets /v1/traces appended, "
        "traces_endpoint nothing. One that accepts JSON alone needs an OpenTelemetry Collector in between.",
        "Send to /v1/traces over HTTP, to TraceService/Export over gRPC.",
    ),
    "busy": (
        "a server that accepts requests now",
        "See the backend's own limits and log. Spans are held and sent again meanwhile.",
        "The service holds all that it may: see whether an exporter hangs (below), then raise "
        "processors.memory_limiter. docs/runbooks.md says more under TracegradeRefusingSpans.",
    ),
    "time": (
        "an answer within the timeout",
        "See why the backend is slow, or raise timeout of this exporter.",
        "See the log of the service.",
    ),
    "redirect": (
        "the address itself: redirects are not followed",
        "Write the address to which it redirects.",
        "Send to the address to which the proxy redirects.",
    ),
    "other": (
        "the answer that it was accepted",
        "See the log of the backend.",
        "See the log of the service.",
    ),
}
"""By kind of answer: what was expected, what to do at an exporter, and what at a sender to a listener."""


def refusal(where: str, message: str, side: Literal["exporter", "listener"]) -> Hop:
    """The hop at which an exporter's error reads `message`, which begins with the code of the answer."""
    code = _CODE.match(message)
    kind = _KINDS.get(next(filter(None, code.groups())) if code else "", "other")
    expected, at_exporter, at_sender = _ADVICE[kind]
    return broken(where, message, expected, at_exporter if side == "exporter" else at_sender)
