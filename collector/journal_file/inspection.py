"""Reads a journal that is not in use, in a process of its own: `python -m collector.journal_file.inspection`.

A damaged file may kill the process that reads it. The arguments are a directory and, to save the spans that
can be read, a file, or `--copy` to copy a journal that is whole. The output is a `JournalContent` as JSON. It
exits 0 if every record is what was written, 3 if not, or as the damage ends it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

import lmdb
import orjson

from collector.journal_file.records import (
    FORMAT_VERSION,
    DamagedRecord,
    FinishedRecord,
    Notes,
    Place,
    VerdictGroup,
    decode_record,
    decode_segment,
    trace_key,
    unseal,
)
from collector.journal_file.store import ReadOnlyJournal, Table, copy_journal, place_of
from collector.journal_file.verdicts import decode_graded
from collector.otlp import EnvelopeRegistry, join_spans, logs_request_to_json, request_to_json

DAMAGED = 3
COPY = "--copy"
"""Makes the process copy the journal that it read."""

T = TypeVar("T")


@dataclass(slots=True)
class JournalContent:
    """What is in a journal: whole records, and how many are damaged.

    `oldest_unix_nano` is when the oldest of the spans was admitted, 0 without any.
    """

    spans: int = 0
    log_records: int = 0
    traces: int = 0
    graded_traces: int = 0
    finished_traces: int = 0
    oldest_unix_nano: int = 0
    damaged_records: int = 0
    first_damage: str = ""

    def note_damage(self, error: object) -> None:
        """One more record is damaged."""
        self.damaged_records += 1
        self.first_damage = self.first_damage or str(error)


def inspect(directory: Path, salvaged: BinaryIO | None = None) -> JournalContent:
    """What is in the journal; its spans and log records go to `salvaged`, a request in OTLP/JSON a line.

    Of a journal of another version nothing is read.

    Raises:
        lmdb.Error: the file is none of LMDB's, or is not there.
    """
    content = JournalContent()
    with closing(ReadOnlyJournal(directory)) as journal:
        try:
            if journal.version() not in (None, FORMAT_VERSION):
                return content
        except DamagedRecord as error:
            content.note_damage(error)
        if journal.lost_tables:
            content.note_damage("tables are missing")
        _read(journal, content, salvaged)
    return content


def _read(journal: ReadOnlyJournal, content: JournalContent, salvaged: BinaryIO | None) -> None:
    """Read all tables, and go on behind what is damaged."""

    def whole(table: Table, decode: Callable[[bytes], T]) -> Iterator[tuple[bytes, T]]:
        """The records that are what was written."""
        try:
            for key, record in journal.sealed_records(table):
                try:
                    decoded = decode(unseal(place_of(table, key), record))
                except DamagedRecord as error:
                    content.note_damage(error)
                else:
                    yield key, decoded
        except DamagedRecord as error:
            content.note_damage(error)

    envelopes = EnvelopeRegistry()
    removed: set[Place] = set()
    for _, notes in whole(Table.NOTES, lambda record: decode_record(record, Notes)):
        removed.update(notes.removed)
    held: set[bytes] = set()
    traces: set[bytes] = set()
    for key, batches in whole(Table.SEGMENTS, lambda record: list(decode_segment(record, envelopes))):
        for index, journalled in batches:
            if (int.from_bytes(key, "big"), index) in removed:
                continue
            batch = journalled.batch
            held.add(trace_key(batch.trace_id, batch.tenant))
            content.oldest_unix_nano = content.oldest_unix_nano or journalled.arrived_unix_nano
            if journalled.kind.are_records:
                content.log_records += len(batch.spans)
                to_json = logs_request_to_json
            else:
                content.spans += len(batch.spans)
                traces.add(batch.trace_id)
                to_json = request_to_json
            if salvaged is not None:
                salvaged.write(to_json(join_spans(batch.spans)) + b"\n")
                salvaged.flush()
    content.traces = len(traces)
    content.finished_traces = sum(
        len(finished)
        for _, finished in whole(Table.FINISHED, lambda record: decode_record(record, list[FinishedRecord]))
    )

    def graded(record: bytes) -> int:
        traces = decode_record(record, VerdictGroup).traces
        return len([decode_graded(written, envelopes.envelope) for key, written in traces if key in held])

    content.graded_traces = sum(count for _, count in whole(Table.VERDICTS, graded))
    for table in (Table.ATTEMPTS, Table.CRITERIA):  # their content is read where it is used
        for _ in whole(table, bytes):
            pass


def main(arguments: list[str]) -> int:
    """As the module says."""
    directory, option = Path(arguments[0]), arguments[1] if len(arguments) > 1 else ""
    try:
        if option in ("", COPY):
            content = inspect(directory)
        else:
            with open(option, "xb") as salvaged:
                content = inspect(directory, salvaged)
        if option == COPY and not content.damaged_records:
            copy_journal(directory)
    except lmdb.Error as error:
        content = JournalContent()
        content.note_damage(f"it cannot be opened ({error})")
    sys.stdout.buffer.write(orjson.dumps(asdict(content)) + b"\n")
    return DAMAGED if content.damaged_records else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
