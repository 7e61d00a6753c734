"""The journal between a loop and a disk that fails, is slow, is full or is another's."""

import asyncio
import logging
import os
import re
import resource
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from collector.clock import Clock, ManualClock, SystemClock
from collector.errors import Overloaded, StartupError
from collector.journal import (
    Inspection,
    Journal,
    JournalConfig,
    Recovered,
    inspect_in_child_process,
    recovery,
)
from collector.journal.kept_criteria import MAX_KEPT_BYTES, stored_criteria_files
from collector.journal_file.records import FORMAT_VERSION, BatchKind, number_key
from collector.journal_file.store import Change, JournalFailed, JournalStore, Table, file_system_of
from collector.otlp import EnvelopeRegistry, split_records
from collector.recordings import RecordedStream
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import Metrics
from collector.text_file import KeptFile
from collector.trace import FinishedTrace, GradedTrace, SpanBatch
from processors.criteria import CriteriaSet
from processors.model import FinishReason
from tests.processors.frameworks.test_recordings import in_any_order, told
from tests.support.both_signals import expected_runs, traces_in
from tests.support.deliveries import make_spans
from tests.support.otlp_senders import logs_request


class FaultyStore(JournalStore):
    """The real store, whose next transactions fail or take their time."""

    failures = 0
    seconds = 0.0
    writes = 0

    def write(self, changes: Sequence[Change]) -> None:
        time.sleep(self.seconds)
        self.writes += 1
        if self.failures and changes:
            self.failures -= 1
            raise JournalFailed("the disk is gone")
        super().write(changes)


class OpenJournal:
    """A journal in a loop, between `async with` and its end; `recovered` is what it found."""

    recovered: Recovered

    def __init__(self, directory: Path, *, clock: Clock | None = None, **settings: object) -> None:
        self.config = JournalConfig.model_validate({"directory": directory, **settings})
        self.store = FaultyStore(directory, max_bytes=self.config.max_bytes, syncs=True)
        self.metrics = Metrics()
        self.journal = Journal(
            self.config, metrics=self.metrics, clock=clock or SystemClock(), store=self.store
        )
        self._tasks = TaskSupervisor(lambda: None)

    async def __aenter__(self) -> "OpenJournal":
        self.recovered = self.journal.open(EnvelopeRegistry())
        self.journal.start(self._tasks)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.journal.shutdown()
        await self._tasks.cancel()
        assert not self._tasks.failures

    async def stored(self) -> None:
        waiting = self.journal.stored()
        if waiting is not None:
            await asyncio.wait_for(waiting, 30)

    async def fill(self, *, limited: bool = True) -> int:
        """Add spans until they are refused; how many, the refused one included."""
        number = 0
        try:
            while True:
                number += 1
                if limited:
                    self.journal.require_room(100_000)
                self.journal.add([batch(number, 1, padding=100_000)])
                await self.stored()
        except Overloaded:
            return number


def batch(trace: int, count: int = 2, *, padding: int = 0) -> SpanBatch:
    return SpanBatch(trace.to_bytes(16, "big"), make_spans(trace, count, padding=padding))


def found(recovered: Recovered) -> list[bytes]:
    return [journalled.batch.trace_id for journalled in recovered.batches.values()]


async def test_a_process_counts_as_down_while_it_takes_no_requests(tmp_path: Path) -> None:
    clock = ManualClock()
    async with OpenJournal(tmp_path, clock=clock) as receiving:
        receiving.journal.note_receiving(True)
        clock.advance(7)
        stopped = clock.unix_nano()
        receiving.journal.note_receiving(False)  # it drains
        clock.advance(5)
    for _ in range(2):
        async with OpenJournal(tmp_path, clock=clock) as starting:  # and ends before it is ready
            assert stopped == starting.recovered.alive_unix_nano
            clock.advance(5)


