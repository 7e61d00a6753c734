"""Names that instrumentations write where they know none, and tools that are no real calls.

All of these are bound to versions of the frameworks that write them. They are data, so that a new one is one
line.
"""

import re

from processors.model import CallCategory
from processors.spans import Span

PLACEHOLDER_AGENT_NAMES: frozenset[str] = frozenset(
    {
        "", "agent", "agentexecutor", "agentrunner.run", "agentrunner.run_streamed",
        "azureaiopentelemetrytracer", "bedrock_agent.invoke_agent",
        "bedrock_agent.invoke_inline_agent", "claudeagentsdk.claudesdkclient.receive_response",
        "claudeagentsdk.query", "default", "haystack_pipeline", "langgraph", "none", "null", "openai agent",
        "pipeline", "undefined", "unknown", "unnamed", "unnamed agent", "unnamedagent", "<unknown>",
    }
)  # fmt: skip
"""Agent names that name no agent, in lower case."""

AGENT_NAME_OF_TURN = "gen_ai.agent.name"
"""The attribute of a model's span that names the agent for which the model answered."""

AGENT_NAME_RESOURCE_ATTRIBUTES: tuple[str, ...] = ("gen_ai.agent.name", "service.name")
"""Resource attributes that name the agent where no span does, in this order."""

GENERIC_CHAIN_NAMES: frozenset[str] = frozenset(
    {
        "AgentExecutor", "Agent workflow", "CompiledStateGraph", "LangGraph", "RunnableSequence", "chain",
        "graph", "main", "root",
    }
)  # fmt: skip
"""Names of graphs and chains without one of their own."""

MISTRAL_SCOPE = "mistralai_sdk_tracer"
"""Mistral's SDK: each request of a conversation that the service holds is an `invoke_agent` span."""

HOOK_KEYS: tuple[str, ...] = ("hook_event", "hook_event_name", "hook_name", "hook.event", "hook.name")
"""Attributes of the spans of hooks, which run before and after a call and name its tool."""

SPANS_AROUND_CALLS: tuple[str, ...] = (".hook", ".blocked_on_user")
"""How the names of such spans end, and those of permission prompts."""

BOGUS_CALL_IDS: frozenset[str] = frozenset(
    {"", "<not specified>", "null", "none", "None", "undefined", "unknown"}
)
"""Call ids that identify no call."""

SYNTHETIC_TOOL_NAMES: frozenset[str] = frozenset({"(merged tools)", "mcp_list_tools"})
"""Tools that no model called: an instrumentation's own, or what a framework itself requests of a server."""

FINAL_ANSWER_TOOL_NAMES: frozenset[str] = frozenset(
    {
        "final_answer", "FinalAnswerTool", "final_result", "finish.__call__", "set_model_response",
        "strands_structured_output",
    }
)  # fmt: skip
"""Tools through which a framework lets the model give its answer."""

FINAL_ANSWER_DESCRIPTIONS: tuple[str, ...] = (
    "IMPORTANT: This StructuredOutputTool should only be invoked as the last and final tool ",
)
"""How such tools are described where the application's own type names them."""

DATA_ANNOUNCEMENTS: tuple[str, ...] = ("Returning structured response: ",)
"""How a framework's own last message begins where the model gave its answer through such a tool."""

FINAL_ANSWER_TOOL_PREFIX: str = "final_result_"
"""How such tools begin where there is one for each kind of answer."""

HANDOFF_TOOL_PREFIXES: tuple[str, ...] = ("transfer_to_", "handoff to ", "handoff_to_")
"""How tools begin that pass the conversation on to another agent."""

UNKNOWN_HANDOFF_TARGET: str = " → unknown"
"""How the name of a handoff's span ends that was begun before the agent that takes over was known."""

HANDOFF_TOOL_NAMES: frozenset[str] = frozenset({"handoff"})
"""Whole names of such tools."""

TOOL_CLASSES: frozenset[str] = frozenset({"DynamicStructuredTool", "DynamicTool", "StructuredTool", "Tool"})
"""Classes of tools, after which spans are named where the tool's own name is not looked at."""

DELEGATION_TOOL_NAMES: frozenset[str] = frozenset(
    {
        "Ask question to coworker", "Delegate work to coworker", "ask_question_to_coworker",
        "delegate_task_to_member", "delegate_task_to_members", "delegate_work_to_coworker",
        "forward_task_to_member", "transfer_task_to_member",
    }
)  # fmt: skip
"""Tools with which an agent gives work to another one and gets its answer."""

AGENT_TOOL_TYPES: frozenset[str] = frozenset({"AgentTool", "agent"})
"""Values of a tool's type that mean an agent used as a tool."""

RETRIEVAL_TOOL_TYPES: frozenset[str] = frozenset({"datastore", "retriever"})
"""Values of a tool's type that mean a look-up in stored documents."""

MCP_NAME_SEPARATORS: tuple[str, ...] = ("__", ".", "/", ":")
"""What separates the name of an MCP server from the name of a tool in a combined name."""


GENERATED_AGENT_NAME = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:[0-9a-f]{16}){1,2}|"
    r"agent_(?=[a-z]*[A-Z])[A-Za-z]{16}"
)
"""Random names that frameworks give to agents without one: an id, or letters."""
_SHORTEST_GENERATED = 16


def name_of_chain(name: str) -> str:
    """`name`, or nothing where it is that of a chain without a name of its own."""
    return "" if name in GENERIC_CHAIN_NAMES else name


def handoff_or_function(name: str) -> CallCategory:
    """The category of a call of the tool `name`, which may pass the conversation on to another agent."""
    is_handoff = name in HANDOFF_TOOL_NAMES or name.startswith(HANDOFF_TOOL_PREFIXES)
    return CallCategory.HANDOFF if is_handoff else CallCategory.FUNCTION


def transfer_or_function(name: str) -> CallCategory:
    """The same for emitters where a tool that is called just `handoff` is any tool."""
    return CallCategory.HANDOFF if name.startswith(HANDOFF_TOOL_PREFIXES) else CallCategory.FUNCTION


def category_by_name(name: str) -> CallCategory:
    """The category of a call of the tool `name`, as far as the name alone shows it."""
    if name.startswith(HANDOFF_TOOL_PREFIXES):
        return CallCategory.HANDOFF
    if name in FINAL_ANSWER_TOOL_NAMES:
        return CallCategory.FINAL_ANSWER
    return CallCategory.AGENT if name in DELEGATION_TOOL_NAMES else CallCategory.FUNCTION


def is_around_call(span: Span) -> bool:
    """Whether a span that names a tool is that of a hook or of a permission prompt, which reports no call."""
    return any(key in span.attributes for key in HOOK_KEYS) or span.name.endswith(SPANS_AROUND_CALLS)


def is_placeholder_agent(name: str) -> bool:
    """Whether `name` is what an instrumentation writes for an agent whose name it does not know."""
    if name.strip().lower() in PLACEHOLDER_AGENT_NAMES:
        return True
    return len(name) >= _SHORTEST_GENERATED and GENERATED_AGENT_NAME.fullmatch(name) is not None
