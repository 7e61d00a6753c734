"""Recorded traffic and runs, read from files and written to them."""

from collector.recordings.recorded_stream import Progress, RecordedStream, no_progress, whole_trace

__all__ = ["Progress", "RecordedStream", "no_progress", "whole_trace"]
