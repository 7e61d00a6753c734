"""The attributes of a span as JSON values."""

from processors.model import JsonValue, json_value
from processors.spans import decode_key_values

_ATTRIBUTES_TAG = 0x4A


def span_attributes(raw: bytes) -> dict[str, JsonValue]:
    """The attributes in the bytes of a Span message; of a repeated key the last, bytes as hex."""
    found = decode_key_values(raw, _ATTRIBUTES_TAG)
    return {key: json_value(found.get(key)) for key in found}
