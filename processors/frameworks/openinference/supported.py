"""Frameworks that OpenInference instrumentors cover: documentation."""

from collections.abc import Sequence

from processors.frameworks.framework import Framework

_CAPTURE = "nothing; `OPENINFERENCE_HIDE_INPUTS` and `OPENINFERENCE_HIDE_OUTPUTS` leave content out"

OPENINFERENCE_FRAMEWORKS: Sequence[Framework] = (
    Framework(
        name="LangChain and LangGraph, OpenInference",
        versions="instrumentor 0.1 (Python), 4 (JavaScript)",
        reads="TOOL spans; the agent is the graph named by `lc_agent_name`, and a graph that is a node of "
        "another "
        "or runs within a call; one without a name is called by its node; an argument that was recorded "
        "without its name gets it from the model's message; nodes, functions and parts of chains with "
        "`agent` "
        "in their name are no agents",
        capture=_CAPTURE,
        unknown="the agent's name where the graph has none: the service's name stands in; without outputs, "
        "graphs "
        "in graphs that are themselves in one; in JavaScript "
        "without outputs, the agents that are nodes of a graph or run within a call; that the spans of an "
        "instrumentation of the model's client are of a run, where no span was current around it: each is "
        "then a trace of its own, and not graded",
    ),
    Framework(
        name="OpenAI Agents SDK, OpenInference",
        versions="instrumentor 2 (Python), 0.2 (JavaScript)",
        reads="TOOL and AGENT spans; a TOOL span without `tool.name` is a handoff; a model span without "
        "messages answers what its response says",
        capture=_CAPTURE,
        unknown="call ids, except from messages; an answer that is a tool's result (`stop_on_first_tool`); "
        "that a tool of an MCP server failed",
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
        "no call unless criteria name it; managed agents are among the tools, their runs lie under the "
        "agent's, and those that a model asked for are calls of category `agent`; the answer of a streamed "
        "run or a full result is taken out of its printed form",
        capture=_CAPTURE,
        unknown="call ids; the name of an agent that has none: its class stands in; in code agents the calls "
        "by which a managed agent was set to work; a failure that a tool server told in its text only",
    ),
    Framework(
        name="CrewAI",
        versions="instrumentor 1",
        reads="TOOL spans; agents from `graph.node.id`, the role; the tools that give work to a coworker "
        "are calls of agents",
        capture=_CAPTURE,
        unknown="the agent's tools; without `use_event_listener=True` the runs of coworkers that "
        "called nothing, without inputs those of all (what they called stands under the agent that asked "
        "them), runs started with `akickoff` or an agent's `kickoff_async`, and calls in text (ReAct) mode, "
        "of which no span tells: no call may then mean not instrumented",
    ),
    Framework(
        name="Agno",
        versions="instrumentor 1",
        reads="TOOL spans; agents and teams, members under their team; results may be Python's text of "
        "a value",
        capture=_CAPTURE,
        unknown="call ids, except from messages; the name of an agent that has none: the service's name "
        "stands in; whether the text `None` was a text",
    ),
    Framework(
        name="DSPy",
        versions="instrumentor 0.1",
        reads="TOOL spans, called as the function; each `ReAct.forward` is a run; `finish` is no call "
        "unless criteria name it; the answer is the output's fields without the trajectory",
        capture=_CAPTURE,
        unknown="the agent's name: the service's name stands in; call ids",
    ),
    Framework(
        name="BeeAI",
        versions="instrumentor 0.1",
        reads="TOOL and AGENT spans, with arguments out of `input`; spans that report an event are no agents",
        capture=_CAPTURE,
        unknown="call ids",
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
        name="Dapr Agents",
        versions="1.0, `DaprAgentsInstrumentor`",
        reads="`execute_tool` spans of the executor of tools, with arguments out of the record of its call; "
        "the spans around activities of the workflow are neither calls nor runs",
        capture="nothing",
        unknown="call ids, except from messages; tools that the workflow runs without the executor: agents "
        "that are used as tools, and those that need the workflow's context",
    ),
    Framework(
        name="UiPath",
        versions='`uipath-core` 0.5, `@traced(span_type="tool")`',
        reads="spans with `tool.name`; arguments as JSON or as Python writes them, results out of the "
        "`content` wrapper; the agent is named by the service",
        capture="nothing; `hide_input` and `hide_output` of the decorator leave values out",
        unknown="call ids: `tool.id` names the tool; agents within an agent: any other `span_type` is free "
        "text",
    ),
)
