"""The attributes of a span for those who rarely ask: decoded when somebody does."""

from collections.abc import Iterator, Mapping

from processors.captured.values import json_value
from processors.json_value import JsonValue
from processors.spans.attributes import decode_key_values

_ATTRIBUTES_TAG = 0x4A


class SpanAttributes(Mapping[str, JsonValue]):
    """The attributes in the bytes of a Span message as JSON values; bytes are hex."""

    __slots__ = ("_attributes", "_raw")

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._attributes: dict[str, JsonValue] | None = None

    def _all(self) -> dict[str, JsonValue]:
        if self._attributes is None:
            found = decode_key_values(self._raw, _ATTRIBUTES_TAG)
            self._attributes = {key: json_value(found.get(key)) for key in found}
        return self._attributes

    def __getitem__(self, key: str) -> JsonValue:
        return self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return f"SpanAttributes({self._all()!r})"
