"""Log records that carry what agents say and do: which they are, and the spans that they belong to."""

from processors.records.joining import join_records, report_end, run_of_records, trace_with_records
from processors.records.record_head import RecordHead, may_have_content, read_record_head

__all__ = [
    "RecordHead", "join_records", "may_have_content", "read_record_head", "report_end", "run_of_records",
    "trace_with_records",
]  # fmt: skip