async def test_what_was_stored_is_found_and_what_was_delivered_is_forgotten(tmp_path: Path) -> None:
    async with OpenJournal(tmp_path) as one:
        one.journal.add([batch(1), batch(2)])
        receipt = one.journal.add_leaving([batch(3)], streamed=False)
        await one.stored()
        assert receipt.expects("otlp")
        receipt.seal()
        receipt.delivered("otlp")

    async with OpenJournal(tmp_path) as other:
        assert [batch(1).trace_id, batch(2).trace_id] == found(other.recovered)
        held = next(iter(other.recovered.batches.values())).batch
        assert batch(1).spans[0][1] == held.spans[0][1]
        (finished,) = other.recovered.finished
        assert (batch(3).trace_id, [span[0] for span in batch(3).spans]) == (finished.key, finished.span_ids)


async def test_streamed_spans_stay_until_their_trace_is_delivered_as_well(tmp_path: Path) -> None:
    async with OpenJournal(tmp_path) as one:
        receipt = one.journal.add_leaving([batch(1)], streamed=True)
        receipt.expects("otlp")
        receipt.seal()
        receipt.delivered("otlp")
        await one.stored()
        await asyncio.sleep(0.05)

    async with OpenJournal(tmp_path) as other:
        assert [batch(1).trace_id] == found(other.recovered)
        assert other.recovered.left  # nobody gets them again
        graded = other.journal.receipt(batch(1).trace_id, "")
        graded.seal()
        assert 0 == other.journal.bytes_held


async def test_nothing_is_acknowledged_while_the_disk_fails_and_everything_is_kept_when_it_works_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with OpenJournal(tmp_path) as one:
        one.store.failures = 2
        one.journal.add([batch(1)])
        with pytest.raises(Overloaded):
            await one.stored()
        with pytest.raises(Overloaded):
            one.journal.require_room(1)
        assert "cannot be written" in caplog.text
        async with asyncio.timeout(30):
            while one.store.failures or one.journal._changes:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
        assert 1 == one.metrics.journal_failures.value("failed")
        one.journal.require_room(1)
        one.journal.add([batch(2)])
        await one.stored()

    async with OpenJournal(tmp_path) as other:
        assert [batch(1).trace_id, batch(2).trace_id] == found(other.recovered)


async def test_a_sender_that_is_alone_waits_for_nobody_else(tmp_path: Path) -> None:
    async with OpenJournal(tmp_path, clock=ManualClock()) as one:
        before = one.store.writes
        for number in range(1, 4):
            one.journal.add([batch(number)])
            await one.stored()  # though no time passes
        assert before + 3 == one.store.writes


async def test_senders_that_wait_for_answers_share_each_transaction(tmp_path: Path) -> None:
    senders, requests = 5, 20

    async def send(number: int) -> None:
        for _ in range(number):
            await asyncio.sleep(0)  # one after the other, as they come from their connections
        for request in range(requests):
            one.journal.add([batch(1 + number * requests + request)])
            await one.stored()
            for _ in range(number):
                await asyncio.sleep(0)

    async with OpenJournal(tmp_path) as one:
        before = one.store.writes
        await asyncio.gather(*[send(number) for number in range(senders)])
        writes = one.store.writes - before

    assert requests <= writes < 2 * requests


async def test_a_slow_disk_holds_up_acknowledgements_and_nothing_else(tmp_path: Path) -> None:
    async with OpenJournal(tmp_path) as one:
        one.store.seconds = 1.0
        one.journal.add([batch(1)])
        waiting = one.journal.stored()
        assert waiting is not None
        turns = 0
        while not waiting.done():
            turns += 1
            await asyncio.sleep(0.01)
        assert 20 < turns
        one.store.seconds = 0.0


async def test_a_full_journal_refuses_and_takes_again_when_traces_are_delivered(tmp_path: Path) -> None:
    async with OpenJournal(tmp_path, max_bytes=16 * 1024**2) as one:
        number = await one.fill()
        assert 100 < number
        with pytest.raises(Overloaded, match="full"):
            one.journal.require_room(100_000)
        for delivered in range(1, number):
            one.journal.receipt(batch(delivered).trace_id, "").seal()
        one.journal.require_room(100_000)
        one.journal.add([batch(number, 1)])
        await one.stored()
        assert tmp_path.joinpath("data.mdb").stat().st_size < 16 * 1024**2 * 1.5 + 64 * 1024**2

    async with OpenJournal(tmp_path) as other:
        assert [batch(number).trace_id] == found(other.recovered)


