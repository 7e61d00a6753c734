"""Stored graded runs and queries over them: SQLite, written outside the loop, bounded in age and size."""

from collector.store.reviews import (
    Answer,
    InvalidReview,
    NewReview,
    Precision,
    Review,
    Reviewed,
    Reviews,
    VerdictKey,
    verdict_key,
)
from collector.store.run_database import RunDatabase, StoreUnusable, open_store_file
from collector.store.run_queries import MAX_MATCHES, AgentSummary, Counts, RunFilter, RunQueries
from collector.store.run_rows import HOUR_MILLISECONDS
from collector.store.run_store import RunStore
from collector.store.store_config import StoreConfig, StoreSection
from collector.store.stored_conversations import StoredConversations

__all__ = [
    "HOUR_MILLISECONDS", "MAX_MATCHES", "AgentSummary", "Answer", "Counts", "InvalidReview", "NewReview",
    "Precision", "Review", "Reviewed", "Reviews", "RunDatabase", "RunFilter", "RunQueries", "RunStore",
    "StoreConfig", "StoreSection", "StoreUnusable", "StoredConversations", "VerdictKey", "open_store_file",
    "verdict_key",
]  # fmt: skip
