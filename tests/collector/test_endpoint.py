"""Addresses as configuration writes them."""

import pytest
from pydantic import TypeAdapter, ValidationError

from collector.endpoint import Endpoint, parse_endpoint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:4318", ("127.0.0.1", 4318)),
        ("localhost:0", ("localhost", 0)),
        (":4317", ("0.0.0.0", 4317)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_an_endpoint_is_host_and_port(text: str, expected: tuple[str, int]) -> None:
    assert expected == parse_endpoint(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "localhost:",
        "localhost:65536",
        "localhost:-1",
        "::1:4318",
        "[localhost]:1",
        "http://localhost:4318",
        "a b:1",
        "host:٣",
        "host:" + "9" * 5000,
    ],
)
def test_anything_else_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValidationError, match="expected host:port such as"):
        TypeAdapter(Endpoint).validate_python(text)
