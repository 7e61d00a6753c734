"""OTLP attributes as Python values, decoded one by one when they are asked for."""

import struct
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from processors.protobuf_wire import fields, read_varint

AttributeValue: TypeAlias = (
    "str | int | float | bool | bytes | list[AttributeValue] | dict[str, AttributeValue] | None"
)
"""An OTLP AnyValue: arrays are lists, key-value lists are dicts, an empty AnyValue is None."""

_DOUBLE = struct.Struct("<d")

# Tags of AnyValue (opentelemetry/proto/common/v1/common.proto).
_STRING, _BOOL, _INT, _DOUBLE_TAG, _ARRAY, _KVLIST, _BYTES = 0x0A, 0x10, 0x18, 0x21, 0x2A, 0x32, 0x3A


class Attributes(Mapping[str, AttributeValue]):
    """The attributes of a span, event, resource or scope, over the bytes they came in.

    Looking up a key decodes its value; nothing else is decoded. Of two attributes with one key the
    last counts.
    """

    __slots__ = ("_data", "_slices")

    def __init__(self, data: bytes, slices: dict[str, tuple[int, int]]) -> None:
        self._data = data
        self._slices = slices

    def __getitem__(self, key: str) -> AttributeValue:
        start, end = self._slices[key]
        return _value_of_key_value(self._data, start, end)

    def get(self, key: str, default: AttributeValue = None) -> AttributeValue:  # type: ignore[override]
        """The value of `key`, or `default`."""
        found = self._slices.get(key)
        return default if found is None else _value_of_key_value(self._data, found[0], found[1])

    def __contains__(self, key: object) -> bool:
        return key in self._slices

    def __iter__(self) -> Iterator[str]:
        return iter(self._slices)

    def __len__(self) -> int:
        return len(self._slices)

    def text(self, key: str) -> str | None:
        """The value of `key` if it is a string that is not empty, else None."""
        value = self.get(key)
        return value if isinstance(value, str) and value else None


NO_ATTRIBUTES = Attributes(b"", {})


def index_key_value(data: bytes, start: int, end: int, slices: dict[str, tuple[int, int]]) -> None:
    """Enter the KeyValue message between `start` and `end` into `slices`."""
    if data[start] == 0x0A and data[start + 1] < 0x80:
        key_end = start + 2 + data[start + 1]
        if key_end == end or data[key_end] == 0x12:
            slices[data[start + 2 : key_end].decode()] = (key_end, end)
            return
    key = ""
    for tag, _, value_start, stop in fields(data, start, end):
        if tag == 0x0A:
            key = data[value_start:stop].decode()
    slices[key] = (start, end)


def decode_key_values(data: bytes, tag: int, start: int = 0, end: int | None = None) -> Attributes:
    """The attributes among the fields between `start` and `end` whose tag is `tag`."""
    slices: dict[str, tuple[int, int]] = {}
    for found, _, value_start, stop in fields(data, start, len(data) if end is None else end):
        if found == tag:
            index_key_value(data, value_start, stop, slices)
    return Attributes(data, slices) if slices else NO_ATTRIBUTES


def _value_of_key_value(data: bytes, start: int, end: int) -> AttributeValue:
    # Most values are texts, and stand as a string AnyValue right behind the key.
    if end - start > 3 and data[start] == 0x12:
        position = start + 2 if data[start + 1] < 0x80 else read_varint(data, start + 1)[1]
        if data[position] == _STRING:
            length = data[position + 1]
            position += 2
            if length >= 0x80:
                length, position = read_varint(data, position - 1)
            if position + length == end:
                return data[position:end].decode()
    value: AttributeValue = None
    for tag, _, value_start, stop in fields(data, start, end):
        if tag == 0x12:
            value = _any_value(data, value_start, stop)
    return value


def _any_value(data: bytes, start: int, end: int) -> AttributeValue:
    if start == end:
        return None
    tag = data[start]
    if tag == _STRING:
        length, position = read_varint(data, start + 1)
        if position + length == end:
            return data[position:end].decode()
    value: AttributeValue = None
    for tag, _, value_start, stop in fields(data, start, end):
        if tag == _STRING:
            value = data[value_start:stop].decode()
        elif tag == _INT:
            unsigned = read_varint(data, value_start)[0]
            value = unsigned - (1 << 64) if unsigned >> 63 else unsigned
        elif tag == _BOOL:
            value = read_varint(data, value_start)[0] != 0
        elif tag == _DOUBLE_TAG:
            value = _DOUBLE.unpack_from(data, value_start)[0]
        elif tag == _ARRAY:
            value = [
                _any_value(data, item_start, item_stop)
                for item_tag, _, item_start, item_stop in fields(data, value_start, stop)
                if item_tag == 0x0A
            ]
        elif tag == _KVLIST:
            value = dict(decode_key_values(data, 0x0A, value_start, stop))
        elif tag == _BYTES:
            value = data[value_start:stop]
    return value
