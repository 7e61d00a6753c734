"""What is acknowledged is on disk, and a restart continues with it."""

from collector.journal.journal import Journal
from collector.journal.journal_config import JournalConfig
from collector.journal.kept_criteria import kept_files
from collector.journal.records import BatchKind, JournalledBatch, Place, opened_record, trace_key
from collector.journal.recovery import Inspected, Recovered, inspect_apart
from collector.journal.verdicts import StoredVerdicts

__all__ = [
    "BatchKind", "Inspected", "Journal", "JournalConfig", "JournalledBatch", "Place", "Recovered",
    "StoredVerdicts", "inspect_apart", "kept_files", "opened_record", "trace_key",
]  # fmt: skip
