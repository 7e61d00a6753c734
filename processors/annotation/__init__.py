"""The forms in which a verdict leaves: span event, log record, span, annotation, line of a runs file."""

from processors.annotation.content_rules import REDACTED_TEXT, ContentRules
from processors.annotation.evaluation_span import evaluation_spans
from processors.annotation.log_record import count_result_records, early_failure_record, result_records
from processors.annotation.result_attributes import EVENT_NAME
from processors.annotation.run_form import run_line_schema
from processors.annotation.run_line import format_run, run_to_json
from processors.annotation.run_reader import graded_run_from_json, run_from_json
from processors.annotation.span_event import append_results, count_results

__all__ = [
    "EVENT_NAME", "REDACTED_TEXT", "ContentRules", "append_results", "count_result_records", "count_results",
    "early_failure_record", "evaluation_spans", "format_run", "graded_run_from_json", "result_records",
    "run_from_json", "run_line_schema", "run_to_json",
]  # fmt: skip
