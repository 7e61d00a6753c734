"""The seam between log records that carry what agents say and do, and the spans that they belong to.

A file in `processors/carriers/` or `processors/frameworks/` whose emitter sends content as log records has
`RECORDS`: the names of these records.
"""

from typing import NamedTuple


class ContentRecords(NamedTuple):
    """The log records in which one emitter sends content."""

    names: frozenset[str]
    """Names of events; see `processors.records.read_record_head` for where a record carries its name."""
    scope: str = ""
    """The instrumentation scope that these names are limited to; empty: any."""
