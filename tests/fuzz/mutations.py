"""How inputs are varied: bytes, texts by their tokens, and requests span by span."""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from processors.spans import LENGTH_DELIMITED, encode_varint, read_varint, skip_field

Mutate: TypeAlias = Callable[[bytes, Sequence[bytes], Random], bytes]
"""From an input, the corpus and a source of chance to another input."""

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
_TOKEN = re.compile(rb"[A-Za-z_][\w.-]*|-?\d[\d.eE+-]*|\"(?:[^\"\\]|\\.)*\"|\s+|.", re.DOTALL)
_WORDS = (
    b"null",
    b"true",
    b"-0",
    b"1e999",
    b"9" * 400,
    b"-1",
    b"0.1",
    b"NaN",
    b"Infinity",
    b"[]",
    b"{}",
    b'""',
    b"[" * 200,
    b'{"a":' * 150,
    b"\\ud800",
    b"\\u0000",
    b"\xff",
    b"\xc3\xa9",
    b"\xf0\x9f\x98\x80",
    b"$regex",
    b"$schema",
    b"$input",
    b"(a*)*b",
    b"&a [*a]",
    b"*a",
    b"<<",
    b"!!python/object:os",
    b"${env:HOME}",
    b"%TAG",
    b"---",
    b"\t",
    b"\r\n",
    b"'''",
    b"datetime.date(1, 1, 1)",
    b"<redacted>",
    b"__proto__",
    b"content",
    b"...",
    b"\xef\xbb\xbf",
    b"~",
    b"0x1F",
)
_VALUES: tuple[AnyValue, ...] = (
    AnyValue(),
    AnyValue(string_value=""),
    AnyValue(string_value="{"),
    AnyValue(string_value="[" * 300),
    AnyValue(string_value='[{"role": "assistant", "parts": [{"type": "tool_call", "id": 1, "name": null}]}]'),
    AnyValue(string_value='{"messages": [[{"lc": 1, "kwargs": {"content": [{}], "tool_calls": [1]}}]]}'),
    AnyValue(string_value="\ud7ff\U0010ffff\x00"),
    AnyValue(int_value=-(2**63)),
    AnyValue(int_value=2**63 - 1),
    AnyValue(double_value=float("nan")),
    AnyValue(double_value=float("inf")),
    AnyValue(bool_value=True),
    AnyValue(bytes_value=b"\xff\x00"),
    AnyValue(string_value="execute_tool"),
    AnyValue(string_value="invoke_agent"),
    AnyValue(string_value="chat"),
    AnyValue(string_value="TOOL"),
    AnyValue(string_value="AGENT"),
    AnyValue(string_value="LLM"),
)


def mutated_bytes(data: bytes, corpus: Sequence[bytes], chance: Random) -> bytes:
    """Some bytes are changed, cut, repeated, or taken from elsewhere."""
    out = bytearray(data)
    for _ in range(1 << chance.randrange(4)):
        at = chance.randrange(len(out) + 1)
        match chance.randrange(7):
            case 0 if at < len(out):
                out[at] ^= 1 << chance.randrange(8)
            case 1 if at < len(out):
                out[at] = chance.randrange(256)
            case 2:
                del out[at : at + chance.randrange(1, 16)]
            case 3:
                out[at:at] = chance.randbytes(chance.randrange(1, 8))
            case 4:
                out[at:at] = out[at : at + chance.randrange(1, 64)]
            case 5:
                number = chance.choice(_NUMBERS)
                out[at : at + 1] = (
                    encode_varint(number) if chance.random() < 0.5 else number.to_bytes(8, "little")
                )
            case _:
                other = chance.choice(corpus) if corpus else b""
                start = chance.randrange(len(other) + 1)
                out[at : at + chance.randrange(32)] = other[start : start + chance.randrange(64)]
    return bytes(out)


def mutated_text(data: bytes, corpus: Sequence[bytes], chance: Random) -> bytes:
    """Some tokens are dropped, repeated, exchanged, or replaced by awkward ones; sometimes any bytes."""
    if chance.random() < 0.15:
        return mutated_bytes(data, corpus, chance)
    tokens = _TOKEN.findall(data)
    for _ in range(1 << chance.randrange(3)):
        at = chance.randrange(len(tokens) + 1)
        match chance.randrange(5):
            case 0:
                del tokens[at : at + chance.randrange(1, 4)]
            case 1:
                tokens[at : at + 1] = [chance.choice(_WORDS)]
            case 2:
                others = _TOKEN.findall(chance.choice(corpus)) if corpus else []
                start = chance.randrange(len(others) + 1)
                tokens[at : at + chance.randrange(4)] = others[start : start + chance.randrange(1, 12)]
            case 3:
                tokens[at:at] = tokens[at : at + chance.randrange(1, 12)]
            case _ if len(tokens) > 1:
                one, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
                tokens[one], tokens[other] = tokens[other], tokens[one]
    return b"".join(tokens)


