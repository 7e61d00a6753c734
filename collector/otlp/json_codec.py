"""OTLP/JSON from and to serialised export requests.

OTLP/JSON is proto3 JSON except for three rules: trace and span ids are hex, enums are integers, and unknown
keys are ignored. `google.protobuf.json_format` has none of them and is slow, so encoders and decoders are
built here from the descriptors of the OTLP messages, for every field of the protocol.
"""

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable
from typing import TypeAlias, cast

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.errors import MalformedRequest
from processors.model import JsonObject, JsonValue
from processors.spans import encode_varint

MAX_DEPTH = 100
"""Messages within messages; the protobuf runtime has the same limit."""

_HEX_FIELDS = frozenset({"trace_id", "span_id", "parent_span_id"})

_INVALID_ID = b"\x00"
"""In place of an id that is not hex: never valid, so that its span or record is rejected, not the request."""

_INVALID_RECORD_IDS = (b"\x4a\x01\x00", b"\x52\x01\x00")
"""Invalid ids of LogRecord: trace_id (9) and span_id (10), with their lengths."""
HAS_INVALID_IDS = b"\xfa\x7f\x0binvalid ids"
"""A field that no ExportLogsServiceRequest has: to look for such ids in every request would cost too much."""

_ESCAPES = re.compile(
    rb"""\\(?:
        u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}  # a whole pair
        | (?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})
        | .
    )""",
    re.VERBOSE | re.DOTALL,
)
_DECIMAL = re.compile(r"-?[0-9]{1,20}")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|NaN|-?Infinity")
_DOUBLE = struct.Struct("<d")
_FIXED32 = struct.Struct("<I")
_FIXED64 = struct.Struct("<Q")

_Encode: TypeAlias = Callable[[JsonValue, int], bytes]
"""A JSON value and the depth of its message to an encoded field, tag included."""
_Decode: TypeAlias = Callable[..., JsonValue]
_Both: TypeAlias = tuple[_Encode, _Decode]


def parse_json(body: bytes) -> JsonValue:
    """The JSON value in `body`; half of a surrogate pair becomes U+FFFD. Raises `MalformedRequest`."""
    document: JsonValue
    try:
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            mended = _ESCAPES.sub(lambda match: rb"\ufffd" if match["half"] else match[0], body)
            if mended == body:
                raise
            document = orjson.loads(mended)
    except orjson.JSONDecodeError as error:
        raise MalformedRequest(f"The request is not valid JSON: {error}.") from error
    return document


class _Mismatch(Exception):
    """A value that does not match its field; its path grows from the inside out while it is raised."""

    def __init__(self, expected: str, result: JsonValue) -> None:
        super().__init__(expected)
        self.problem = f"expected {expected}, found {_kind(result)}"
        self.path: list[str] = []

    def __str__(self) -> str:
        path = "".join(reversed(self.path)).removeprefix(".")
        return f"{path}: {self.problem}" if path else self.problem


class _Codec:
    """Encodes and decodes one type of message."""

    __slots__ = ("decoders", "encoders")

    def __init__(self) -> None:
        self.encoders: dict[str, _Encode] = {}
        self.decoders: dict[int, tuple[str, _Decode]] = {}

    def encoder(self, tag: bytes) -> _Encode:
        """Encodes the message as a field with this tag; with an empty one as the payload alone."""
        find = self.encoders.get

        def encode(value: JsonValue, depth: int) -> bytes:
            if type(value) is not dict:
                raise _Mismatch("an object", value)
            if depth == MAX_DEPTH:
                raise _Mismatch(f"at most {MAX_DEPTH} objects within each other", value)
            parts: list[bytes] = []
            for key, item in value.items():
                encode_item = find(key)
                if encode_item is None or item is None:
                    continue
                try:
                    parts.append(encode_item(item, depth + 1))
                except _Mismatch as mismatch:
                    mismatch.path.append(f".{key}")
                    raise
            payload = b"".join(parts)
            return tag + encode_varint(len(payload)) + payload if tag else payload

        return encode

    def decode(self, message: Message) -> JsonObject:
        """The message as an object with the keys that are set, in the order of the field numbers."""
        decoders = self.decoders
        decoded: JsonObject = {}
        for field, value in message.ListFields():
            name, decode = decoders[field.number]
            decoded[name] = decode(value)
        return decoded


