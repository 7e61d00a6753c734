"""Recorded traffic and runs: read from files, graded anew, compared."""

from collector.recordings.differences import Change, changes
from collector.recordings.recorded_stream import Progress, RecordedStream, no_progress, whole_trace

__all__ = ["Change", "Progress", "RecordedStream", "changes", "no_progress", "whole_trace"]
