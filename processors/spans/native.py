"""The reader in Rust (`tracegrade[native]`): its interface, and whether it is in use.

What it does the Python code beside each call does too, with the same results: that code is the reference,
and reads whatever is unusual or invalid, for which a function of the reader returns None.
"""

from collections.abc import Callable, Iterable, Sequence
from os import environ
from typing import Any, Final, Protocol, TypeAlias, cast

from processors.spans.envelope import Envelope
from processors.spans.span import RawRecord, RawSpan, Span

SWITCH: Final = "TRACEGRADE_NATIVE"
"""The environment variable that switches the reader off, by `off`; the only one that `processors` reads."""

INTERFACE: Final = 2
"""Both sides have this number; it grows with each change of `Native`."""


LinkedSpans: TypeAlias = tuple[
    list[int], list[int], list[bytes], list[Span], list[bytes], list[int], list[bool], bool
]
"""Starts, ends, span ids, views, ids of parents, parents, whether one is missing, all as in `SpanTree`;
and whether every parent stands before its children."""


class Native(Protocol):
    """The functions of the module `tracegrade_native`; none of them keeps what it was called with."""

    VERSION: str

    def contains_any(self, data: bytes, /, *needles: bytes) -> bool:
        """Whether one of `needles` is in `data`."""

    def split_spans(
        self, body: bytes, envelope_of: Callable[[bytes, bytes], Envelope], /
    ) -> tuple[dict[bytes, list[RawSpan]], int] | None:
        """The spans of a valid ExportTraceServiceRequest by trace id, and how many there are.

        None also where one has an id twice or an invalid one, or much of the request is needless.

        Args:
            body: Any bytes.
            envelope_of: Makes the envelope of a resource and a scope.
        """

    def split_records(
        self, body: bytes, envelope_of: Callable[[bytes, bytes], Envelope], /
    ) -> list[RawRecord] | None:
        """The log records of a valid ExportLogsServiceRequest, in order, likewise."""

    def count_records(self, body: bytes, /) -> int | None:
        """How many records `split_records` would return; None where that does."""

    def join_spans(self, spans: Iterable[RawSpan], /) -> bytes:
        """One request with `spans`, by resource, then by envelope, each in order of its first span."""

    def link_spans(self, spans: Sequence[RawSpan], most_events: int, /) -> LinkedSpans | None:
        """The spans of one trace as `SpanTree` has them.

        None for any but a list, where ids repeat, and for more events than `most_events`.
        """

    def known_readings(self, spans: Sequence[Span], known: object, /) -> tuple[list[Any], list[int]] | None:
        """The readings of the views in a list, and at which positions one is open, as None.

        None where `spans` are no views by `link_spans`.

        Args:
            spans: The views.
            known: What `SpanReader` knows of spans that are alike.
        """

    def plain_object(self, any_value: bytes, /) -> str | None:
        """The text in an AnyValue message that is nothing else, if it begins and ends as a JSON object does.

        None for 16 KiB or more, and where `is_plain_json` is false.
        """

    def is_plain_json(self, text: str, /) -> bool:
        """Whether a JSON text has no number of 19 digits or more, and opens 100 levels at most."""


def _load(switch: str) -> tuple[Native | None, str]:
    """The reader, or why it is not in use."""
    if switch == "off":
        return None, f"{SWITCH} is off"
    try:
        import tracegrade_native as module
    except ModuleNotFoundError:
        return None, "tracegrade-native is not installed"
    except ImportError as error:
        return None, f"tracegrade-native cannot be loaded: {error}"
    if module.INTERFACE != INTERFACE:
        return None, f"tracegrade-native has interface {module.INTERFACE}, expected {INTERFACE}"
    return cast(Native, module), ""


NATIVE, NATIVE_REASON = _load(environ.get(SWITCH, ""))
"""The reader in Rust, None where it is not in use; and why not, empty where it is."""


def contains_any(data: bytes, *needles: bytes) -> bool:
    """Whether one of `needles` is in `data`."""
    if NATIVE is not None:
        return NATIVE.contains_any(data, *needles)
    for needle in needles:  # noqa: SIM110  # a generator costs twice as much
        if data.find(needle) >= 0:  # `in` makes and drops an exception for every search in bytes
            return True
    return False
