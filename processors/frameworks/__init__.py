"""What agent frameworks write into spans: a folder for each family, and the shapes that several share."""

from processors.frameworks.dialect import (
    NOTHING_AWAITED,
    AgentReading,
    AwaitedCall,
    Conversation,
    Dialect,
    PlannedDialect,
    ScopeDialect,
    SpanRole,
    ToolReading,
    UsageDialect,
)
from processors.frameworks.discovery import discover_dialects, discover_rewrites
from processors.frameworks.rewriting import (
    CarrierKind,
    Found,
    Rewrite,
    RunScope,
    Shape,
    SpanReading,
    Trace,
    decoded,
    merged_agents,
    merged_tool,
)
from processors.frameworks.shapes.attribute_reading import better, merged_error
from processors.frameworks.shapes.available_tools import merge_tools
from processors.frameworks.shapes.conversation_id import CONVERSATION_KEYS, conversation_id
from processors.frameworks.shapes.decisions import (
    INTERRUPTION_ERRORS,
    CallDecision,
    decision_in_place_of_result,
    interruption_of,
)
from processors.frameworks.shapes.dialect_mapping import DialectMapping
from processors.frameworks.shapes.late_mapping import LateMapping
from processors.frameworks.shapes.messages import (
    ANSWERED_CALL_MARKERS,
    PROVIDER_CALL_MARKERS,
    CallRequest,
    CallResponse,
    ChatMessage,
    after_results,
    is_call_id,
    last_content,
    last_text,
    result_ids,
    waits_for,
)
from processors.frameworks.shapes.model_usage import (
    NO_USAGE,
    USAGE_KEYS,
    UsageReading,
    merged_usage,
    usage_plan,
)
from processors.frameworks.shapes.placeholder_names import (
    AGENT_NAME_RESOURCE_ATTRIBUTES,
    FINAL_ANSWER_TOOL_NAMES,
    FINAL_ANSWER_TOOL_PREFIX,
    HANDOFF_TOOL_PREFIXES,
    MCP_NAME_SEPARATORS,
    SYNTHETIC_TOOL_NAMES,
    is_placeholder_agent,
)
from processors.frameworks.shapes.result_envelope import OpenedResult, open_result
from processors.frameworks.shapes.span_attributes import span_attributes
from processors.frameworks.shapes.transcript import in_turns

__all__ = [
    "AGENT_NAME_RESOURCE_ATTRIBUTES", "ANSWERED_CALL_MARKERS", "CONVERSATION_KEYS",
    "FINAL_ANSWER_TOOL_NAMES", "FINAL_ANSWER_TOOL_PREFIX", "HANDOFF_TOOL_PREFIXES", "INTERRUPTION_ERRORS",
    "MCP_NAME_SEPARATORS", "NOTHING_AWAITED", "NO_USAGE", "PROVIDER_CALL_MARKERS", "SYNTHETIC_TOOL_NAMES",
    "USAGE_KEYS", "AgentReading", "AwaitedCall", "CallDecision", "CallRequest", "CallResponse",
    "CarrierKind", "ChatMessage", "Conversation", "Dialect", "DialectMapping", "Found", "LateMapping",
    "OpenedResult", "PlannedDialect", "Rewrite", "RunScope", "ScopeDialect", "Shape", "SpanReading",
    "SpanRole", "ToolReading", "Trace", "UsageDialect", "UsageReading", "after_results", "better",
    "conversation_id", "decision_in_place_of_result", "decoded", "discover_dialects", "discover_rewrites",
    "in_turns", "interruption_of", "is_call_id", "is_placeholder_agent", "last_content", "last_text",
    "merge_tools", "merged_agents", "merged_error", "merged_tool", "merged_usage", "open_result",
    "result_ids", "span_attributes", "usage_plan", "waits_for",
]  # fmt: skip
