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
from collector.store.run_filter import (
    FILTER_FIELDS,
    MOMENTS,
    SEARCH_FIELDS,
    InvalidSearch,
    RunFilter,
    read_filter,
    unknown_name,
)
from collector.store.run_queries import (
    MAX_COUNT,
    MAX_MATCHES,
    AgentSummary,
    Counts,
    RunQueries,
    RunSummary,
    ToolSummary,
)
from collector.store.run_rows import HOUR_MILLISECONDS
from collector.store.run_store import RunStore
from collector.store.store_config import StoreConfig, StoreSection
from collector.store.stored_conversations import StoredConversations

__all__ = [
    "FILTER_FIELDS", "HOUR_MILLISECONDS", "MAX_COUNT", "MAX_MATCHES", "MOMENTS", "SEARCH_FIELDS",
    "AgentSummary", "Answer", "Counts", "InvalidReview", "InvalidSearch", "NewReview", "Precision", "Review",
    "Reviewed", "Reviews", "RunDatabase", "RunFilter", "RunQueries", "RunStore", "RunSummary", "StoreConfig",
    "StoreSection", "StoreUnusable", "StoredConversations", "ToolSummary", "VerdictKey", "open_store_file",
    "read_filter", "unknown_name", "verdict_key",
]  # fmt: skip