def _codec(descriptor: Descriptor, known: dict[str, _Codec]) -> _Codec:
    codec = known.get(descriptor.full_name)
    if codec is None:
        codec = known[descriptor.full_name] = _Codec()
        for field in descriptor.fields:
            encode, decode = _field(field, known)
            codec.encoders[field.json_name] = codec.encoders[field.name] = encode
            codec.decoders[field.number] = (field.json_name, decode)
    return codec


def _field(field: FieldDescriptor, known: dict[str, _Codec]) -> _Both:
    """How a field is encoded and decoded."""
    if field.message_type is not None:
        codec = _codec(field.message_type, known)
        both: _Both = codec.encoder(_tag(field, 2)), codec.decode
    else:
        both = _scalar(field)
    return _repeated(*both) if field.is_repeated else both


def _repeated(encode_one: _Encode, decode_one: _Decode) -> _Both:
    def encode(value: JsonValue, depth: int) -> bytes:
        if type(value) is not list:
            raise _Mismatch("an array", value)
        parts: list[bytes] = []
        try:
            for item in value:
                parts.append(encode_one(item, depth))
        except _Mismatch as mismatch:
            mismatch.path.append(f"[{len(parts)}]")
            raise
        return b"".join(parts)

    def decode(values: list[Message]) -> JsonValue:
        return [decode_one(value) for value in values]

    return encode, decode


def _scalar(field: FieldDescriptor) -> _Both:
    """A field that is not a message. Defaults are omitted where the protocol treats absence alike."""
    if field.type == FieldDescriptor.TYPE_BYTES:
        if field.name in _HEX_FIELDS:
            return _length_delimited(field, _hex_bytes), bytes.hex
        return _length_delimited(field, _base64_bytes), lambda value: base64.b64encode(value).decode()
    if field.type == FieldDescriptor.TYPE_STRING:
        return _length_delimited(field, _text), _unchanged
    if field.type == FieldDescriptor.TYPE_BOOL:
        return _fixed(field, 0, _bool), _unchanged
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return _fixed(field, 1, _double), _double_to_json
    bits, signed, wire_type = _INTEGERS[field.type]
    encode = _fixed(field, wire_type, _integer(bits, signed, wire_type, is_enum=field.enum_type is not None))
    return encode, str if bits == 64 else _unchanged


_INTEGERS = {
    FieldDescriptor.TYPE_INT64: (64, True, 0),
    FieldDescriptor.TYPE_UINT64: (64, False, 0),
    FieldDescriptor.TYPE_FIXED64: (64, False, 1),
    FieldDescriptor.TYPE_INT32: (32, True, 0),
    FieldDescriptor.TYPE_UINT32: (32, False, 0),
    FieldDescriptor.TYPE_FIXED32: (32, False, 5),
    FieldDescriptor.TYPE_ENUM: (32, True, 0),
}
"""Bits, signed, wire type."""
_SIZES = {0: 1, 1: 8, 5: 4}
"""Bytes of a zero by wire type."""


def _tag(field: FieldDescriptor, wire_type: int) -> bytes:
    return encode_varint(field.number << 3 | wire_type)


def _length_delimited(field: FieldDescriptor, to_bytes: Callable[[JsonValue], bytes]) -> _Encode:
    tag = _tag(field, 2)
    keeps_empty = field.has_presence or field.is_repeated

    def encode(value: JsonValue, depth: int) -> bytes:
        payload = to_bytes(value)
        return tag + encode_varint(len(payload)) + payload if payload or keeps_empty else b""

    return encode


def _fixed(field: FieldDescriptor, wire_type: int, to_bytes: Callable[[JsonValue], bytes]) -> _Encode:
    tag = _tag(field, wire_type)
    keeps_zero = field.has_presence or field.is_repeated
    zero = bytes(_SIZES[wire_type])

    def encode(value: JsonValue, depth: int) -> bytes:
        payload = to_bytes(value)
        return tag + payload if keeps_zero or payload != zero else b""

    return encode


def _text(value: JsonValue) -> bytes:
    if type(value) is not str:
        raise _Mismatch("a text", value)
    return value.encode()


def _bool(value: JsonValue) -> bytes:
    if type(value) is not bool:
        raise _Mismatch("true or false", value)
    return b"\x01" if value else b"\x00"


def _hex_bytes(value: JsonValue) -> bytes:
    try:
        return binascii.unhexlify(value)  # type: ignore[arg-type]  # anything but text raises TypeError
    except (TypeError, ValueError):
        return _INVALID_ID


def _base64_bytes(value: JsonValue) -> bytes:
    if type(value) is str:
        text = value.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except ValueError:
            pass
    raise _Mismatch("a base64 text", value)


