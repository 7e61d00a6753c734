"""Names that instrumentations write where they know none, and tools that are no real calls.

All of these are bound to versions of the frameworks that write them. They stand here as data, so that a
new one is one line.
"""

import re

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
"""The attribute with which a model's span tells for which agent the model answered."""

AGENT_NAME_RESOURCE_ATTRIBUTES: tuple[str, ...] = ("gen_ai.agent.name", "service.name")
"""Resource attributes that name the agent where no span does, in this order."""

GENERIC_CHAIN_NAMES: frozenset[str] = frozenset(
    {
        "AgentExecutor", "Agent workflow", "CompiledStateGraph", "LangGraph", "RunnableSequence", "chain",
        "graph", "main", "root",
    }
)  # fmt: skip
"""Names of graphs and chains that nobody gave a name."""

CHAIN_PART_NAMES: frozenset[str] = frozenset({"Prompt"})
CHAIN_PART_PREFIXES: tuple[str, ...] = ("Runnable",)
CHAIN_PART_SUFFIXES: tuple[str, ...] = ("OutputParser", "PromptTemplate", "ToolsParser")
"""What the classes are called that chains are put together from; they are no agents, whatever they hold."""

GRAPH_STEP_NAMES: frozenset[str] = frozenset(
    {"agent", "call_agent", "call_model", "route_to_active_agent", "should_continue", "tools_condition"}
)
"""Steps of ready-made graphs that an instrumentation takes for agents."""

GRAPH_AGENT_CALLER = "call_agent"
"""The step that runs the agent after which its node is named."""

GRAPH_SCOPES: frozenset[str] = frozenset(
    {"openlit.instrumentation.langchain", "opentelemetry.instrumentation.genai.langchain"}
)
"""Scopes of the instrumentations that do so."""

UNNAMED_GRAPHS: frozenset[str] = frozenset({"LangGraph"})
"""Names of graphs that nobody gave a name."""

GRAPH_TOOL_NODES: frozenset[str] = frozenset({"tools"})
"""Names of the nodes that execute calls; a graph without a name is not called by theirs."""

GRAPH_NODE = "langgraph_node"
GRAPH_PLACE = "langgraph_checkpoint_ns"
GRAPH_PLACE_AROUND = "checkpoint_ns"
GRAPH_TRIGGERS = "langgraph_triggers"
GRAPH_AGENT = "lc_agent_name"
"""What the metadata of a graph's spans tell: the node, its place, the place of the graph it is in, what set
the node off, and the agent."""

GRAPH_START = "__start__"
"""What sets off the first step; alone it does so only for a function that is a graph's entry point."""

AGENT_WORKFLOW_SPANS: frozenset[str] = frozenset(
    {"AgentWorkflow.run", "CodeActAgent.run", "FunctionAgent.run", "ReAct.forward", "ReActAgent.run"}
)
"""Names of chains that are an agent's run as a workflow of steps."""

INTERRUPTION_ERRORS: tuple[str, ...] = ("GraphInterrupt",)
"""Exceptions by which a tool stops its run until somebody answers; they are recorded, and no errors."""

AGENT_RUNNER_SPANS: frozenset[str] = frozenset({"AgentRunner.run", "AgentRunner.run_streamed"})
"""Names of spans that run agents and are none."""

BOGUS_CALL_IDS: frozenset[str] = frozenset(
    {"", "<not specified>", "null", "none", "None", "undefined", "unknown"}
)
"""Call ids that identify no call."""

SYNTHETIC_TOOL_NAMES: frozenset[str] = frozenset({"(merged tools)", "mcp_list_tools"})
"""Tools that no model called: what an instrumentation makes up, or what a framework itself asks a server."""

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
"""Tools with which frameworks let an agent give work to another one and get its answer."""

AGENT_TOOL_TYPES: frozenset[str] = frozenset({"AgentTool", "agent"})
"""Values of a tool's type that mean an agent used as a tool."""

MODEL_CALLBACK_KEY: str = "litellm.call_id"
MODEL_CALLBACK_SCOPE: str = "litellm"
MODEL_CALLBACK_SPAN: str = "litellm_request"
"""What a callback puts on every span it writes model calls on, and which of these are its own."""

RETRIEVAL_TOOL_TYPES: frozenset[str] = frozenset({"datastore", "retriever"})
"""Values of a tool's type that mean a look-up in stored documents."""

MCP_NAME_SEPARATORS: tuple[str, ...] = ("__", ".", "/", ":")
"""What stands between the name of an MCP server and the name of a tool in a combined name."""


MADE_UP_AGENT_NAME = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:[0-9a-f]{16}){1,2}|"
    r"agent_(?=[a-z]*[A-Z])[A-Za-z]{16}"
)
"""Names that frameworks draw anew for every agent that was given none: an id, or random letters."""


def is_placeholder_agent(name: str) -> bool:
    """Whether `name` is what an instrumentation writes for an agent whose name it does not know."""
    return name.strip().lower() in PLACEHOLDER_AGENT_NAMES or MADE_UP_AGENT_NAME.fullmatch(name) is not None
