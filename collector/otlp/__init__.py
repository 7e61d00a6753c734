"""OTLP itself: splitting and joining requests, JSON, compression, status codes."""

from collector.otlp.codec import (
    EnvelopeRegistry,
    SplitRecords,
    SplitRequest,
    count_records,
    join_spans,
    records_by_trace,
    split_records,
    split_request,
)
from collector.otlp.compression import GZIP_MAGIC, gzip_compress, gzip_decompress, zlib_decompress
from collector.otlp.json_codec import (
    json_to_request,
    logs_json_to_request,
    logs_object_to_request,
    logs_request_to_json,
    object_to_request,
    parse_json,
    request_to_json,
)
from collector.otlp.json_process import json_to_request_in_process
from collector.otlp.status import (
    ErrorStatus,
    error_status,
    foreign_site,
    method_not_allowed,
    no_such_path,
    no_such_service,
)

__all__ = [
    "GZIP_MAGIC", "EnvelopeRegistry", "ErrorStatus", "SplitRecords", "SplitRequest", "count_records",
    "error_status", "foreign_site", "gzip_compress", "gzip_decompress", "join_spans", "json_to_request",
    "json_to_request_in_process", "logs_json_to_request", "logs_object_to_request", "logs_request_to_json",
    "method_not_allowed", "no_such_path", "no_such_service", "object_to_request", "parse_json",
    "records_by_trace", "request_to_json", "split_records", "split_request", "zlib_decompress",
]  # fmt: skip
