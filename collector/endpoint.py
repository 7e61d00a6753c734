"""Addresses to listen on, as configuration writes them: `host:port`, `:port`, `[::1]:port`."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field


def parse_endpoint(text: str) -> tuple[str, int]:
    """Host and port of `text`; no host means every IPv4 address, port 0 a free one.

    Raises:
        ValueError: `text` is something else; the message says what was expected.
    """
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        is_host = ":" in host
    else:
        is_host = not any(character in host for character in ":/[]* \t")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
    if not (colon and is_host and is_port):
        raise ValueError(
            f"expected host:port such as 0.0.0.0:4318, :4318 or [::1]:4318, port up to 65535, got {text!r}"
        )
    return host or "0.0.0.0", int(port)


def _checked(text: str) -> str:
    parse_endpoint(text)
    return text


Endpoint: TypeAlias = Annotated[
    str, AfterValidator(_checked), Field(examples=["127.0.0.1:4318", "0.0.0.0:4318", "[::1]:4318"])
]
"""A configuration field that holds an address `parse_endpoint` takes."""
