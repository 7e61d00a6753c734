"""Log records that carry what agents say and do: which they are, and the spans that they belong to."""

from processors.records.record_head import RecordHead, read_record_head, record_name

__all__ = ["RecordHead", "read_record_head", "record_name"]
