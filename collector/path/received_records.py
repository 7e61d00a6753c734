"""Log records out of a request: which of them carry the content of agents, and of which trace or run."""

from collections.abc import Sequence
from typing import NamedTuple

from collector.otlp import EnvelopeRegistry, SplitRecords, count_records, split_records
from collector.trace import SpanBatch
from processors.annotation import count_result_records
from processors.records import may_have_content, read_record_head
from processors.spans import RawRecord


class ReceivedRecords(NamedTuple):
    """A request with log records; those with content of agents by trace or run, and how many are results."""

    request: SplitRecords
    content: Sequence[SpanBatch] = ()
    results: int = 0


def read_records(body: bytes, envelopes: EnvelopeRegistry) -> ReceivedRecords:
    """Read a serialised ExportLogsServiceRequest; raises `MalformedRequest`."""
    if not may_have_content(body):
        return ReceivedRecords(count_records(body, envelopes))
    request = split_records(body, envelopes)
    batches: dict[bytes, SpanBatch] = {}
    collected: dict[bytes, list[RawRecord]] = {}
    for record in request.records:
        head = read_record_head(record[1], record[2])
        if head is None:
            continue
        for key in filter(None, (head.trace_id, head.run_id)):
            if key not in batches:
                collected[key] = []
                batches[key] = SpanBatch(key, collected[key], is_run=key == head.run_id)
            collected[key].append(record)
    return ReceivedRecords(request, list(batches.values()), count_result_records(request.records))
