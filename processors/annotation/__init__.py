"""The forms in which a verdict leaves: span event, log record, span, annotation, line of a runs file."""

from processors.annotation.content_rules import REDACTED_TEXT, ContentRules
from processors.annotation.evaluation_span import evaluation_spans
from processors.annotation.log_record import result_records
from processors.annotation.run_line import (
    format_run,
    incomplete_reason_of,
    is_complete_by_default,
    run_to_json,
)
from processors.annotation.run_schema import (
    AGENT_KEYS,
    CALL_KEYS,
    ERROR_KEYS,
    KNOWN_VERSIONS,
    MESSAGE_KEYS,
    MODEL_CALL_KEYS,
    REQUESTED_CALL_KEYS,
    RUN_KEYS,
    USAGE_KEYS,
    run_line_schema,
)
from processors.annotation.span_event import append_results, count_results

__all__ = [
    "AGENT_KEYS", "CALL_KEYS", "ERROR_KEYS", "KNOWN_VERSIONS", "MESSAGE_KEYS", "MODEL_CALL_KEYS",
    "REDACTED_TEXT", "REQUESTED_CALL_KEYS", "RUN_KEYS", "USAGE_KEYS", "ContentRules", "append_results",
    "count_results", "evaluation_spans", "format_run", "incomplete_reason_of", "is_complete_by_default",
    "result_records", "run_line_schema", "run_to_json",
]  # fmt: skip
