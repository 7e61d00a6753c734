"""When a call or a value is an expected one, and what evaluators look at and report."""

from processors.comparison.alignment import (
    ExpectedCalls,
    OptionalCall,
    OptionalCalls,
    best_fitting_order,
    common_subsequence,
    common_subsequence_length,
    keys_of,
    lasting_alignment,
    mask_of,
    matching_size,
    maximum_matching,
    ordered_keys,
    parallel_segments,
)
from processors.comparison.call_constraints import CallConstraints, occurs
from processors.comparison.captured_value import (
    all_comparable_arguments,
    arguments_detail,
    call_label,
    comparable_arguments,
    comparable_result_text,
    comparable_result_value,
    detail_text,
    is_oversized,
    looks_failed,
    may_have_taken_effect,
    readable_arguments,
    took_effect,
    unknown_arguments,
    unknown_result,
    value_written_in,
)
from processors.comparison.constraint_events import event_name
from processors.comparison.constraint_terms import (
    CHOICES,
    COUNT,
    COUNTS,
    ENDS,
    RELATIONS,
    VALUES,
    CallConstraint,
    Finding,
    share_of,
)
from processors.comparison.event_target import (
    CallDecision,
    CallStatus,
    MessageEntry,
    OneTarget,
    Target,
    TargetEntry,
    target_of,
)
from processors.comparison.event_values import parse_comparison, parse_event_value
from processors.comparison.expected_value import (
    INPUT,
    KNOWN_MATCHERS,
    LITERAL,
    MATCHER_ARGUMENTS,
    ONE_OF,
    Expected,
    Matcher,
    alternatives,
    compile_expected,
    expected_value_problems,
    fits,
    fits_among,
    fits_members,
    input_path,
    is_matcher,
    matching_cost,
)
from processors.comparison.extractors import Extraction, ExtractorName, ExtractorSettings
from processors.comparison.json_paths import JsonPath, Place, leaves, parse_json_path, place_text
from processors.comparison.json_schema_check import (
    UnresolvedReferenceError,
    check_schema,
    schema_violations,
)
from processors.comparison.output import (
    MASKED_OUTPUT,
    WHOLE_OUTPUT,
    OutputConfig,
    OutputPath,
    OutputTarget,
    is_too_large,
    kind_of,
    known_output,
    output_detail,
    output_line,
    python_text,
    with_floats,
)
from processors.comparison.tool_selection import (
    ExpectedId,
    IncludeFailed,
    ToolCallConfig,
    ToolOrCallId,
    ToolPatterns,
    ToolSelectionConfig,
    argument_names,
    without_failed,
    without_invented,
)
from processors.comparison.value_equality import all_fit, equal_values, equality_key, known_equality

__all__ = [
    "CHOICES", "COUNT", "COUNTS", "ENDS", "INPUT", "KNOWN_MATCHERS", "LITERAL", "MASKED_OUTPUT",
    "MATCHER_ARGUMENTS", "ONE_OF", "RELATIONS", "VALUES", "WHOLE_OUTPUT", "CallConstraint", "CallConstraints",
    "CallDecision", "CallStatus", "Expected", "ExpectedCalls", "ExpectedId", "Extraction", "ExtractorName",
    "ExtractorSettings", "Finding", "IncludeFailed", "JsonPath", "Matcher", "MessageEntry", "OneTarget",
    "OptionalCall", "OptionalCalls", "OutputConfig", "OutputPath", "OutputTarget", "Place",
    "Target", "TargetEntry", "ToolCallConfig", "ToolOrCallId", "ToolPatterns",
    "ToolSelectionConfig", "UnresolvedReferenceError", "all_comparable_arguments", "all_fit", "alternatives",
    "argument_names", "arguments_detail", "best_fitting_order", "call_label", "check_schema",
    "common_subsequence", "common_subsequence_length", "comparable_arguments", "comparable_result_text",
    "comparable_result_value", "compile_expected", "detail_text", "equal_values", "equality_key",
    "event_name", "expected_value_problems", "fits", "fits_among", "fits_members", "input_path", "is_matcher",
    "is_oversized", "is_too_large", "keys_of", "kind_of", "known_equality", "known_output",
    "lasting_alignment", "leaves", "looks_failed", "mask_of", "matching_cost", "matching_size",
    "maximum_matching", "may_have_taken_effect", "occurs", "ordered_keys", "output_detail", "output_line",
    "parallel_segments", "parse_comparison", "parse_event_value", "parse_json_path", "place_text",
    "python_text", "readable_arguments", "schema_violations", "share_of", "target_of", "took_effect",
    "unknown_arguments", "unknown_result", "value_written_in", "with_floats", "without_failed",
    "without_invented",
]  # fmt: skip
