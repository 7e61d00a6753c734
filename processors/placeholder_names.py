"""Names that instrumentations write where they know none, and tools that are no real calls.

All of these are bound to versions of the frameworks that write them. They stand here as data, so that a
new one is one line.
"""

PLACEHOLDER_AGENT_NAMES: frozenset[str] = frozenset(
    {
        "", "agent", "default", "langgraph", "none", "null", "openai agent", "undefined", "unknown",
        "unnamed", "<unknown>",
    }
)  # fmt: skip
"""Agent names that name no agent, in lower case."""

AGENT_NAME_RESOURCE_ATTRIBUTES: tuple[str, ...] = ("gen_ai.agent.name", "service.name")
"""Resource attributes that name the agent where no span does, in this order."""

GENERIC_CHAIN_NAMES: frozenset[str] = frozenset(
    {"AgentExecutor", "Agent workflow", "LangGraph", "RunnableSequence", "chain", "graph", "main", "root"}
)
"""Names of graphs and chains that nobody gave a name."""

AGENT_WORKFLOW_SPANS: frozenset[str] = frozenset(
    {"AgentWorkflow.run", "CodeActAgent.run", "FunctionAgent.run", "ReActAgent.run"}
)
"""Names of chains that are an agent's run as a workflow of steps."""

BOGUS_CALL_IDS: frozenset[str] = frozenset(
    {"", "<not specified>", "null", "none", "None", "undefined", "unknown"}
)
"""Call ids that identify no call."""

SYNTHETIC_TOOL_NAMES: frozenset[str] = frozenset({"(merged tools)"})
"""Tools that no model called: spans an instrumentation makes up."""

FINAL_ANSWER_TOOL_NAMES: frozenset[str] = frozenset({"final_answer", "FinalAnswerTool", "final_result"})
"""Tools through which a framework lets the model give its answer."""

HANDOFF_TOOL_PREFIXES: tuple[str, ...] = ("transfer_to_", "handoff to ", "handoff_to_")
"""How tools begin that pass the conversation on to another agent."""

HANDOFF_TOOL_NAMES: frozenset[str] = frozenset({"handoff"})
"""Whole names of such tools."""

AGENT_TOOL_TYPES: frozenset[str] = frozenset({"AgentTool", "agent"})
"""Values of a tool's type that mean an agent used as a tool."""

RETRIEVAL_TOOL_TYPES: frozenset[str] = frozenset({"datastore", "retriever"})
"""Values of a tool's type that mean a look-up in stored documents."""

MCP_NAME_SEPARATORS: tuple[str, ...] = ("__", ".", "/", ":")
"""What stands between the name of an MCP server and the name of a tool in a combined name."""


def is_placeholder_agent(name: str) -> bool:
    """Whether `name` is what an instrumentation writes for an agent whose name it does not know."""
    return name.strip().lower() in PLACEHOLDER_AGENT_NAMES
