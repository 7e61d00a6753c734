"""Where graded traces go: one destination a file."""

from collector.exporters.assembly import build_fan_out, contents_of, exporter_types
from collector.exporters.dead_letters import DeadLetters, DeadLettersConfig
from collector.exporters.exporter import ExporterContext, SpanExporter
from collector.exporters.fan_out import FanOut
from collector.exporters.otlp_client import one_line, read_response, read_status, user_agent
from collector.exporters.redrive import redrive_file, send_patiently
from collector.exporters.score_exporter import ScoreExporter, ScoreExporterConfig
from collector.exporters.score_sender import ScoreSender, score_exporters
from collector.exporters.span_exporter_config import SpanExporterConfig
from collector.task_supervisor import TaskOwner

__all__ = [
    "DeadLetters", "DeadLettersConfig", "ExporterContext", "FanOut", "ScoreExporter", "ScoreExporterConfig",
    "ScoreSender", "SpanExporter", "SpanExporterConfig", "TaskOwner", "build_fan_out", "contents_of",
    "exporter_types", "one_line", "read_response", "read_status", "redrive_file", "score_exporters",
    "send_patiently", "user_agent",
]  # fmt: skip
