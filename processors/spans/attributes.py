"""OTLP attributes as Python values, decoded one by one when they are asked for."""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from processors.spans.protobuf_wire import encode_varint, fields, read_varint

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
    last counts. Iteration is in order of the keys.
    """

    __slots__ = ("_encoded",)

    def __init__(self, encoded: Mapping[str, bytes]) -> None:
        """`encoded` holds the bytes of an AnyValue message for every key."""
        self._encoded = encoded

    def __getitem__(self, key: str) -> AttributeValue:
        encoded = self._encoded.get(key)
        if encoded is None:
            raise KeyError(key)
        return decode_any_value(encoded)

    def get(self, key: str, default: AttributeValue = None) -> AttributeValue:  # type: ignore[override]
        """The value of `key`, or `default`."""
        if key not in self._encoded:  # the runtime's own `get` costs more than both of these
            return default
        encoded = self._encoded[key]
        # Most values that are asked for are short texts.
        if (
            len(encoded) > 2
            and encoded[0] == _STRING
            and encoded[1] < 0x80
            and encoded[1] + 2 == len(encoded)
        ):
            return encoded[2:].decode()
        return decode_any_value(encoded)

    def encoded(self, key: str) -> bytes | None:
        """The bytes of the AnyValue message of `key`, or None."""
        return self._encoded.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._encoded

    def __iter__(self) -> Iterator[str]:
        # What the protobuf runtime hands out is in no order that would stay the same.
        return iter(sorted(self._encoded))

    def __len__(self) -> int:
        return len(self._encoded)

    def text(self, key: str) -> str | None:
        """The value of `key` if it is a string that is not empty, else None."""
        value = self.get(key)
        return value if isinstance(value, str) and value else None

    def mentions(self, key: str, *words: str) -> bool:
        """Whether the value of `key` is a text in which one of `words` stands.

        Spans that differ by that alone are told apart by it, however long the text is.
        """
        text = self.get(key)
        return isinstance(text, str) and any(word in text for word in words)

    def beginning_with(self, prefix: str) -> list[str]:
        """The keys that begin with `prefix`, in order."""
        return sorted([key for key in self._encoded if key.startswith(prefix)])

    def flattened(self, prefix: str) -> Any:
        """What keys with `prefix` spell out, by the reader in Rust; None: they have to be read one by one."""

    def among(self, keys: frozenset[str]) -> frozenset[str]:
        """Those of `keys` that are there; cheaper than asking for three of them."""
        return keys.intersection(self._encoded)


def _text_head(size: int) -> bytes:
    """What an AnyValue message of `size` bytes begins with if all of it is one text, which is not empty.

    Where there is no such message, or its text has 16 KiB or more: what no message of that size begins with.
    """
    for length in (size - 2, size - 3):
        head = b"\x0a" + encode_varint(length) if length > 0 else b""
        if len(head) + length == size:
            return head
    return bytes(size + 1)


_SHORT = 2048
_TEXT_HEADS = [_text_head(size) for size in range(_SHORT)]
"""The heads of most texts: asked of every argument and result, and looked up for less than they are made."""


def text_in(encoded: bytes) -> bytes | None:
    """The UTF-8 text in an AnyValue message that is nothing but a text of less than 16 KiB; else None."""
    size = len(encoded)
    text = encoded.removeprefix(_TEXT_HEADS[size] if size < _SHORT else _text_head(size))
    return text if len(text) < size else None


def short_text(encoded: bytes | None) -> str:
    """The text in an AnyValue message of less than 128 bytes of text; empty where there is no such text."""
    if encoded is None or (size := len(encoded)) < 3 or encoded[1] + 2 != size or encoded[0] != _STRING:
        return ""
    return encoded[2:].decode()


def encoded_text(text: str) -> bytes:
    """The bytes of an AnyValue message that holds `text`."""
    return AnyValue(string_value=text).SerializeToString()


NO_ATTRIBUTES = Attributes({})


def decode_key_values(data: bytes, tag: int) -> Attributes:
    """The attributes among the fields of `data` whose tag is `tag`."""
    encoded = encoded_values(data, tag, 0, len(data))
    return Attributes(encoded) if encoded else NO_ATTRIBUTES


def encoded_values(data: bytes, tag: int, start: int, end: int) -> dict[str, bytes]:
    """The keys of KeyValue messages with the bytes of their values, in the order in which they stand."""
    encoded: dict[str, bytes] = {}
    for result, _, value_start, stop in fields(data, start, end):
        if result == tag:
            key = ""
            value = b""
            for part, _, part_start, part_stop in fields(data, value_start, stop):
                if part == 0x0A:
                    key = data[part_start:part_stop].decode()
                elif part == 0x12:
                    value = data[part_start:part_stop]
            encoded[key] = value
    return encoded


def decode_any_value(data: bytes) -> AttributeValue:
    """The value of an AnyValue message."""
    if not data:
        return None
    if data[0] == _STRING:  # most values are texts
        length = data[1]
        start = 2
        if length >= 0x80:
            if data[2] < 0x80:
                length = length & 0x7F | data[2] << 7
                start = 3
            else:
                length, start = read_varint(data, 1)
        if start + length == len(data):
            return data[start:].decode()
    value: AttributeValue = None
    for tag, _, start, stop in fields(data, 0, len(data)):
        if tag == _STRING:
            value = data[start:stop].decode()
        elif tag == _INT:
            unsigned = read_varint(data, start)[0]
            value = unsigned - (1 << 64) if unsigned >> 63 else unsigned
        elif tag == _BOOL:
            value = read_varint(data, start)[0] != 0
        elif tag == _DOUBLE_TAG:
            value = _DOUBLE.unpack_from(data, start)[0]
        elif tag == _ARRAY:
            value = [
                decode_any_value(data[item_start:item_stop])
                for item_tag, _, item_start, item_stop in fields(data, start, stop)
                if item_tag == 0x0A
            ]
        elif tag == _KVLIST:
            encoded = encoded_values(data, 0x0A, start, stop)
            value = {key: decode_any_value(member) for key, member in encoded.items()}
        elif tag == _BYTES:
            value = data[start:stop]
    return value
