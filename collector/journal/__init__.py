"""What is acknowledged is on disk, and a restart continues with it."""

from collector.journal.journal import Journal
from collector.journal.journal_config import JournalConfig
from collector.journal.kept_criteria import stored_criteria_files
from collector.journal.recovery import Inspection, Recovered, inspect_in_child_process
from collector.journal_file.records import BatchKind, JournalledBatch, Place, trace_key
from collector.journal_file.verdicts import StoredVerdicts

__all__ = [
    "BatchKind",
    "Inspection",
    "Journal",
    "JournalConfig",
    "JournalledBatch",
    "Place",
    "Recovered",
    "StoredVerdicts",
    "inspect_in_child_process",
    "stored_criteria_files",
    "trace_key",
]  # fmt: skip
