"""The protobuf wire format, as far as OTLP spans need it: varints, length-delimited fields, skipping.

Everything here trusts its input to be a valid message (requests are validated as a whole before they are
walked); on other bytes the functions may raise IndexError or ValueError, never loop.
"""

from collections.abc import Iterator

VARINT, FIXED64, LENGTH_DELIMITED, START_GROUP, END_GROUP, FIXED32 = range(6)

_BYTES = [bytes((byte,)) for byte in range(256)]


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned varint at `position` and the position behind it."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return byte, position
    value = byte & 0x7F
    shift = 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("varint of more than ten bytes")


def skip_field(data: bytes, position: int, wire_type: int) -> int:
    """The position behind the value that starts at `position`."""
    if wire_type == LENGTH_DELIMITED:
        length, position = read_varint(data, position)
        return position + length
    if wire_type == VARINT:
        return read_varint(data, position)[1]
    if wire_type == FIXED64:
        return position + 8
    if wire_type == FIXED32:
        return position + 4
    if wire_type == START_GROUP:
        depth = 1
        while depth:
            tag, position = read_varint(data, position)
            nested = tag & 7
            if nested == START_GROUP:
                depth += 1
            elif nested == END_GROUP:
                depth -= 1
            else:
                position = skip_field(data, position, nested)
        return position
    raise ValueError(f"wire type {wire_type}")


def fields(data: bytes, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Every field between `position` and `end` as (tag, start of the field, start of its value, end).

    For a length-delimited field the value starts behind its length.
    """
    while position < end:
        start = position
        tag, position = read_varint(data, position)
        if tag & 7 == LENGTH_DELIMITED:
            length, position = read_varint(data, position)
            stop = position + length
        else:
            stop = skip_field(data, position, tag & 7)
        yield tag, start, position, stop
        position = stop


def encode_varint(value: int) -> bytes:
    """`value`, not negative, as a varint."""
    if value < 0x80:
        return _BYTES[value]
    if value < 0x4000:
        return _BYTES[value & 0x7F | 0x80] + _BYTES[value >> 7]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SHORT = 2048
_SHORT_VARINTS = [encode_varint(value) for value in range(_SHORT)]
"""The varints of most lengths: looking one up costs a third of making it."""


def encode_field(tag: int, payload: bytes) -> bytes:
    """A length-delimited field: `tag` is the whole tag (field number and wire type), below 128."""
    size = len(payload)
    return _BYTES[tag] + (_SHORT_VARINTS[size] if size < _SHORT else encode_varint(size)) + payload
