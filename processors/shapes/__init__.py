"""What carriers and frameworks share: dialects, and the shapes of messages, results and usage."""

from processors.shapes.attribute_reading import (
    CONVERSATION_KEYS,
    better,
    conversation_id,
    merged_error,
    span_attributes,
)
from processors.shapes.available_tools import merge_tools
from processors.shapes.content_records import ContentRecords, ContentSpans
from processors.shapes.decisions import (
    INTERRUPTION_ERRORS,
    CallDecision,
    decision_at,
    decision_in_place_of_result,
    interruption_of,
)
from processors.shapes.dialect import (
    NOTHING_AWAITED,
    AgentReading,
    AwaitedCall,
    Conversation,
    Dialect,
    SpanRole,
    ToolReading,
)
from processors.shapes.dialect_mapping import DialectMapping
from processors.shapes.known_names import (
    AGENT_NAME_RESOURCE_ATTRIBUTES,
    FINAL_ANSWER_TOOL_NAMES,
    FINAL_ANSWER_TOOL_PREFIX,
    HANDOFF_TOOL_PREFIXES,
    MCP_NAME_SEPARATORS,
    SYNTHETIC_TOOL_NAMES,
    is_placeholder_agent,
)
from processors.shapes.messages import (
    PROVIDER_CALL_MARKERS,
    CallRequest,
    CallResponse,
    ChatMessage,
    after_results,
    in_turns,
    is_call_id,
    last_content,
    last_text,
    result_ids,
    waits_for,
)
from processors.shapes.model_usage import NO_USAGE, USAGE_KEYS, UsageReading, merged_usage, usage_plan
from processors.shapes.reported_runs import ReportedRun, derived_id, spans_of
from processors.shapes.result_envelope import OpenedResult, open_result
from processors.shapes.rewriting import (
    CarrierKind,
    Outline,
    Rewrite,
    RewriteStage,
    RunScope,
    Shape,
    SpanReading,
    Trace,
    decoded,
    merged_agents,
    merged_tool,
)

__all__ = [
    "AGENT_NAME_RESOURCE_ATTRIBUTES", "ANSWERED_CALL_MARKERS", "CONVERSATION_KEYS",
    "FINAL_ANSWER_TOOL_NAMES", "FINAL_ANSWER_TOOL_PREFIX", "HANDOFF_TOOL_PREFIXES",
    "INTERRUPTION_ERRORS", "MCP_NAME_SEPARATORS", "NOTHING_AWAITED", "NO_USAGE",
    "PROVIDER_CALL_MARKERS", "SYNTHETIC_TOOL_NAMES", "USAGE_KEYS", "AgentReading", "AwaitedCall",
    "CallDecision", "CallRequest", "CallResponse", "CarrierKind", "ChatMessage", "ContentRecords",
    "ContentSpans", "Conversation", "Dialect", "DialectMapping", "OpenedResult", "Outline", "ReportedRun",
    "Rewrite",    "RewriteStage", "RunScope", "Shape", "SpanReading", "SpanRole", "ToolReading", "Trace",
    "UsageReading", "after_results", "better", "conversation_id", "decision_at",
    "decision_in_place_of_result",
    "decoded", "derived_id", "in_turns", "interruption_of", "is_call_id", "is_placeholder_agent",
    "last_content", "last_text", "merge_tools", "merged_agents", "merged_error", "merged_tool",
    "merged_usage", "open_result", "result_ids", "span_attributes", "spans_of", "usage_plan",
    "waits_for",
]  # fmt: skip
