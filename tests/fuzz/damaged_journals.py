"""A journal whose file was damaged, and the process that would go on with it."""

import asyncio
import os
import signal
import struct
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import lmdb

from collector.clock import SystemClock
from collector.errors import StartupError
from collector.journal import Journal, JournalConfig
from collector.journal.activity import LastActivity
from collector.journal.recovery import read_journal
from collector.journal_file.inspection import inspect
from collector.journal_file.store import Change, JournalFailed, JournalStore, Table, copy_journal, take_copy
from collector.otlp import EnvelopeRegistry
from collector.task_supervisor import TaskSupervisor
from collector.telemetry import Metrics
from collector.trace import FinishedTrace, GradedTrace, SpanBatch
from processors.model import FinishReason
from tests.support.deliveries import make_spans
from tests.support.graded_runs import weather_run

_CHANGE = struct.Struct("<BHB")
"""One change of the file: what is done, at which 64 bytes, and a number."""

_WHOLE, _DAMAGED, _BROKEN = 0, 1, 2
_MAX_BYTES = 1 << 24
_PATIENCE_SECONDS = 20.0


def recover_damaged(data: bytes) -> None:
    """Start on a journal that was damaged as `data` says: it is refused, or read and written.

    As the service does, one process looks first, and may be killed by what it reads. Where that finds
    nothing wrong, the one that goes on with its copy must neither die nor hang.
    """
    with tempfile.TemporaryDirectory(prefix="journal-") as folder:
        directory = Path(folder)
        (directory / "data.mdb").write_bytes(damaged(_journal(), data))
        if _in_child(lambda: _look_at(directory)) == _WHOLE:
            ended = _in_child(lambda: _go_on_with(directory))
            assert ended in (_WHOLE, _DAMAGED), f"the process that went on ended with {ended}"


def damaged(content: bytes, data: bytes) -> bytes:
    """`content` with the changes in `data`: pages cut off, emptied, overwritten, exchanged, single bits."""
    out = bytearray(content)
    for kind, place, number in _CHANGE.iter_unpack(data[: len(data) // _CHANGE.size * _CHANGE.size]):
        at = place * 64 % len(out)
        page = at & ~4095
        match kind % 8:
            case 0:
                del out[max(at, 4096) :]
            case 1:
                out[at : at + 64] = bytes(64)
            case 2:
                out[page : page + 4096] = bytes([number]) * 4096
            case 3:
                other = number * 4096 % len(out) & ~4095
                out[page : page + 4096] = content[other : other + 4096].ljust(4096, b"\0")
            case _:
                out[(at + number % 64) % len(out)] ^= kind >> 3 or 1
    return bytes(out)


def _look_at(directory: Path) -> int:
    try:
        if inspect(directory).damaged_records:
            return _DAMAGED
    except lmdb.Error:
        return _DAMAGED
    copy_journal(directory)
    return _WHOLE


def _go_on_with(directory: Path) -> int:
    store = JournalStore(directory, max_bytes=_MAX_BYTES, syncs=False)
    with suppress(StartupError, JournalFailed):
        take_copy(directory)
        store.open()
        read_journal(store, directory, LastActivity(0, ()), EnvelopeRegistry())
        for number in range(1, 4):
            store.write([Change(Table.ATTEMPTS, b"%d" % number, [bytes(3000 * number)])])
            store.write([Change(Table.ATTEMPTS, b"%d" % number, None)])
        return _WHOLE
    return _DAMAGED


def _in_child(work: Callable[[], int]) -> int:
    """What `work` gives in a child process; negative: the signal that ended it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which stay behind
        child = os.fork()
    if not child:
        code = _BROKEN
        try:
            for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT):
                signal.signal(number, signal.SIG_DFL)  # a fuzzer that runs this reports its own end
            signal.alarm(int(_PATIENCE_SECONDS))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            code = work()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@cache
def _journal() -> bytes:
    """A journal with spans of ten traces, small and large, some of them graded or forgotten again."""
    with tempfile.TemporaryDirectory(prefix="journal-") as folder:
        asyncio.run(_fill(Path(folder)))
        return (Path(folder) / "data.mdb").read_bytes()


async def _fill(directory: Path) -> None:
    config = JournalConfig.model_validate({"directory": directory, "max_bytes": _MAX_BYTES})
    journal = Journal(config, metrics=Metrics(), clock=SystemClock())
    tasks = TaskSupervisor(lambda: None)
    journal.open(EnvelopeRegistry())
    journal.start(tasks)
    for number in range(1, 15):
        spans = make_spans(number, 1 + number % 5, padding=300 * number)
        batch = SpanBatch(number.to_bytes(16, "big"), spans, "tenant" if number % 2 else "")
        journal.add([batch])
        await journal.flush(time.monotonic() + 10)
        trace = FinishedTrace(
            trace_id=batch.trace_id, spans=spans, reason=FinishReason.ROOT, tenant=batch.tenant
        )
        if number % 3:
            graded = GradedTrace(trace_id=batch.trace_id, spans=spans, runs=[weather_run()])
            journal.add_verdicts(trace, graded, lambda: None)
            receipt = journal.receipt(batch.trace_id, batch.tenant)
            receipt.expects("otlp")
            if number > 10:
                receipt.seal()
                receipt.delivered("otlp")
        await journal.flush(time.monotonic() + 10)
    await journal.shutdown()
    await tasks.cancel()
