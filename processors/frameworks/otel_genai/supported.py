"""Frameworks and instrumentations that write the OpenTelemetry GenAI and MCP conventions: documentation."""

from collections.abc import Sequence

from processors.frameworks.framework import Framework

OTEL_GENAI_FRAMEWORKS: Sequence[Framework] = (
    Framework(
        name="OpenTelemetry GenAI conventions",
        versions="1.31 to 1.42 and the development releases after that",
        reads="`execute_tool`, `invoke_agent` and `invoke_workflow` operations; arguments and results from "
        "attributes, from one event for each message, or from the operation's details event",
        capture="`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`, for most instrumentations with the "
        "value `SPAN_ONLY` or `SPAN_AND_EVENT`",
        unknown="content that is sent as log records only",
    ),
    Framework(
        name="Vercel AI SDK 7",
        versions="7, `@ai-sdk/otel` 1",
        reads="`execute_tool` and `invoke_agent`; the agent's name is `gen_ai.agent.name`, which is the "
        "`functionId`; the `step` spans are neither",
        capture="nothing; `recordInputs: false` and `recordOutputs: false` leave content out",
        unknown="the session",
    ),
    Framework(
        name="Microsoft Agent Framework",
        versions="1",
        reads="`execute_tool` and `invoke_agent`, in workflows too; a handoff, which has no span, from what "
        "the agent's last model turn asked for; an agent without a name is called by the service's",
        capture="`enable_instrumentation(enable_sensitive_data=True)`",
        unknown="why a call failed, while sensitive data is off, and handoffs then; whether a tool returned "
        "nothing or an empty text; a workflow used as an agent",
    ),
    Framework(
        name="AutoGen",
        versions="0.7, its own spans",
        reads="`execute_tool` and `invoke_agent`: names, ids, order and errors",
        capture="nothing can be: use its OpenInference instrumentation for arguments and results",
        unknown="arguments and results; a team's run as a whole, which is split over several traces, and "
        "what its manager answered",
    ),
    Framework(
        name="OpenAI Agents SDK, OpenTelemetry packages",
        versions="`opentelemetry-instrumentation-openai-agents-v2` 0.1, "
        "`opentelemetry-instrumentation-genai-openai-agents` 1.3",
        reads="`execute_tool`, `invoke_agent` and handoffs; the placeholder name `OpenAI Agent` is no name; "
        "what a model answered, also where the SDK's objects were printed in place of their text",
        capture="v2: on by default, `OTEL_INSTRUMENTATION_OPENAI_AGENTS_CAPTURE_CONTENT` controls it; genai: "
        "`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`",
        unknown="call ids; an answer that is a tool's result (`stop_on_first_tool`); that a tool of an MCP "
        "server failed; with the genai package handoffs, input and answer, which its OpenAI client "
        "instrumentation adds",
    ),
    Framework(
        name="OpenLIT",
        versions="1",
        reads="`execute_tool` and `invoke_agent`, with `mcp.tool.*` and the older `gen_ai.tool.args`, "
        "`.input`, `.output` and `.result`; printed tool messages are opened; the nodes of a LangGraph "
        "graph and the guardrails of the OpenAI Agents SDK, which it reports as agents, are no runs; "
        "an agent with `gen_ai.agent.source` is a handoff; an Agno team is the agent above its members; the "
        "steps of a CrewAI flow, which it reports as agents without a name, are no runs",
        capture="`capture_message_content=True` of `openlit.init`, the default",
        unknown="LangChain agents that are nodes of a graph or run within a call, but for those with "
        "`agent` in "
        "their name; input and answer of streamed runs of the OpenAI Agents SDK; what a streamed run of Agno "
        "called, as its spans are traces of their own; with CrewAI the calls that a model asks for natively, "
        "for which only its instrumentation of the model's client tells, and the runs of coworkers; what a "
        "function under `@openlit.trace` is",
    ),
    Framework(
        name="OpenAI and Anthropic clients without a framework",
        versions="`opentelemetry-instrumentation-genai-openai` and `-genai-anthropic` 1.3; in the same way "
        "`opentelemetry-instrumentation-google-genai` 1.3, Traceloop's 0.62 for OpenAI, Anthropic, Bedrock, "
        "Gemini, Cohere and Ollama, and OpenInference's for OpenAI, Anthropic, Bedrock, Gemini, LiteLLM and "
        "Mistral",
        reads="calls and results from the messages of the model's spans; the local root around them is the "
        "run; a result without an id is that of the call that it follows",
        capture="`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY` with "
        "`OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental`; Traceloop's: nothing",
        unknown="without content that there were calls at all; whether a call failed, which only the text of "
        "its result tells; the results of the last calls of a run that was cut short; the calls that the "
        "Gemini client makes by itself, with Traceloop's",
    ),
    Framework(
        name="Mirascope",
        versions="2.8, `ops.instrument_llm()`",
        reads="calls and results from the messages of the model's spans; the function traced around them is "
        "the run, named by the service",
        capture="nothing",
        unknown="which traced functions are tools; whether a call failed, which only the text of its result "
        "tells; without a traced function around them, that turns belong to one run",
    ),
    Framework(
        name="LangChain, Azure AI tracer",
        versions="`langchain-azure-ai` 1",
        reads="`execute_tool` and `invoke_agent`; steps of a graph that it reports as agents are no runs; "
        "results "
        "out of its shortened tool messages; values also from the older `gen_ai.tool.input` and `.output`",
        capture="`enable_content_recording=True` of the tracer",
        unknown="agents that are nodes of a graph, for which it makes no span; whether an argument was a "
        "text "
        "that writes an object",
    ),
    Framework(
        name="LangChain, OpenTelemetry's own instrumentation",
        versions="`opentelemetry-instrumentation-genai-langchain` 1.3",
        reads="`execute_tool`, `invoke_agent` and `invoke_workflow`; steps that it takes for agents "
        "because of "
        "their names are no runs",
        capture="`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY` with "
        "`OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental`",
        unknown="that a tool of an MCP server failed; the name of a function that is a graph's entry point",
    ),
    Framework(
        name="Azure AI Foundry agents",
        versions="`azure-ai-projects` 2, `AIProjectInstrumentor`",
        reads="each request to a hosted agent is an `invoke_agent` span: those that bring the results of "
        "calls are one run with the request that asked for them, where one span of the application is around "
        "them",
        capture="`AZURE_EXPERIMENTAL_ENABLE_GENAI_TRACING=true` and "
        "`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`",
        unknown="whether a call failed, which only the text of its result tells; without content the names "
        "of calls; the run as a whole where no span is around its requests; all of what `azure-ai-agents` 1 "
        "tells of threads and their runs but that they were made",
    ),
    Framework(
        name="Amazon Bedrock AgentCore",
        versions="ADOT for Python 0.21, Strands and other frameworks on it",
        reads="whatever the framework in it writes: names, ids, order and errors",
        capture="leave `AGENT_OBSERVABILITY_ENABLED` off: it moves content off the spans into log records",
        unknown="arguments and results, while it is on",
    ),
    Framework(
        name="Model Context Protocol",
        versions="conventions of 1.39, FastMCP 4, MCP SDK 2",
        reads="`tools/call` spans of clients, SDKs and servers, which are one call with the agent's own "
        "tool span; discovery and listing are no calls; `tool_error` is a failure",
        capture="arguments and results come from the agent's tool span",
        unknown="who called a server whose caller is not in the trace: its span is left out",
    ),
)
