"""The last good version of each criteria file, stored over restarts.

A record is a `KeptFile`, under the SHA-256 of the file's path, since LMDB's keys are short.
"""

from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import lmdb

from collector.journal.recovery import inspect_in_child_process
from collector.journal_file.records import DamagedRecord, decode_record
from collector.journal_file.store import Change, JournalStore, ReadOnlyJournal, Table, has_file
from collector.text_file import KeptFile
from processors.model import encode_value

MAX_KEPT_BYTES = 8 * 1024 * 1024
"""Of all files together: they share the journal's room with spans."""


def stored_criteria_files(directory: Path) -> list[KeptFile]:
    """What a previous process stored in a journal that is not open; none if it cannot be read. Blocks."""
    if not has_file(directory) or inspect_in_child_process(directory).damage:
        return []  # opening the journal reports what is wrong with it
    try:
        with closing(ReadOnlyJournal(directory)) as journal:
            return [decode_record(content, KeptFile) for _, content in journal.records(Table.CRITERIA)]
    except (lmdb.Error, DamagedRecord):
        return []


def digests_of_kept(store: JournalStore) -> dict[bytes, bytes]:
    """The digests of what an open journal holds, by the keys of the records."""
    return {key: _digest(decode_record(content, KeptFile)) for key, content in store.records(Table.CRITERIA)}


def keep(files: Sequence[KeptFile], digests: dict[bytes, bytes]) -> list[Change]:
    """The changes after which exactly `files` are stored; `digests` follows.

    If together they take more than `MAX_KEPT_BYTES`, none of them is.
    """
    if sum(len(file.content) for file in files) > MAX_KEPT_BYTES:
        files = ()
    current = {sha256(file.path.encode()).digest(): file for file in files}
    changes = [Change(Table.CRITERIA, key, None) for key in digests if key not in current]
    for key, file in current.items():
        if digests.get(key) != _digest(file):
            changes.append(Change(Table.CRITERIA, key, [encode_value(file)]))
    digests.clear()
    digests.update((key, _digest(file)) for key, file in current.items())
    return changes


def _digest(file: KeptFile) -> bytes:
    return sha256(file.pattern.encode() + b"\0" + file.content).digest()
