"""Types of configuration fields: what people write, checked, as what components hold."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from processors.documents import DURATION_PATTERN, StrictModel, seconds_of
from processors.documents import Duration as Duration
from processors.documents import PositiveDuration as PositiveDuration
from processors.documents import format_duration as format_duration
from processors.documents import parse_duration as parse_duration

AnyT = TypeVar("AnyT")

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_DAY = 86_400_000
_EXPECTED_MOMENT = (
    "expected a duration such as 24h or 7d, a date such as 2026-01-31 (00:00 UTC), a time such as "
    "2026-01-31T08:00, yesterday, today or now"
)


def parse_moment(text: str, now: int) -> int:
    """The Unix milliseconds that `text` stands for; `now` is the present in them.

    A duration is that long ago. `yesterday`, `today` and a date such as `2026-01-31` are the beginning of
    that day in UTC, `now` is the present; a time such as `2026-01-31T08:00` is in UTC if it has no offset.

    Raises:
        ValueError: `text` is something else, or before 1970; the message says what was expected.
    """
    stripped = text.strip()
    if re.fullmatch(DURATION_PATTERN, stripped):
        return max(now - round(parse_duration(stripped) * 1000), 1)
    days_ago = {"today": 0, "yesterday": 1}.get(stripped)
    try:
        if stripped == "now":
            return now
        if days_ago is not None:
            return (now // _DAY - days_ago) * _DAY
        time = datetime.fromisoformat(stripped)
        moment = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        moment = 0.0
    if moment <= 0:
        raise ValueError(f"{_EXPECTED_MOMENT}, got {text[:100]!r}")
    return round(moment * 1000)


AUTO: Literal["auto"] = "auto"
EVIDENCE: Literal["evidence"] = "evidence"


DurationOrWord: TypeAlias = Annotated[
    float | Literal["auto", "evidence"],
    BeforeValidator(lambda value: value if value in (AUTO, EVIDENCE) else seconds_of(value)),
    PlainSerializer(
        lambda value: value if isinstance(value, str) else format_duration(value), return_type=str
    ),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": f"{DURATION_PATTERN}|^(auto|evidence)$",
            "examples": ["2s", AUTO, EVIDENCE],
        }
    ),
]
"""A `Duration`, or `auto` for one that is learned, or `evidence` for one that the trace itself decides."""


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


def is_loopback(endpoint: str) -> bool:
    """Whether `endpoint`, as configuration writes it, can only be reached from this machine."""
    host, _ = parse_endpoint(endpoint)
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def reachable_address(endpoint: str) -> str:
    """`host:port` by which what listens on `endpoint`, as configuration writes it, is reached from here."""
    host, port = parse_endpoint(endpoint)
    host = _ANY_ADDRESS.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _checked_endpoint(text: str) -> str:
    parse_endpoint(text)
    return text


Endpoint: TypeAlias = Annotated[
    str, AfterValidator(_checked_endpoint), Field(examples=["127.0.0.1:4318", "0.0.0.0:4318", "[::1]:4318"])
]
"""An address to listen on, as `parse_endpoint` takes it: `host:port`, `:port`, `[::1]:port`."""


def _named(expected: str) -> Callable[[Path, ValidationInfo], Path]:
    def checked(path: Path, info: ValidationInfo) -> Path:
        if not path.name:
            raise ValueError(expected)
        return info.context / path if isinstance(info.context, Path) else path

    return checked


FilePath: TypeAlias = Annotated[Path, AfterValidator(_named("expected the path of a file"))]
"""A path that names a file; an empty text, `.` and `/` name none.

A relative one is relative to the folder that is the validation context, if there is one.
"""


class ClientCertificateConfig(StrictModel):
    """What a client of a TLS server trusts, and shows of itself; all PEM files."""

    ca_file: FilePath | None = None
    """Authorities to trust instead of the system's."""
    cert_file: FilePath | None = None
    """The client certificate; with `key_file`."""
    key_file: FilePath | None = None
    """Its private key, without a passphrase."""

    @model_validator(mode="after")
    def _check_pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file belong together: give both or neither")
        return self


class _OrNull:
    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "null"}]}


EMPTY_IS_DEFAULTS = BeforeValidator(lambda written: {} if written is None else written)
"""Takes a part of the file with nothing in it as one with no settings, as the Collector does."""

Section: TypeAlias = Annotated[AnyT, EMPTY_IS_DEFAULTS, _OrNull()]
"""A part of the file that may be written without anything in it, for its defaults."""


BUILTIN = "builtin"
"""Among criteria files: those that come with tracegrade. A file of that name is `./builtin`."""


def _criteria_source(text: str, info: ValidationInfo) -> str:
    if text == BUILTIN:
        return text
    path = _named("expected builtin, or a file, a folder or a glob such as criteria/*.yaml")(Path(text), info)
    return f"./{BUILTIN}" if str(path) == BUILTIN else str(path)


CriteriaSource: TypeAlias = Annotated[str, AfterValidator(_criteria_source)]
"""`builtin`, or a file, a folder or a glob; relative as a `FilePath` is."""

CriteriaSources: TypeAlias = Annotated[
    tuple[CriteriaSource, ...],
    BeforeValidator(lambda written: (BUILTIN,) if written is None else written),
    Field(min_length=1),
    _OrNull(),
]
"""Where criteria come from; nothing written is `builtin`."""
