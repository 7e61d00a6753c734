"""Recorded traffic and runs, read from files and written to them."""

from collector.recordings.recorded_stream import Progress, RecordedStream, no_progress
from collector.recordings.run_reader import graded_run_from_json, run_from_json

__all__ = ["Progress", "RecordedStream", "graded_run_from_json", "no_progress", "run_from_json"]
