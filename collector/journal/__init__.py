"""What is acknowledged is on disk, and a restart goes on with it."""

from collector.journal.journal import Journal
from collector.journal.journal_config import JournalConfig
from collector.journal.records import BatchKind, JournalledBatch, trace_key
from collector.journal.recovery import Recovered
from collector.journal.verdicts import StoredVerdicts

__all__ = [
    "BatchKind", "Journal", "JournalConfig", "JournalledBatch", "Recovered", "StoredVerdicts", "trace_key",
]  # fmt: skip
