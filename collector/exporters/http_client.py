"""What exporters over HTTP share: a pool of connections, and what an answer without success means."""

import io
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from yarl import URL

from collector.clock import Clock
from collector.errors import (
    ContentRefusedError,
    ExportError,
    PermanentExportError,
    RetryableExportError,
    StartupError,
)
from collector.exporters.otlp_client import ClientConfig, header_values, one_line, read_tls_file, user_agent

if TYPE_CHECKING:  # loaded for an exporter that uses it: it would be a tenth of every start
    import aiohttp

_MAX_RESPONSE_BYTES = 4 * 1024 * 1024
_CONTENT_STATUSES = frozenset({400, 413, 422})


def is_usable_url(text: str) -> bool:
    """Whether `text` is a URL that requests can go to."""
    try:
        url = URL(text)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.host) and not url.fragment


def shown_url(url: URL) -> str:
    """The URL as a log may show it, without credentials."""
    return str(url.with_user(None).with_query(None))


class RefusedCallError(PermanentExportError):
    """The server answered that it will not accept a request, with the whole `text` of its answer."""

    def __init__(self, message: str, status: int, text: str) -> None:
        super().__init__(message)
        self.status = status
        self.text = text


@dataclass(slots=True, kw_only=True)
class HttpSender:
    """Sends requests for one exporter. Redirects are not followed: they would lose the body.

    `name` is for messages; `headers` are sent unless those of `config` replace them.
    """

    name: str
    config: ClientConfig
    headers: Mapping[str, str]
    clock: Clock
    connections: int = 100
    _session: "aiohttp.ClientSession | None" = field(default=None, init=False)

    async def start(self, *, uses_tls: bool) -> None:
        """Read the TLS files if they are needed; raises `StartupError`."""
        import aiohttp

        tls = self._tls_context() if uses_tls else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.connections, ssl=tls),
            headers={"User-Agent": user_agent(), **self.headers, **header_values(self.config.headers)},
            timeout=aiohttp.ClientTimeout(total=self.config.timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def send(
        self,
        method: str,
        url: URL,
        body: bytes | io.BytesIO | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> "tuple[aiohttp.ClientResponse, bytes]":
        """The server's answer, whatever its status, and its body; raises `RetryableExportError` for none."""
        import aiohttp

        if self._session is None:
            raise RetryableExportError("The exporter is not started.")
        try:
            async with self._session.request(
                method,
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                server_hostname=self.config.tls.server_name_override,
            ) as response:
                answer = bytearray()
                async for chunk in response.content.iter_chunked(64 * 1024):
                    answer += chunk
                    if len(answer) >= _MAX_RESPONSE_BYTES:  # longer than any honest response
                        response.close()
                        break
                return response, bytes(answer)
        except TimeoutError as error:
            raise RetryableExportError(f"No answer within {self.config.timeout:g} s.") from error
        except (aiohttp.ClientError, OSError) as error:
            raise RetryableExportError(one_line(f"{type(error).__name__}: {error}")) from error

    def refusal(
        self,
        response: "aiohttp.ClientResponse",
        retryable: Collection[int],
        shown: str,
        text: str | None = None,
    ) -> ExportError:
        """The error for an answer without success: in logs `shown`; with `text`, callers can look at that."""
        message = f"HTTP {response.status}: {one_line(shown)}"
        if response.status in retryable:
            return RetryableExportError(message, _retry_after_seconds(response.headers, self.clock))
        if response.status in _CONTENT_STATUSES:
            return ContentRefusedError(message)
        if text is None:
            return PermanentExportError(message)
        return RefusedCallError(message, response.status, text)

    async def close(self) -> None:
        """Close all connections; safe before `start` and twice."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _tls_context(self) -> ssl.SSLContext:
        tls = self.config.tls
        for path, key in ((tls.ca_file, "ca_file"), (tls.cert_file, "cert_file"), (tls.key_file, "key_file")):
            read_tls_file(path, self.name, key)  # for a message that names key and file
        try:
            context = ssl.create_default_context(cafile=tls.ca_file)
            # As in gRPC, and from Python 3.13 on: a certificate in ca_file is trusted, whoever issued it.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            if tls.cert_file is not None:
                context.load_cert_chain(tls.cert_file, tls.key_file)
        except (ssl.SSLError, OSError) as error:
            raise StartupError(f"exporters.{self.name}.tls: {error}") from error
        return context


def _retry_after_seconds(headers: Mapping[str, str], clock: Clock) -> float | None:
    """RFC 9110 `Retry-After`, seconds or a date, as seconds from now; None if it is neither."""
    value = headers.get("Retry-After")
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        seconds = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):  # the latter for a year or a zone beyond all calendars
        return None
    return max(0.0, seconds - clock.unix_nano() / 1e9)