def _double(value: JsonValue) -> bytes:
    if type(value) is float or type(value) is int:
        return _DOUBLE.pack(value)
    if type(value) is str and _NUMBER.fullmatch(value):
        return _DOUBLE.pack(float(value))
    raise _Mismatch("a number", value)


def _integer(bits: int, signed: bool, wire_type: int, *, is_enum: bool) -> Callable[[JsonValue], bytes]:
    expected = "an integer (names of enum values are not allowed)" if is_enum else "an integer"
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if wire_type == 0:
        pack: Callable[[int], bytes] = encode_varint
    else:
        pack = _FIXED64.pack if wire_type == 1 else _FIXED32.pack

    def to_bytes(value: JsonValue) -> bytes:
        if type(value) is str and not is_enum and _DECIMAL.fullmatch(value):  # as senders write 64 bits
            number: int | None = int(value)
        else:
            number = _whole_number(value)
        if number is None:
            raise _Mismatch(expected, value)
        if not low <= number < high:
            raise _Mismatch(f"an integer from {low} to {high - 1}", value)
        # A negative varint is encoded with 64 bits, whatever its type.
        return pack(number if number >= 0 else number + (1 << 64))

    return to_bytes


def _whole_number(value: JsonValue) -> int | None:
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else None


def _unchanged(value: JsonValue) -> JsonValue:
    return value


def _double_to_json(value: float) -> JsonValue:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _kind(value: JsonValue) -> str:
    """What a value is, without its content."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number"
    return "a text" if isinstance(value, str) else "an array" if isinstance(value, list) else "an object"


class _RequestCodec:
    """OTLP/JSON of one type of export request."""

    def __init__(self, message: type[Message]) -> None:
        self._message = message
        self._codec = _codec(cast(Descriptor, message.DESCRIPTOR), {})
        self._encode = self._codec.encoder(b"")

    def from_json(self, body: bytes) -> bytes:
        """The serialised request that `body` contains as OTLP/JSON.

        Unknown keys and nulls are omitted; the last of equal keys counts; keys in snake_case are accepted as
        well. An id that is not hex becomes an invalid id, so that only its span is rejected later. Half of a
        surrogate pair, as senders leave it that truncate texts, becomes U+FFFD.

        Raises:
            MalformedRequest: `body` is not JSON, is an object without a key of the protocol, or has a value
                that does not match its key; the message contains the path.
        """
        return self.from_object(parse_json(body))

    def from_object(self, document: JsonValue) -> bytes:
        """As `from_json`, for a parsed document."""
        encoders = self._codec.encoders
        if isinstance(document, dict) and document and encoders.keys().isdisjoint(document):
            raise MalformedRequest(
                f"The request is not valid OTLP/JSON: expected the key {next(iter(encoders))}, found others."
            )
        try:
            return self._encode(document, 0)
        except _Mismatch as mismatch:
            raise MalformedRequest(f"The request is not valid OTLP/JSON: {mismatch}.") from mismatch

    def to_json(self, body: bytes) -> bytes:
        """A serialised request as a line of OTLP/JSON, without unknown fields; raises `MalformedRequest`."""
        try:
            request = self._message.FromString(body)
        except DecodeError as error:
            name = self._message.DESCRIPTOR.name
            raise MalformedRequest(f"The request is not a valid {name}: {error}.") from error
        return orjson.dumps(self._codec.decode(request))


_TRACES, _LOGS = _RequestCodec(ExportTraceServiceRequest), _RequestCodec(ExportLogsServiceRequest)
json_to_request, object_to_request = _TRACES.from_json, _TRACES.from_object
request_to_json = _TRACES.to_json
logs_request_to_json = _LOGS.to_json


def logs_json_to_request(body: bytes) -> bytes:
    """As `json_to_request`, for log records; `HAS_INVALID_IDS` is at the end where an id is not hex."""
    return logs_object_to_request(parse_json(body))


def logs_object_to_request(document: JsonValue) -> bytes:
    """As `logs_json_to_request`, for a parsed document."""
    request = _LOGS.from_object(document)
    if any(invalid in request for invalid in _INVALID_RECORD_IDS):  # or what only looks so
        for of_resource in ExportLogsServiceRequest.FromString(request).resource_logs:
            for of_scope in of_resource.scope_logs:
                if any(_INVALID_ID in (one.trace_id, one.span_id) for one in of_scope.log_records):
                    return request + HAS_INVALID_IDS
    return request
