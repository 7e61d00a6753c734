"""Graded runs that people look up: kept in SQLite off the loop, bounded in age and size."""

from collector.store.run_database import RunDatabase, StoreUnusable, open_store_file
from collector.store.run_queries import (
    MAX_FOUND,
    AgentSummary,
    Counts,
    CriterionCounts,
    RunFilter,
    RunQueries,
    RunSummary,
    ToolSummary,
)
from collector.store.run_rows import rows_of
from collector.store.run_store import STORE, RunStore
from collector.store.store_config import StoreConfig, StoreSection
from collector.store.stored_conversations import StoredConversations

__all__ = [
    "MAX_FOUND", "STORE", "AgentSummary", "Counts", "CriterionCounts", "RunDatabase",
    "RunFilter", "RunQueries", "RunStore", "RunSummary", "StoreConfig", "StoreSection", "StoreUnusable",
    "StoredConversations", "ToolSummary", "open_store_file", "rows_of",
]  # fmt: skip
