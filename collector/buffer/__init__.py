"""Traces that are not finished yet, and when they are."""

from collector.buffer.finish_clock import ReadPosition, RecordClock
from collector.buffer.finish_policy import GroupByTraceConfig
from collector.buffer.finished_traces import FinishedTraces
from collector.buffer.held_trace import EarlyReports, HeldTrace
from collector.buffer.learned_waits import LearnedWaits
from collector.buffer.trace_buffer import BufferGroup, RecordAdmission, TraceBuffer, settled_spans

__all__ = [
    "BufferGroup",
    "EarlyReports",
    "FinishedTraces",
    "GroupByTraceConfig",
    "HeldTrace",
    "LearnedWaits",
    "ReadPosition",
    "RecordAdmission",
    "RecordClock",
    "TraceBuffer",
    "settled_spans",
]
