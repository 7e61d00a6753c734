"""What to do about the answer of a server that was reached and did not take a request."""

import re

from collector.tools.doctor.hop import Trouble

_CODE = re.compile(r"(?:HTTP (\d{3})|([A-Z][A-Z_]+)):")
_KINDS = {
    "401": "credentials", "UNAUTHENTICATED": "credentials",
    "403": "permission", "PERMISSION_DENIED": "permission",
    "404": "path", "405": "path", "UNIMPLEMENTED": "path",
    "415": "media type",
    "413": "size",
    "429": "busy", "503": "busy", "RESOURCE_EXHAUSTED": "busy", "UNAVAILABLE": "busy", "502": "busy",
    "504": "time", "DEADLINE_EXCEEDED": "time",
}  # fmt: skip
_REDIRECT = "3"

_EXPECTED = {
    "credentials": "credentials that the server knows",
    "permission": "credentials that may write there",
    "path": "a server that takes OTLP under this path",
    "media type": "a server that takes application/x-protobuf",
    "size": "a limit that lets a request of 1 KiB through",
    "busy": "a server that takes requests now",
    "time": "an answer within the timeout",
    "redirect": "the address itself: redirects are not followed",
    "other": "the answer that it was taken",
}
EXPORTER_ADVICE = {
    "credentials": "Correct the token or the key in headers of this exporter.",
    "permission": "Give the token of this exporter the right to write traces.",
    "path": "Correct the URL: endpoint gets /v1/traces appended, traces_endpoint nothing. docs/backends.md "
    "has the path of your backend.",
    "media type": "Give the URL of the OTLP endpoint of the backend; one that takes JSON alone needs an "
    "OpenTelemetry Collector between.",
    "size": "Raise the limit of the backend or of the proxy before it.",
    "busy": "See the backend's own limits and log. Spans are kept and sent again meanwhile.",
    "time": "See why the backend is slow, or raise timeout of this exporter.",
    "redirect": "Write the address to which it redirects.",
    "other": "See the log of the backend.",
}
LISTENER_ADVICE = {
    "credentials": "Send the header `Authorization: Bearer TOKEN` with a token of the listener's "
    "auth.bearer_token_file.",
    "permission": "Send with a token that the listener or the proxy before it accepts.",
    "path": "Send to /v1/traces over HTTP, to TraceService/Export over gRPC.",
    "media type": "Send application/x-protobuf or application/json.",
    "size": "Raise max_request_bytes of the listener.",
    "busy": "The service holds all that it may: see whether an exporter hangs (below), then raise "
    "processors.memory_limiter. docs/runbooks.md says more under TracegradeRefusingSpans.",
    "time": "See the log of the service.",
    "redirect": "Send to the address to which the proxy redirects.",
    "other": "See the log of the service.",
}


def refusal_trouble(message: str, advice: dict[str, str]) -> Trouble:
    """What is wrong where an exporter's error says `message`, beginning with the code of the answer."""
    code = _CODE.match(message)
    number = (code[1] or code[2]) if code else ""
    kind = "redirect" if number.startswith(_REDIRECT) else _KINDS.get(number, "other")
    if message.startswith("No answer within"):
        kind = "time"
    return Trouble(message, _EXPECTED[kind], advice[kind])
