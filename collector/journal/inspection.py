"""Looks at a journal that is not in use, in a process of its own: `python -m collector.journal.inspection`.

A damaged file may kill the process that reads it, so whoever wants to know starts this one. Its arguments
are a directory and, to save the spans that can be read, a file, or `--copy` to copy a whole journal; its
output is one JSON object of `JournalContent`. It exits 0 if every record is what was written, 3 if not, or as
the damage ends it.
"""

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import lmdb
import orjson

from collector.journal.records import (
    READABLE_VERSIONS,
    DamagedRecord,
    JournalledBatch,
    Place,
    decode_notes,
    decode_pairs,
    decode_segment,
    decode_verdict_group,
    trace_key,
    unseal,
)
from collector.journal.recovery import COPY
from collector.journal.store import ReadOnlyJournal, Table, copy_journal, place_of
from collector.journal.verdicts import decode_graded
from collector.otlp import EnvelopeRegistry, join_spans, request_to_json

DAMAGED = 3


@dataclass(slots=True)
class JournalContent:
    """What is in a journal: whole records, and how many are not what was written.

    `first_damage` says what is wrong with the first of these; `oldest_unix_nano` is when the oldest of the
    spans was admitted, 0 without any.
    """

    spans: int = 0
    traces: int = 0
    graded_traces: int = 0
    finished_traces: int = 0
    oldest_unix_nano: int = 0
    damaged_records: int = 0
    first_damage: str = ""

    def note_damage(self, error: Exception) -> None:
        """One more record is damaged."""
        self.damaged_records += 1
        self.first_damage = self.first_damage or str(error)


class _Reader:
    """Reads all tables, and goes on behind what is damaged; nothing of a journal of another version."""

    def __init__(self, journal: ReadOnlyJournal) -> None:
        self._journal = journal
        self.content = JournalContent()

    def batches(self) -> Iterator[JournalledBatch]:
        """The batches that can be read, in order of admission; counts everything on its way."""
        content = self.content
        if self._is_of_another_version():
            return
        if self._journal.lost_tables:
            content.note_damage(ValueError("tables are missing"))
        gone: set[Place] = set()
        for _, record in self._records(Table.NOTES):
            try:
                gone.update(decode_notes(record).gone)
            except DamagedRecord as error:
                content.note_damage(error)
        held: set[bytes] = set()
        traces = set()
        envelopes = EnvelopeRegistry()
        for key, record in self._records(Table.SEGMENTS):
            number = int.from_bytes(key, "big")
            try:
                for index, journalled in decode_segment(record, envelopes):
                    if (number, index) in gone:
                        continue
                    batch = journalled.batch
                    content.spans += len(batch.spans)
                    content.oldest_unix_nano = content.oldest_unix_nano or journalled.arrived_unix_nano
                    traces.add(batch.trace_id)
                    held.add(trace_key(batch.trace_id, batch.tenant))
                    yield journalled
            except DamagedRecord as error:
                content.note_damage(error)
        content.traces = len(traces)
        for _, record in self._records(Table.FINISHED):
            try:
                content.finished_traces += len(decode_pairs(record))
            except DamagedRecord as error:
                content.note_damage(error)
        for _, record in self._records(Table.VERDICTS):
            try:
                for trace, said in decode_verdict_group(record)[1]:
                    if trace in held:
                        decode_graded(said, envelopes.envelope)
                        content.graded_traces += 1
            except DamagedRecord as error:
                content.note_damage(error)
        for table in (Table.ATTEMPTS, Table.CRITERIA):
            for _ in self._records(table):
                pass

    def _is_of_another_version(self) -> bool:
        try:
            return self._journal.version() not in (None, *READABLE_VERSIONS)
        except DamagedRecord as error:
            self.content.note_damage(error)
            return False

    def _records(self, table: Table) -> Iterator[tuple[bytes, bytes]]:
        """The whole records of a table, as far as it can be read."""
        try:
            for key, record in self._journal.sealed_records(table):
                try:
                    content = unseal(place_of(table, key), record)
                except DamagedRecord as error:
                    self.content.note_damage(error)
                    continue
                yield key, content
        except DamagedRecord as error:
            self.content.note_damage(error)


def inspect(directory: Path, salvaged: BinaryIO | None = None) -> JournalContent:
    """What is in the journal; its spans go to `salvaged` as requests in OTLP/JSON, one a line.

    Raises:
        lmdb.Error: the file is none of LMDB's, or is not there.
    """
    with ReadOnlyJournal(directory) as journal:
        reader = _Reader(journal)
        for journalled in reader.batches():
            if salvaged is not None:
                salvaged.write(request_to_json(join_spans(journalled.batch.spans)) + b"\n")
                salvaged.flush()
        return reader.content


def _look(directory: Path, also: str = "") -> JournalContent:
    if also and also != COPY:
        with open(also, "xb") as salvaged:
            return inspect(directory, salvaged)
    content = inspect(directory)
    if also and not content.damaged_records:
        copy_journal(directory)
    return content


def main(arguments: list[str]) -> int:
    """As the module says."""
    directory, *more = arguments
    try:
        content = _look(Path(directory), *more)
    except lmdb.Error as error:
        content = JournalContent()
        content.note_damage(ValueError(f"it cannot be opened ({error})"))
    sys.stdout.buffer.write(orjson.dumps(asdict(content)) + b"\n")
    return DAMAGED if content.damaged_records else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
