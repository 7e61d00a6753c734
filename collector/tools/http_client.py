"""One HTTP request at a time, for commands. Blocking."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping

from collector.errors import TracegradeError

TIMEOUT_SECONDS = 5.0
MAX_BYTES = 256 << 20


class NoAnswerError(TracegradeError):
    """There was no usable answer; the message says why."""


def send_request(
    url: str,
    body: bytes | None = None,
    *,
    method: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
    max_bytes: int = MAX_BYTES,
    uses_proxy: bool = False,
) -> tuple[int, bytes]:
    """Status and body of the answer from `url`; POST with a body, else GET, unless `method` says otherwise.

    The timeout is for connecting, and for each wait for more of the answer. Proxies that the environment
    names are used with `uses_proxy` alone.

    Raises:
        NoAnswerError: there is no answer, or it has more than `max_bytes`; the message is the reason alone.
    """
    opener = urllib.request.build_opener(*([] if uses_proxy else [urllib.request.ProxyHandler({})]))
    try:
        request = urllib.request.Request(url, body, dict(headers or {}), method=method)
        try:
            response = opener.open(request, timeout=timeout_seconds)
        except urllib.error.HTTPError as error:
            response = error  # an answer like any other
        with response:
            answer: bytes = response.read(max_bytes + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NoAnswerError(str(getattr(error, "reason", None) or error)) from error
    if len(answer) > max_bytes:
        raise NoAnswerError(f"the answer has more than {max_bytes} bytes")
    return response.status, answer


def query(
    address: str,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> tuple[int, bytes]:
    """Status and body of the answer of `address`, a `host:port`; raises `NoAnswerError`."""
    url = f"http://{address}{path}"
    try:
        return send_request(url, method=method, headers=headers, timeout_seconds=timeout_seconds)
    except NoAnswerError as error:
        raise NoAnswerError(f"no answer from {url}: {error}") from error
