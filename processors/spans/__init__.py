"""OTLP spans as they were received: bytes, decoded views over them, and their tree."""

from processors.spans.attributes import (
    Attributes,
    AttributeValue,
    encoded_text,
    short_text,
    text_in,
)
from processors.spans.envelope import Envelope
from processors.spans.log_record import LogRecord
from processors.spans.minimum_tree import MinimumTree
from processors.spans.native import NATIVE, NATIVE_REASON, contains_any
from processors.spans.partial_messages import parse_log_record, parse_span
from processors.spans.protobuf_wire import (
    END_GROUP,
    LENGTH_DELIMITED,
    START_GROUP,
    encode_field,
    encode_varint,
    read_varint,
    skip_field,
)
from processors.spans.small_bytes_cache import cached_for_small
from processors.spans.span import (
    KIND_CLIENT,
    KIND_CONSUMER,
    KIND_PRODUCER,
    KIND_SERVER,
    STATUS_ERROR,
    RawRecord,
    RawSpan,
    Span,
)
from processors.spans.span_head import parent_is_remote, read_span_head
from processors.spans.span_tree import SpanTree

__all__ = [
    "END_GROUP", "KIND_CLIENT", "KIND_CONSUMER", "KIND_PRODUCER", "KIND_SERVER", "LENGTH_DELIMITED", "NATIVE",
    "NATIVE_REASON", "START_GROUP", "STATUS_ERROR", "AttributeValue", "Attributes", "Envelope", "LogRecord",
    "MinimumTree", "RawRecord", "RawSpan", "Span", "SpanTree", "cached_for_small", "contains_any",
    "encode_field", "encode_varint", "encoded_text", "parent_is_remote", "parse_log_record", "parse_span",
    "read_span_head", "read_varint", "short_text", "skip_field", "text_in",
]  # fmt: skip
