"""What the process before left in the journal, read and put in order.

A damaged LMDB file can kill the process that maps it. So all of it is read once in a child process first,
whose death, like any wrong checksum, means that the journal is damaged.
"""

import logging
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson

from collector.errors import StartupError
from collector.journal.activity import LastActivity
from collector.journal.records import (
    DamagedRecord,
    JournalledBatch,
    decode_batch,
    decode_envelope,
    decode_finished,
    trace_key,
)
from collector.journal.store import Change, JournalStore, Table, has_file
from collector.journal.verdicts import StoredVerdicts, decode_verdicts
from processors.spans import Envelope

CRASHES_UNTIL_QUARANTINE = 2
"""In how many crashes a trace may have been in work before it is no longer graded."""

_BATCHES_BETWEEN_WORDS = 10_000

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was in the journal.

    Attributes:
        is_new: Whether there was no journal before.
        alive_unix_nano: When the process before was last alive; 0 if that is not known.
        batches: Spans that were admitted and not delivered to everybody, by number, in order of admission.
        left: The numbers of streamed batches that everybody has got; they only wait for a verdict.
        envelopes: Resources with scopes by number.
        verdicts: How traces were graded that were not delivered to everybody, by key.
        deliveries: Who has got them, by key.
        finished: The keys of finished traces and their span ids, by number, in their order.
        quarantined: Keys of traces that were being graded in two crashes.
        changes: What is to be written now.
    """

    is_new: bool
    alive_unix_nano: int
    batches: Mapping[int, JournalledBatch]
    left: frozenset[int]
    envelopes: Mapping[int, Envelope]
    verdicts: Mapping[bytes, StoredVerdicts]
    deliveries: Mapping[bytes, frozenset[str]]
    finished: Mapping[int, tuple[bytes, bytes]]
    quarantined: frozenset[bytes]
    changes: Sequence[Change] = field(default=())


def read_journal(
    store: JournalStore,
    directory: Path,
    last: LastActivity,
    envelope: Callable[[bytes, bytes], Envelope],
) -> Recovered:
    """Read an open journal.

    Raises:
        StartupError: it is damaged.
    """
    try:
        is_new = not any(
            True for table in (Table.BATCHES, Table.FINISHED) for _ in store.sealed_records(table)
        )
        return _read(store, last, envelope, is_new=is_new and not last.alive_unix_nano)
    except DamagedRecord as error:
        raise _damaged(directory, str(error)) from error


def require_whole(directory: Path) -> None:
    """Let a child process read a journal that is not open yet, if there is one.

    Raises:
        StartupError: it is damaged.
    """
    if has_file(directory) and (damage := inspect_apart(directory).damage):
        raise _damaged(directory, damage)


def _damaged(directory: Path, what: str) -> StartupError:
    """The journal cannot be relied on."""
    return StartupError(
        f"journal.directory: {directory} is damaged ({what}): save what can be read with `tracegrade journal "
        f"--salvage {directory} FILE.jsonl`, which `tracegrade replay` reads, then move the directory aside"
    )


class Inspected(NamedTuple):
    """What a process of its own found in a journal, and what is wrong; empty: nothing."""

    content: dict[str, object]
    damage: str


def inspect_apart(directory: Path, salvaged: Path | None = None) -> Inspected:
    """Look at a journal in a child process, and let that write its spans to the new file `salvaged`."""
    command = [sys.executable, "-m", "collector.journal.inspection", str(directory)]
    if salvaged is not None:
        command.append(str(salvaged))
    ended = subprocess.run(command, capture_output=True, check=False)
    try:
        content = orjson.loads(ended.stdout)
    except ValueError:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        how = f"signal {-ended.returncode}" if ended.returncode < 0 else (said or ["no output"])[-1]
        return Inspected({}, f"reading it ended with {how}")
    if not content["damaged_records"]:
        return Inspected(content, "")
    return Inspected(content, f"{content['damaged_records']} records, first: {content['first_damage']}")


def _read(
    store: JournalStore,
    last: LastActivity,
    envelope: Callable[[bytes, bytes], Envelope],
    *,
    is_new: bool,
) -> Recovered:
    envelopes = {
        int.from_bytes(key, "big"): envelope(*decode_envelope(content))
        for key, content in store.records(Table.ENVELOPES)
    }
    batches: dict[int, JournalledBatch] = {}
    for key, content in store.records(Table.BATCHES):
        batches[int.from_bytes(key, "big")] = decode_batch(content, envelopes.__getitem__)
        if len(batches) % _BATCHES_BETWEEN_WORDS == 0:
            _logger.info("Reading the journal.", extra={"batches": len(batches)})
    left: set[int] = set()
    deliveries: dict[bytes, set[str]] = {}
    for key, _ in store.records(Table.DELIVERIES):
        if len(key) == 8:
            left.add(int.from_bytes(key, "big"))
        else:
            deliveries.setdefault(key[: key.rindex(b"\0")], set()).add(key[key.rindex(b"\0") + 1 :].decode())
    held = {trace_key(found.batch.trace_id, found.batch.tenant) for found in batches.values()}
    quarantined, changes = _attempts(store, last.in_work, held)
    return Recovered(
        is_new=is_new,
        alive_unix_nano=last.alive_unix_nano,
        batches=batches,
        left=frozenset(left),
        envelopes=envelopes,
        verdicts={key: decode_verdicts(content) for key, content in store.records(Table.VERDICTS)},
        deliveries={key: frozenset(holders) for key, holders in deliveries.items()},
        finished={
            int.from_bytes(key, "big"): decode_finished(content)
            for key, content in store.records(Table.FINISHED)
        },
        quarantined=quarantined,
        changes=changes,
    )


def _attempts(store: JournalStore, in_work: bytes, held: set[bytes]) -> tuple[frozenset[bytes], list[Change]]:
    """The traces not to be graded any more, and what to write down of the crashes."""
    attempts = {key: int(content) for key, content in store.records(Table.ATTEMPTS)}
    changes = [Change(Table.ATTEMPTS, key, None) for key in attempts if key not in held]
    if in_work in held:
        attempts[in_work] = attempts.get(in_work, 0) + 1
        changes.append(Change(Table.ATTEMPTS, in_work, b"%d" % attempts[in_work]))
    quarantined = {
        key for key, count in attempts.items() if key in held and count >= CRASHES_UNTIL_QUARANTINE
    }
    return frozenset(quarantined), changes
