"""What exporters over HTTP share: URLs, TLS, and what a backend's answer says of time."""

import ssl
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import aiohttp
from yarl import URL

from collector.clock import Clock
from collector.errors import StartupError
from collector.exporters.otlp_client import ClientTlsConfig, read_tls_file

_MAX_RESPONSE_BYTES = 4 * 1024 * 1024


def is_usable_url(text: str) -> bool:
    """Whether `text` is a URL that requests can go to."""
    try:
        url = URL(text)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.host) and not url.fragment


def shown_url(url: URL | None) -> str:
    """The URL as a log may show it, without credentials; empty for none."""
    return "" if url is None else str(url.with_user(None).with_query(None))


def tls_context(tls: ClientTlsConfig, exporter: str) -> ssl.SSLContext:
    """What `tls` of an exporter says, with its files read; raises `StartupError` naming key and file."""
    for path, key in ((tls.ca_file, "ca_file"), (tls.cert_file, "cert_file"), (tls.key_file, "key_file")):
        read_tls_file(path, exporter, key)
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.cert_file is not None:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except (ssl.SSLError, OSError) as error:
        raise StartupError(f"exporters.{exporter}.tls: {error}") from error
    return context


def retry_after_seconds(headers: Mapping[str, str], clock: Clock) -> float | None:
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


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """The body, cut at a size that no honest response has."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_chunked(64 * 1024):
        chunks.append(chunk)
        size += len(chunk)
        if size >= _MAX_RESPONSE_BYTES:
            response.close()
            break
    return b"".join(chunks)