async def test_a_trace_that_lasts_keeps_no_others_on_disk(tmp_path: Path) -> None:
    lasting = batch(999, 1)
    async with OpenJournal(tmp_path, max_bytes=16 * 1024**2) as one:
        one.journal.add([lasting, *(batch(number, 1, padding=100_000) for number in range(1, 121))])
        await one.stored()
        for delivered in range(1, 121):
            one.journal.receipt(batch(delivered).trace_id, "").seal()
        async with asyncio.timeout(30):
            for number in range(1000, 2000):  # while others come
                one.journal.add([batch(number, 1)])
                await one.stored()
                one.journal.receipt(batch(number).trace_id, "").seal()
                if one.journal.bytes_held < 100_000:
                    break
        assert one.journal.bytes_held < 100_000

    async with OpenJournal(tmp_path) as other:
        assert lasting.trace_id == found(other.recovered)[0]
        assert 120 > len(other.recovered.batches)


async def test_who_has_got_a_trace_is_known_whatever_the_names_are(tmp_path: Path) -> None:
    long_name = "otlp/" + 600 * "x"
    async with OpenJournal(tmp_path) as one:
        one.journal.add([batch(1), batch(2)])
        await one.stored()
        trace = FinishedTrace(trace_id=batch(1).trace_id, spans=batch(1).spans, reason=FinishReason.ROOT)
        one.journal.add_verdicts(trace, GradedTrace(trace_id=trace.trace_id, spans=trace.spans), lambda: None)
        receipt = one.journal.receipt(trace.trace_id, "")
        assert receipt.expects(long_name)
        assert receipt.expects("other")
        receipt.seal()
        receipt.delivered(long_name)
        await one.stored()

    async with OpenJournal(tmp_path) as other:
        assert {trace.trace_id: frozenset({long_name})} == other.recovered.deliveries
        assert [trace.trace_id] == list(other.recovered.verdicts)
        receipt = other.journal.receipt(trace.trace_id, "", frozenset({long_name}))
        assert not receipt.expects(long_name)
        assert receipt.expects("other")
        receipt.seal()
        receipt.delivered("other")
        await other.stored()

    async with OpenJournal(tmp_path) as last:
        assert [batch(2).trace_id] == found(last.recovered)
        assert not last.recovered.verdicts


async def test_a_map_without_room_is_emptied_by_what_is_deleted(tmp_path: Path) -> None:
    async with OpenJournal(tmp_path) as one:
        one.store._map_size = 4 * 1024**2
        one.store.close(keep_lock=True)
        one.store.open()
        number = await one.fill(limited=False)
        assert 1 == one.metrics.journal_failures.value("full")
        for delivered in range(1, number):
            one.journal.receipt(batch(delivered).trace_id, "").seal()
        async with asyncio.timeout(30):
            while one.journal._changes:
                await asyncio.sleep(0.05)
        await asyncio.sleep(1.5)
        one.journal.require_room(1)

    async with OpenJournal(tmp_path) as other:
        assert [batch(number).trace_id] == found(other.recovered)


