"""Stored graded runs and queries over them: SQLite, written outside the loop, bounded in age and size."""

from collector.store.regrades import (
    ChangedResult,
    Regrade,
    RegradeChange,
    RegradedResult,
    RegradeRefused,
    Regrades,
)
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
    PackedRun,
    RunQueries,
    RunSummary,
    ToolSummary,
    unpacked,
)
from collector.store.run_rows import HOUR_MILLISECONDS
from collector.store.run_store import RunStore
from collector.store.store_config import StoreConfig, StoreSection
from collector.store.stored_conversations import StoredConversations

__all__ = [
    "FILTER_FIELDS", "HOUR_MILLISECONDS", "MAX_COUNT", "MAX_MATCHES", "MOMENTS", "SEARCH_FIELDS",
    "AgentSummary", "Answer", "ChangedResult", "Counts", "InvalidReview", "InvalidSearch", "NewReview",
    "PackedRun", "Precision", "Regrade", "RegradeChange", "RegradeRefused", "RegradedResult", "Regrades",
    "Review", "Reviewed", "Reviews", "RunDatabase", "RunFilter", "RunQueries", "RunStore", "RunSummary",
    "StoreConfig", "StoreSection", "StoreUnusable", "StoredConversations", "ToolSummary", "VerdictKey",
    "open_store_file", "read_filter", "unknown_name", "unpacked", "verdict_key",
]  # fmt: skip