def mutated_spans(data: bytes, corpus: Sequence[bytes], chance: Random) -> bytes:
    """The request with other ids, times, attributes and spans; sometimes with any other bytes."""
    try:
        request = ExportTraceServiceRequest.FromString(data)
    except DecodeError:
        return mutated_bytes(data, corpus, chance)
    spans = _spans_of(request)
    if not spans or chance.random() < 0.05:
        return mutated_bytes(data, corpus, chance)
    for _ in range(1 << chance.randrange(4)):
        _change(chance.choice(spans), spans, corpus, chance)
    return request.SerializeToString()


def mutated_wire(data: bytes, corpus: Sequence[bytes], chance: Random) -> bytes:
    """A field of a message, however deep, is dropped, repeated, exchanged or varied; lengths stay right."""
    return (
        mutated_spans(data, corpus, chance)
        if chance.random() < 0.1
        else _mutated_message(data, corpus, chance)
    )


def _mutated_message(data: bytes, corpus: Sequence[bytes], chance: Random) -> bytes:
    found = _fields(data)
    if not found or chance.random() < 0.1:
        return mutated_bytes(data, corpus, chance)
    tag, start, value, stop = chance.choice(found)
    field = data[start:stop]
    if tag & 7 == LENGTH_DELIMITED and chance.random() < 0.8:
        inner = _mutated_message(data[value:stop], corpus, chance)
        field = encode_varint(tag) + encode_varint(len(inner)) + inner
    else:
        match chance.randrange(4):
            case 0:
                field = b""
            case 1:
                field = field * chance.choice((2, 3, 2000))
            case 2:
                field += chance.choice(_ODD_FIELDS)
            case _:
                field = encode_varint(chance.randrange(1 << chance.choice((4, 7, 8, 33)))) + field[1:]
    return data[:start] + field + data[stop:]


def _fields(data: bytes) -> list[tuple[int, int, int, int]]:
    """Each field: its tag, where it starts, where its value starts behind a length, where it ends.

    None where `data` is no message.
    """
    found = []
    stop = 0
    try:
        while stop < len(data):
            start = stop
            tag, value = read_varint(data, start)
            stop = skip_field(data, value, tag & 7)
            if tag & 7 == LENGTH_DELIMITED:
                value = read_varint(data, value)[1]
            found.append((tag, start, value, stop))
    except (IndexError, ValueError):
        return []
    return found if stop == len(data) else []


_ODD_FIELDS = (
    b"\x0b\x0c",
    b"\x0b\x0a\x00\x0c",
    b"\x0b" * 99 + b"\x0c" * 99,
    b"\x0c",
    b"\x00\x00",
    b"\x8a\x00\x00",
    b"\x12\x80\x00",
    b"\x1a\x01\xff",
    b"\x2a\x01\xff",
    b"\x0a\x03\xed\xa0\x80",
    b"\xfa\xff\xff\xff\x0f\x00",
    b"\xfa\xff\xff\xff\x7f\x00",
    b"\x78" + b"\xff" * 9 + b"\x01",
    b"\x78" + b"\xff" * 9 + b"\x7f",
    b"\x0f",
)


def _change(span: Span, spans: Sequence[Span], corpus: Sequence[bytes], chance: Random) -> None:
    other = chance.choice(spans)
    match chance.randrange(12):
        case 0:
            span.parent_span_id = other.span_id
        case 1:
            span.span_id = other.span_id
        case 2:
            span.start_time_unix_nano = chance.choice((*_NUMBERS, other.end_time_unix_nano))
        case 3:
            span.end_time_unix_nano = chance.choice((*_NUMBERS, other.start_time_unix_nano))
        case 4:
            span.name = other.name
        case 5:
            span.status.CopyFrom(
                Status(code=chance.choice((Status.STATUS_CODE_OK, Status.STATUS_CODE_ERROR)))
            )
        case 6:
            span.events.extend(list(other.events)[:4])
        case 7 if span.attributes:
            del span.attributes[chance.randrange(len(span.attributes))]
        case 8:
            span.attributes.extend(_foreign_attributes(corpus, chance))
        case 9 if span.attributes and other.attributes:
            chance.choice(span.attributes).value.CopyFrom(chance.choice(other.attributes).value)
        case 10 if span.attributes:
            chance.choice(span.attributes).value.CopyFrom(chance.choice(_VALUES))
        case _ if span.attributes:
            value = chance.choice(span.attributes).value
            text = mutated_text(value.string_value.encode(), corpus, chance)
            value.string_value = text.decode(errors="ignore")


def _foreign_attributes(corpus: Sequence[bytes], chance: Random) -> list[KeyValue]:
    """Attributes of a span of another request, mostly of another framework."""
    try:
        spans = _spans_of(ExportTraceServiceRequest.FromString(chance.choice(corpus)))
    except DecodeError:
        return []
    attributes = chance.choice(spans).attributes if spans else []
    return chance.sample(list(attributes), min(len(attributes), chance.randrange(1, 6)))


def _spans_of(request: ExportTraceServiceRequest) -> list[Span]:
    return [
        span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans
    ]
