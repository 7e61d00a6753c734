"""What the previous process left in the journal, read and put in order.

A damaged LMDB file can kill the process that maps it. So a child process reads all of it first: its death,
like any wrong checksum, means that the journal is damaged. It copies what it read to a new file, which this
process then uses.
"""

import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson

from collector.errors import StartupError
from collector.journal.activity import LastActivity
from collector.journal_file.inspection import COPY
from collector.journal_file.records import (
    DamagedRecord,
    FinishedRecord,
    JournalledBatch,
    Notes,
    Place,
    VerdictGroup,
    decode_record,
    decode_segment,
    trace_key,
)
from collector.journal_file.store import Change, JournalStore, Table, has_file, take_copy
from collector.journal_file.verdicts import StoredVerdicts, decode_graded
from collector.otlp import EnvelopeRegistry
from collector.trace_forms import Additions
from processors.model import encode_value

CRASHES_UNTIL_QUARANTINE = 2
"""A trace that was being graded in so many crashes is no longer graded."""

_SEGMENTS_BETWEEN_WORDS = 1_000

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was in the journal.

    Attributes:
        alive_unix_nano: Until when a previous process received requests; 0 if unknown.
        outages: Start and end of the times before that of which it may have missed spans.
        batches: Spans and log records that not every exporter has received, by place, in order of admission.
        left: The places of streamed batches that every exporter has received; they only wait for a verdict.
        verdicts: How traces were graded that not every exporter has received, by key.
        deliveries: The exporters that have received them, by key.
        finished: Finished traces, in order.
        quarantined: Keys of traces that were being graded in two crashes.
        segments: The bytes of each segment, by number.
        verdict_groups: The bytes of each record of verdicts and the keys of its traces, by number.
        notes: Each record of notes, by number.
        finished_groups: The numbers of the records of finished traces, and how many are in each.
        next_number: More than the number of any record, even if only another record names it.
        changes: What is to be written now.
    """

    alive_unix_nano: int
    outages: Sequence[tuple[int, int]]
    batches: Mapping[Place, JournalledBatch]
    left: frozenset[Place]
    verdicts: Mapping[bytes, StoredVerdicts | Additions]
    deliveries: Mapping[bytes, frozenset[str]]
    finished: Sequence[FinishedRecord]
    quarantined: frozenset[bytes]
    segments: Mapping[int, int]
    verdict_groups: Mapping[int, tuple[int, Sequence[bytes]]]
    notes: Mapping[int, Notes]
    finished_groups: Sequence[tuple[int, int]]
    next_number: int
    changes: Sequence[Change] = field(default=())


def read_journal(
    store: JournalStore, directory: Path, last: LastActivity, envelopes: EnvelopeRegistry
) -> Recovered:
    """Read an open journal.

    Raises:
        StartupError: it is damaged.
    """
    try:
        return _read(store, last, envelopes)
    except DamagedRecord as error:
        raise _damaged(directory, str(error)) from error


def require_whole(directory: Path) -> None:
    """Have a child process read a journal that is not open yet, if there is one, and use its copy.

    Raises:
        StartupError: it is damaged.
    """
    if not has_file(directory):
        return
    if damage := inspect_in_child_process(directory, copies=True).damage:
        raise _damaged(directory, damage)
    if not take_copy(directory):
        _logger.warning("The journal could not be copied, so its file is used as it is.")


def _damaged(directory: Path, what: str) -> StartupError:
    """The error that says what to do with a damaged journal."""
    return StartupError(
        f"journal.directory: {directory} is damaged ({what}): save what can be read with `tracegrade journal "
        f"--salvage {directory} FILE.jsonl`, which `tracegrade replay` reads, then move the directory away"
    )


class Inspection(NamedTuple):
    """What a child process read in a journal, and what is damaged; empty: nothing."""

    content: dict[str, object]
    damage: str


def inspect_in_child_process(
    directory: Path, salvaged: Path | None = None, *, copies: bool = False
) -> Inspection:
    """Read a journal in a child process, which writes its spans to the new file `salvaged`, if given.

    `copies`: whether a whole journal is copied (`copy_journal`).
    """
    command = [sys.executable, "-m", "collector.journal_file.inspection", str(directory)]
    if copies:
        command.append(COPY)
    elif salvaged is not None:
        command.append(str(salvaged))
    ended = subprocess.run(command, capture_output=True, check=False)
    try:
        content = orjson.loads(ended.stdout)
    except ValueError:
        reported = ended.stderr.decode(errors="replace").strip().splitlines()
        how = f"signal {-ended.returncode}" if ended.returncode < 0 else (reported or ["no output"])[-1]
        return Inspection({}, f"reading it ended with {how}")
    if not content["damaged_records"]:
        return Inspection(content, "")
    return Inspection(content, f"{content['damaged_records']} records, first: {content['first_damage']}")


def _read(store: JournalStore, last: LastActivity, envelopes: EnvelopeRegistry) -> Recovered:
    notes = {_number(key): decode_record(content, Notes) for key, content in store.records(Table.NOTES)}
    removed = {place for each in notes.values() for place in each.removed}
    deliveries: dict[bytes, set[str]] = {}
    for each in notes.values():
        for key, holder in each.delivered:
            deliveries.setdefault(key, set()).add(holder)
    batches: dict[Place, JournalledBatch] = {}
    segments: dict[int, int] = {}
    newest: dict[bytes, int] = {}
    for number_key, content in store.records(Table.SEGMENTS):
        number = _number(number_key)
        segments[number] = len(content)
        for index, journalled in decode_segment(content, envelopes):
            if (number, index) not in removed:
                batches[number, index] = journalled
                if not journalled.kind.leaves_at_once:
                    newest[trace_key(journalled.batch.trace_id, journalled.batch.tenant)] = number
        if len(segments) % _SEGMENTS_BETWEEN_WORDS == 0:
            _logger.info("Reading the journal.", extra={"batches": len(batches)})
    named = [number for each in notes.values() for number, _ in (*each.removed, *each.left)]
    verdict_groups: dict[int, tuple[int, Sequence[bytes]]] = {}
    verdicts: dict[bytes, StoredVerdicts | Additions] = {}
    for number_key, content in store.records(Table.VERDICTS):
        bound, graded = decode_record(content, VerdictGroup)
        named.append(bound)
        # Another trace under the same key was not graded.
        graded = [(key, written) for key, written in graded if newest.get(key, bound) < bound]
        verdict_groups[_number(number_key)] = len(content), [key for key, _ in graded]
        verdicts.update((key, decode_graded(written, envelopes.envelope)) for key, written in graded)
    finished: list[FinishedRecord] = []
    finished_groups: list[tuple[int, int]] = []
    for number_key, content in store.records(Table.FINISHED):
        group = decode_record(content, list[FinishedRecord])
        finished += group
        finished_groups.append((_number(number_key), len(group)))
    quarantined, changes = _attempts(store, last.in_work, newest)
    numbers = (*segments, *notes, *verdict_groups, *(number for number, _ in finished_groups), *named)
    return Recovered(
        alive_unix_nano=last.alive_unix_nano,
        outages=last.outages,
        batches=batches,
        left=frozenset(place for each in notes.values() for place in each.left),
        verdicts=verdicts,
        deliveries={key: frozenset(holders) for key, holders in deliveries.items()},
        finished=finished,
        quarantined=quarantined,
        segments=segments,
        verdict_groups=verdict_groups,
        notes=notes,
        finished_groups=finished_groups,
        next_number=max(numbers, default=-1) + 1,
        changes=changes,
    )


def _number(key: bytes) -> int:
    return int.from_bytes(key, "big")


_ATTEMPTS_KEY = b"attempts"


def _attempts(
    store: JournalStore, in_work: Sequence[bytes], held: Mapping[bytes, int]
) -> tuple[frozenset[bytes], list[Change]]:
    """The traces that are no longer graded, and what to record of the crashes."""
    attempts: dict[bytes, int] = {}
    for _, content in store.records(Table.ATTEMPTS):
        attempts = decode_record(content, dict[bytes, int])
    before = dict(attempts)
    attempts = {key: count for key, count in attempts.items() if key in held}
    for key in in_work:
        if key in held:
            attempts[key] = attempts.get(key, 0) + 1
    changes: list[Change] = []
    if attempts != before:
        written = [encode_value(attempts)] if attempts else None
        changes.append(Change(Table.ATTEMPTS, _ATTEMPTS_KEY, written))
    quarantined = {key for key, count in attempts.items() if count >= CRASHES_UNTIL_QUARANTINE}
    return frozenset(quarantined), changes
