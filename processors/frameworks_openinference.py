"""Frameworks that OpenInference instrumentors cover: documentation."""

from collections.abc import Sequence

from processors.framework import Framework

_CAPTURE = "nothing; `OPENINFERENCE_HIDE_INPUTS` and `OPENINFERENCE_HIDE_OUTPUTS` leave content out"

OPENINFERENCE_FRAMEWORKS: Sequence[Framework] = (
    Framework(
        name="LangChain and LangGraph, OpenInference",
        versions="instrumentor 0.1",
        reads="TOOL spans; the agent is the graph named by `lc_agent_name`; an argument that was recorded "
        "without its name gets it from the model's message; nodes with `agent` in their name are no agents",
        capture=_CAPTURE,
        unknown="the agent's name where the graph has none: the service's name stands in",
    ),
    Framework(
        name="OpenAI Agents SDK, OpenInference",
        versions="instrumentor 2",
        reads="TOOL and AGENT spans; a TOOL span without `tool.name` is a handoff",
        capture=_CAPTURE,
        unknown="call ids, except from messages",
    ),
    Framework(
        name="Google ADK, OpenInference",
        versions="instrumentor 1",
        reads="TOOL spans, with results out of their `response` envelope; agents from `agent_run [name]`",
        capture=_CAPTURE,
        unknown="nothing in particular",
    ),
    Framework(
        name="smolagents",
        versions="instrumentor 0.1",
        reads="TOOL spans; positional arguments get their names from the tool's schema; `final_answer` is "
        "no call unless criteria name it; managed agents are among the tools",
        capture=_CAPTURE,
        unknown="call ids; the name of an agent that has none",
    ),
    Framework(
        name="CrewAI",
        versions="instrumentor 1",
        reads="TOOL spans; agents from `graph.node.id`, the role",
        capture=_CAPTURE,
        unknown="the agent's tools; calls in text (ReAct) mode, of which no span tells: no call may "
        "then mean not instrumented",
    ),
    Framework(
        name="Agno",
        versions="instrumentor 1",
        reads="TOOL spans; results may be Python's text of a value",
        capture=_CAPTURE,
        unknown="call ids, except from messages",
    ),
    Framework(
        name="AutoGen AgentChat, OpenInference",
        versions="instrumentor 0.1",
        reads="its TOOL spans united with AutoGen's own spans, which tell of failures",
        capture=_CAPTURE,
        unknown="nothing in particular",
    ),
    Framework(
        name="LlamaIndex",
        versions="instrumentor 4",
        reads="TOOL spans, with arguments out of `kwargs` and results out of `raw_output`; a workflow's "
        "`.run` span is the run, its `.setup_agent` steps tell the agent's name; where agents hand over "
        "within a workflow, each stay of an agent is a run, with its results on the first step of the stay; "
        "a question and an answer that were cut off come from the model's messages",
        capture=_CAPTURE,
        unknown="with content left out, the agent's name and which agent made a call where agents hand over "
        "within one workflow: the service's name stands in; the thoughts around a ReAct agent's answer stay",
    ),
    Framework(
        name="Haystack, OpenInference",
        versions="instrumentor 0.1",
        reads="pipelines",
        capture=_CAPTURE,
        unknown="calls within an agent, of which no span tells",
    ),
    Framework(
        name="Claude Agent SDK, OpenInference",
        versions="instrumentor 0.1",
        reads="TOOL and AGENT spans; a sub-agent's run lies under the call that started it",
        capture=_CAPTURE,
        unknown="nothing in particular",
    ),
    Framework(
        name="UiPath",
        versions='`uipath-core` 0.5, `@traced(span_type="tool")`',
        reads="spans with `tool.name`; arguments as JSON or as Python writes them, results out of the "
        "`content` wrapper; the agent is named by the service",
        capture="nothing; `hide_input` and `hide_output` of the decorator leave values out",
        unknown="call ids: `tool.id` names the tool",
    ),
)