async def test_a_directory_is_for_one_process_of_its_owner_on_a_local_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with OpenJournal(tmp_path):
        with pytest.raises(StartupError, match="in use by another process"):
            JournalStore(tmp_path, max_bytes=2**24, syncs=True).open()
        assert 0o700 == tmp_path.stat().st_mode & 0o777
        assert {0o600} == {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
        with pytest.raises(StartupError, match="belongs to user"):
            JournalStore(tmp_path, max_bytes=2**24, syncs=True).open()
    assert "proc" == file_system_of(Path("/proc/self"))


async def test_a_journal_of_another_version_or_of_something_else_is_not_opened(tmp_path: Path) -> None:
    for version, age in (
        (FORMAT_VERSION + 1, "a newer version"),
        (FORMAT_VERSION - 1, "an older version"),
    ):
        directory = tmp_path / str(version)
        async with OpenJournal(directory) as one:
            one.store.write([Change(Table.ABOUT, b"format", [b"%d" % version])])
        with pytest.raises(StartupError, match=age):
            OpenJournal(directory).journal.open(EnvelopeRegistry())
    other = tmp_path / "other"
    other.mkdir()
    (other / "data.mdb").write_bytes(b"not a journal" * 1000)
    with pytest.raises(StartupError, match="cannot be opened"):
        OpenJournal(other).journal.open(EnvelopeRegistry())


async def test_a_journal_whose_bytes_changed_is_not_gone_on_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with OpenJournal(tmp_path) as one:
        one.journal.add([batch(number, 3, padding=3000) for number in range(1, 20)])
        await one.stored()
    file = tmp_path / "data.mdb"
    content = bytearray(file.read_bytes())
    assert 19 * 3 == len(re.findall(b"x{2000,}", content))  # and nothing else of this process's memory
    place = content.index(b"x" * 2000)
    content[place + 50] ^= 1
    file.write_bytes(content)

    with pytest.raises(StartupError, match=r"is damaged \(1 records.*--salvage"):
        OpenJournal(tmp_path).journal.open(EnvelopeRegistry())


@pytest.mark.parametrize(
    ("whole", "changed"),
    [(b"segments", b"sagments"), (b"verdicts", b"verdictz"), (number_key(2), number_key(77))],
    ids=["table", "empty-table", "key"],
)
async def test_records_that_changed_their_place_are_damage_and_not_fewer_records(
    tmp_path: Path, whole: bytes, changed: bytes
) -> None:
    async with OpenJournal(tmp_path) as one:
        for number in range(1, 5):
            one.journal.add([batch(number)])
            await one.stored()
    file = tmp_path / "data.mdb"
    content = file.read_bytes()
    assert whole in content
    file.write_bytes(content.replace(whole, changed))

    with pytest.raises(StartupError, match=r"is damaged"):
        OpenJournal(tmp_path).journal.open(EnvelopeRegistry())


async def test_damage_in_the_list_of_free_pages_is_left_behind(tmp_path: Path) -> None:
    async with OpenJournal(tmp_path) as one:
        for number in range(1, 20):
            one.journal.add([batch(number, 3, padding=3000)])
            await one.stored()
            if number < 18:
                one.journal.receipt(batch(number).trace_id, "").seal()
        await one.stored()
    file = tmp_path / "data.mdb"
    content = bytearray(file.read_bytes())
    for meta in (0, 4096):
        root = int.from_bytes(content[meta + 80 : meta + 88], "little") * 4096
        content[root + 16 : root + 4096] = b"\xff" * 4080
    file.write_bytes(content)

    async with OpenJournal(tmp_path) as other:
        assert [batch(number).trace_id for number in (18, 19)] == found(other.recovered)
        other.journal.add([batch(number, 3, padding=30_000) for number in range(20, 40)])
        await other.stored()
    async with OpenJournal(tmp_path) as last:
        assert [batch(number).trace_id for number in range(18, 40)] == found(last.recovered)


async def test_a_journal_goes_on_as_it_is_where_there_is_no_room_for_a_copy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_room(directory: Path, *, copies: bool) -> Inspection:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, before[1]))
        try:
            return inspect_in_child_process(directory, copies=copies)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    async with OpenJournal(tmp_path) as one:
        one.journal.add([batch(1, padding=30_000)])
        await one.stored()
    monkeypatch.setattr(recovery, "inspect_in_child_process", without_room)

    async with OpenJournal(tmp_path) as other:
        assert [batch(1).trace_id] == found(other.recovered)
    assert "could not be copied" in caplog.text
    assert not (tmp_path / "data.mdb.new").exists()


