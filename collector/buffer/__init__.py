"""Traces that are not finished yet, and when they are."""

from collector.buffer.finish_clock import ReadPosition, RecordClock
from collector.buffer.finish_policy import GroupByTraceConfig
from collector.buffer.finished_traces import FinishedTraces
from collector.buffer.learned_waits import LearnedWaits
from collector.buffer.trace_buffer import RecordAdmission, TraceBuffer, settled_spans

__all__ = [
    "FinishedTraces",
    "GroupByTraceConfig",
    "LearnedWaits",
    "ReadPosition",
    "RecordAdmission",
    "RecordClock",
    "TraceBuffer",
    "settled_spans",
]
