"""What everything else speaks of: runs, calls, values, results, and the contract of an evaluator."""

from processors.model.agent_run import (
    EVALUATED_CATEGORIES,
    AgentIdentity,
    AgentRun,
    CallCategory,
    Conversation,
    Decision,
    IncompleteReason,
    LocalRoot,
    Message,
    ToolCall,
    ToolError,
    ValueState,
    inserted,
)
from processors.model.conversation import (
    RunReference,
    RunsView,
    WholeTrace,
    over_conversation,
    over_trace,
    reference_of,
)
from processors.model.evaluation_error import EvaluationError
from processors.model.evaluation_result import (
    EvaluationResult,
    NotEvaluated,
    NotEvaluatedReason,
    Outcome,
    Scope,
    Score,
    Severity,
    SkipReason,
    Stage,
)
from processors.model.evaluator import Evaluator, RunFacts, can_grade
from processors.model.finish_reason import CUT_SHORT, FinishReason
from processors.model.forms import decode_value, encode_value, plain_value
from processors.model.graded_run import GradedRun
from processors.model.json_values import JsonObject, JsonValue, decode_json, encode_json
from processors.model.late_values import LateMapping, LateObject, late
from processors.model.limits import (
    MAX_ASSIGNMENT_ATTEMPTS,
    MAX_COMPARED_LINES,
    MAX_DETAIL_CHARACTERS,
    MAX_EDIT_STEPS,
    MAX_EXPLANATION_CHARACTERS,
    MAX_MATCHED_CHARACTERS,
    MAX_ORDERED_CALLS,
    MAX_OUTPUT_CHARACTERS,
    MAX_OUTPUT_VALUES,
    MAX_REORDERING_STEPS,
    MAX_SEARCH_STEPS,
    MAX_SEARCHED_CHARACTERS,
    OverLimitError,
)
from processors.model.masks import (
    REDACTION_MARKERS,
    contains_mask,
    contains_text,
    has_mask,
    has_masked_key,
    is_digest,
    is_mask,
    known_parts,
    mask_places,
    may_be_masked,
    may_equal,
    same_text,
)
from processors.model.model_usage import (
    ModelCall,
    ModelPrice,
    PriceTable,
    TokenUsage,
    name_pattern,
    seconds_between,
    sum_of_usage,
)
from processors.model.python_literal import parse_python_literal
from processors.model.tool_name import ToolKeys, canonical_tool_name, canonical_tool_names
from processors.model.unix_time import time_text, unix_nano_of
from processors.model.value_types import value_type
from processors.model.values import (
    ABSENT,
    MAX_DEPTH,
    MAX_TEXT_LENGTH,
    DecodedValue,
    decode_arguments,
    decode_result,
    is_broken_data,
    json_text,
    json_value,
    parse_json,
    parse_text,
    plain_object,
    text_value,
    value_of,
)

__all__ = [
    "ABSENT", "CUT_SHORT", "EVALUATED_CATEGORIES", "MAX_ASSIGNMENT_ATTEMPTS", "MAX_COMPARED_LINES",
    "MAX_DEPTH", "MAX_DETAIL_CHARACTERS", "MAX_EDIT_STEPS", "MAX_EXPLANATION_CHARACTERS",
    "MAX_MATCHED_CHARACTERS", "MAX_ORDERED_CALLS", "MAX_OUTPUT_CHARACTERS", "MAX_OUTPUT_VALUES",
    "MAX_REORDERING_STEPS", "MAX_SEARCHED_CHARACTERS", "MAX_SEARCH_STEPS", "MAX_TEXT_LENGTH",
    "REDACTION_MARKERS", "AgentIdentity", "AgentRun", "CallCategory", "Conversation", "Decision",
    "DecodedValue", "EvaluationError", "EvaluationResult", "Evaluator", "FinishReason", "GradedRun",
    "IncompleteReason", "JsonObject", "JsonValue", "LateMapping", "LateObject", "LocalRoot", "Message",
    "ModelCall", "ModelPrice", "NotEvaluated", "NotEvaluatedReason", "Outcome", "OverLimitError",
    "PriceTable", "RunFacts", "RunReference", "RunsView", "Scope", "Score", "Severity", "SkipReason", "Stage",
    "TokenUsage", "ToolCall", "ToolError", "ToolKeys", "ValueState", "WholeTrace", "can_grade",
    "canonical_tool_name", "canonical_tool_names", "contains_mask", "contains_text", "decode_arguments",
    "decode_json", "decode_result", "decode_value", "encode_json", "encode_value", "has_mask",
    "has_masked_key", "inserted", "is_broken_data", "is_digest", "is_mask", "json_text", "json_value",
    "known_parts", "late", "mask_places", "may_be_masked", "may_equal", "name_pattern", "over_conversation",
    "over_trace", "parse_json", "parse_python_literal", "parse_text", "plain_object", "plain_value",
    "reference_of", "same_text", "seconds_between", "sum_of_usage", "text_value", "time_text", "unix_nano_of",
    "value_of", "value_type",
]  # fmt: skip
