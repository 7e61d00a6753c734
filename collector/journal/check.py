"""Reads a journal from end to end: `python -m collector.journal.check DIRECTORY`.

Exits 0 if every record is what was written; 3 with a line on standard error if not. A damaged file may kill
the process as well, which is why this is one of its own.
"""

import sys
from pathlib import Path

import lmdb

from collector.journal.records import DamagedRecord, decode_batch, decode_envelope, decode_finished
from collector.journal.store import ReadOnlyJournal, Table
from collector.journal.verdicts import decode_verdicts
from processors.spans import Envelope

_DAMAGED = 3


def check(directory: Path) -> None:
    """Read everything.

    Raises:
        DamagedRecord: a record is not what was written.
        lmdb.Error: the file is none of LMDB's.
    """
    with ReadOnlyJournal(directory) as journal:
        envelopes = {
            int.from_bytes(key, "big")
            for key, content in journal.records(Table.ENVELOPES)
            if decode_envelope(content)
        }
        known = dict.fromkeys(envelopes, Envelope(b"", b""))
        for _, content in journal.records(Table.BATCHES):
            decode_batch(content, known.__getitem__)
        for _, content in journal.records(Table.FINISHED):
            decode_finished(content)
        for _, content in journal.records(Table.VERDICTS):
            decode_verdicts(content)
        for table in (Table.DELIVERIES, Table.ATTEMPTS, Table.CRITERIA, Table.ABOUT):
            for _ in journal.records(table):
                pass


if __name__ == "__main__":
    try:
        check(Path(sys.argv[1]))
    except (DamagedRecord, lmdb.Error) as error:
        print(error, file=sys.stderr)
        sys.exit(_DAMAGED)