@pytest.mark.parametrize("pages", [1, 2, 9])
async def test_a_journal_that_was_cut_off_is_told_and_kills_nobody(tmp_path: Path, pages: int) -> None:
    async with OpenJournal(tmp_path) as one:
        one.journal.add([batch(number, 3, padding=3000) for number in range(1, 20)])
        await one.stored()
    os.truncate(tmp_path / "data.mdb", pages * 4096)

    with pytest.raises(StartupError, match="is damaged"):
        OpenJournal(tmp_path).journal.open(EnvelopeRegistry())


async def test_a_file_in_which_nothing_was_written_yet_is_a_new_journal(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").touch()
    async with OpenJournal(tmp_path) as one:
        assert (0, []) == (one.recovered.next_number, found(one.recovered))


async def test_a_trace_that_was_in_work_in_two_crashes_is_quarantined(tmp_path: Path) -> None:
    for crash in range(3):
        journal = OpenJournal(tmp_path)
        recovered = journal.journal.open(EnvelopeRegistry())
        assert (frozenset({batch(1).trace_id}) if crash == 2 else frozenset()) == recovered.quarantined
        if crash == 0:
            journal.journal.add([batch(1), batch(2)])
            journal.store.write(journal.journal._take_changes())
        journal.journal._activity.begin(batch(1).trace_id)
        journal.store.close()  # a crash: nothing is said any more; the second comes before any transaction


async def test_a_crash_counts_though_the_disk_failed_when_the_process_after_it_began(tmp_path: Path) -> None:
    for crash in range(3):
        journal = OpenJournal(tmp_path)
        journal.store.failures = int(crash == 1)
        recovered = journal.journal.open(EnvelopeRegistry())
        assert (crash == 2) == bool(recovered.quarantined)
        if crash == 0:
            journal.journal.add([batch(1)])
        journal.store.write(journal.journal._take_changes())
        journal.journal._activity.begin(batch(1).trace_id)
        journal.store.close()


async def test_a_crash_counts_once_however_often_the_process_is_killed_after_it(tmp_path: Path) -> None:
    for crash in range(4):
        journal = OpenJournal(tmp_path)
        recovered = journal.journal.open(EnvelopeRegistry())
        assert not recovered.quarantined
        if crash == 0:
            journal.journal.add([batch(1)])
        journal.store.write(journal.journal._take_changes())
        if crash == 0:
            journal.journal._activity.begin(batch(1).trace_id)
        journal.store.close()  # killed, after the first time with nothing in work


def _file(path: str, content: bytes) -> KeptFile:
    return KeptFile(path=path, pattern="*.yaml", content=content, kept_unix_nano=1)


async def test_exactly_the_last_good_criteria_files_are_kept(tmp_path: Path) -> None:
    long_path = "/" + "x" * 1000
    async with OpenJournal(tmp_path) as opened:
        opened.journal.keep_criteria([_file("/a", b"1\n2"), _file("/b", b"3"), _file(long_path, b"")])
    async with OpenJournal(tmp_path) as opened:
        opened.journal.keep_criteria([_file("/a", b"4\n5"), _file(long_path, b"")])

    assert {_file("/a", b"4\n5"), _file(long_path, b"")} == set(stored_criteria_files(tmp_path))


async def test_criteria_files_that_would_take_the_room_of_spans_are_not_kept(tmp_path: Path) -> None:
    async with OpenJournal(tmp_path) as opened:
        opened.journal.keep_criteria([_file("/a", b"1")])
        opened.journal.keep_criteria([_file("/a", bytes(MAX_KEPT_BYTES)), _file("/b", b"1")])

    assert [] == stored_criteria_files(tmp_path)


async def test_of_a_damaged_journal_no_criteria_are_taken(tmp_path: Path) -> None:
    async with OpenJournal(tmp_path) as opened:
        opened.journal.keep_criteria([_file("/a", b"agents")])
    data = tmp_path / "data.mdb"
    data.write_bytes(data.read_bytes().replace(b"agents", b"agonts"))

    assert [] == stored_criteria_files(tmp_path / "none")
    assert [] == stored_criteria_files(tmp_path)


async def test_large_transactions_do_not_fault_their_memory_in_anew(tmp_path: Path) -> None:
    # Two megabytes are some 1,000 pages of memory for the record and for LMDB's copy of it.
    store = JournalStore(tmp_path, max_bytes=100_000_000, syncs=False)
    store.open()
    faults = []

    def write() -> None:
        for _ in range(10):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            store.write([Change(Table.SEGMENTS, number_key(0), [bytes(4000)] * 500)])
            faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

    await asyncio.to_thread(write)
    store.close()

    assert max(faults[-5:]) < 100


async def test_log_records_stay_until_they_left_and_no_copy_of_them_waits(tmp_path: Path) -> None:
    records = split_records(logs_request(3)).records
    trace_id = bytes([1]) * 16
    async with OpenJournal(tmp_path) as one:
        receipt = one.journal.add_records(records, None, [SpanBatch(trace_id, records[:2])])
        await one.stored()
        assert receipt.expects("otlp#records")
    async with OpenJournal(tmp_path) as two:
        counts = {each.kind: len(each.batch.spans) for each in two.recovered.batches.values()}
        for place in two.recovered.batches:
            two.journal.leaving_receipt(place).seal()
        await two.stored()
        assert two.journal.bytes_held
    async with OpenJournal(tmp_path) as three:
        (left,) = three.recovered.batches
        (waiting,) = three.recovered.batches.values()
        three.journal.discard_records(trace_id)
        await three.stored()
        assert 0 == three.journal.bytes_held
    async with OpenJournal(tmp_path) as four:
        assert not four.recovered.batches

    assert {BatchKind.RECORDS: 1, BatchKind.TRACE_RECORDS: 2} == counts
    assert {left} == three.recovered.left
    assert (BatchKind.TRACE_RECORDS, trace_id) == (waiting.kind, waiting.batch.trace_id)
    assert [record[1] for record in records[:2]] == [record[1] for record in waiting.batch.spans]


async def test_a_record_of_a_trace_and_of_a_run_leaves_once(tmp_path: Path) -> None:
    records = split_records(logs_request(3)).records
    trace, run = (bytes([number]) * 16 for number in (1, 2))
    async with OpenJournal(tmp_path) as one:
        batches = [SpanBatch(trace, records[:2]), SpanBatch(run, records[1:], is_run=True)]
        one.journal.add_records(records, None, batches)
        await one.stored()
    async with OpenJournal(tmp_path) as two:
        recovered = two.recovered
        for key in (trace, run):
            two.journal.discard_records(key)
        for place in recovered.batches.keys() - recovered.left:
            two.journal.leaving_receipt(place).seal()
        await two.stored()
        assert 0 == two.journal.bytes_held

    held = {each.batch.trace_id: 0 for each in recovered.batches.values()}
    for each in recovered.batches.values():
        held[each.batch.trace_id] += len(each.batch.spans)
    assert {trace: 2, run: 2} == held
    leaving = recovered.batches.keys() - recovered.left
    assert 3 == sum(len(recovered.batches[place].batch.spans) for place in leaving)


async def test_what_is_salvaged_of_both_signals_is_graded_by_replay(tmp_path: Path) -> None:
    async with OpenJournal(tmp_path / "journal") as journal:
        for name in ("genai_openai", "claude_code_logs_alone"):
            for trace_id, trace in traces_in(name).items():
                if trace.spans:
                    journal.journal.add([SpanBatch(trace_id, trace.spans)])
                of_trace = SpanBatch(trace_id, trace.records, is_run=not trace.spans)
                journal.journal.add_records(trace.records, None, [of_trace])
        await journal.stored()

    content, damage = inspect_in_child_process(tmp_path / "journal", tmp_path / "saved.jsonl")
    stream = RecordedStream()
    problems = stream.read([tmp_path / "saved.jsonl"])
    graded = [run.run for run in stream.grade(CriteriaSet([]))]

    assert ("", 0, []) == (damage, len(stream.warnings), problems)
    assert (content["spans"], content["log_records"]) == (stream.spans, stream.records)
    expected = [run for name in ("genai_openai", "claude_code_logs_alone") for run in expected_runs(name)]
    assert in_any_order(expected) == in_any_order([told(run) for run in graded])
