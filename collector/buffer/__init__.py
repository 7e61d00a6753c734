"""Traces that are not finished yet, and when they are."""

from collector.buffer.finish_policy import GroupByTraceConfig
from collector.buffer.trace_buffer import TraceBuffer, settled_spans

__all__ = ["GroupByTraceConfig", "TraceBuffer", "settled_spans"]
