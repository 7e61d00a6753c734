"""From the spans of a trace to the agent runs in it."""

from processors.reconstruction.agents_without_rebuilding import reported_agents
from processors.reconstruction.beginnings import OpenRun, open_runs
from processors.reconstruction.passes import Scopes, reconstruct, span_reader
from processors.reconstruction.runs import release_spans
from processors.reconstruction.settled import settled_scopes
from processors.reconstruction.trace_explanation import SpanExplanation, explain_trace

__all__ = [
    "OpenRun", "Scopes", "SpanExplanation", "explain_trace", "open_runs", "reconstruct", "release_spans",
    "reported_agents", "settled_scopes", "span_reader",
]  # fmt: skip
