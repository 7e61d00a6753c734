"""What a backend refused for good, kept in a file (`service.dead_letters`) until it is sent again.

A line is the request as OTLP/JSON, with an extra member `tracegrade`: which exporter was refused, when and
why; readers of OTLP/JSON ignore it. The file holds content as it was received, and is its owner's alone.
"""

import asyncio
import fcntl
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from pydantic import Field

from collector.clock import Clock, ends_within
from collector.config_fields import FilePath, PositiveDuration
from collector.errors import RetryableExportError
from collector.exporters.json_lines_file import JsonLinesFile
from collector.otlp import logs_request_to_json, request_to_json
from collector.task_supervisor import TaskOwner
from collector.telemetry import Metrics, RateLimitedLogger
from collector.work_thread import WorkThread
from processors.documents import StrictModel
from processors.model import JsonObject, decode_json, encode_json, time_text

PRIVATE = 0o600
_KEY = b',"tracegrade":'
_PURGE_INTERVAL_SECONDS = 3600.0
OUTCOMES = ("kept", "full", "failed", "expired")

_logger = logging.getLogger(__name__)

DeadLetterKind: TypeAlias = Literal["spans", "results", "log_records"]
DeadLetterBox: TypeAlias = Callable[[bytes, int, str], Awaitable[None]]
"""Keeps what one queue's backend refused: the request, how many items it has, and the reason."""


class DeadLettersConfig(StrictModel):
    """`service.dead_letters`: a file for what backends refuse for good."""

    path: FilePath = Field(
        description="The file; lines are appended. Its content is as received, unencrypted."
    )
    max_mib: int = Field(
        default=256, ge=1, description="Maximum size of the file; beyond it requests are dropped and counted."
    )
    max_age: PositiveDuration = Field(
        default=7 * 86_400.0, description="Lines are removed after this time, and counted."
    )


class DeadLetters:
    """The file, for all exporters. What cannot be kept is counted; it delays no queue longer than a write."""

    def __init__(self, config: DeadLettersConfig, metrics: Metrics, clock: Clock) -> None:
        self._config = config
        self._metrics = metrics
        self._clock = clock
        self._file = JsonLinesFile(config.path, mode=PRIVATE)
        self._thread = WorkThread("dead-letters")
        self._closing = asyncio.Event()
        self._log = RateLimitedLogger(_logger, clock)

    async def start(self, tasks: TaskOwner | None = None) -> None:
        """Open the file and remove what is too old, now and every hour; raises `StartupError`."""
        self._file.open_for("service.dead_letters.path")
        self._thread.start()
        if tasks is not None:
            tasks.create_task(self._purge_regularly(), name="remove old dead letters")

    def box(self, exporter: str, kind: DeadLetterKind) -> DeadLetterBox:
        """Where the queue of an exporter puts what was refused."""
        return partial(self._keep, exporter, kind)

    async def _keep(
        self, exporter: str, kind: DeadLetterKind, request: bytes, count: int, reason: str
    ) -> None:
        header: JsonObject = {
            "exporter": exporter,
            "kind": kind,
            "count": count,
            "time": time_text(self._clock.unix_nano()),
            "reason": reason,
        }
        try:
            outcome = await self._thread.run(self._write, request, header)
        except RetryableExportError:  # it is closed, or was never started
            outcome = "failed"
        self._metrics.dead_letters.add(count, exporter, outcome)
        if outcome != "kept":
            self._log.error(
                outcome,
                "A rejected request could not be stored as a dead letter.",
                exporter=exporter,
                path=str(self._config.path),
                **{kind: count},
            )

    async def shutdown(self, deadline: float) -> None:
        """Close the file behind what is being written."""
        self._closing.set()
        self._thread.close(self._file.close)

    def _write(self, request: bytes, header: JsonObject) -> Literal["kept", "full", "failed"]:
        to_json = logs_request_to_json if header["kind"] == "log_records" else request_to_json
        line = to_json(request)[:-1] + _KEY + encode_json(header) + b"}\n"
        try:
            if self._size() + len(line) > self._config.max_mib * 1024 * 1024:
                return "full"
            self._file.append(line)
            self._file.sync()
        except OSError as error:
            self._log.error("cannot_write", "Dead letters cannot be written.", error=str(error))
            return "failed"
        return "kept"

    def _size(self) -> int:
        try:
            return os.stat(self._config.path).st_size
        except FileNotFoundError:  # a redrive has moved it
            return 0

    def _is_too_old(self, header: JsonObject) -> bool:
        oldest = max(self._clock.unix_nano() - int(self._config.max_age * 1e9), 0)
        return str(header.get("time")) < time_text(oldest)

    async def _purge_regularly(self) -> None:
        while not self._closing.is_set():
            try:
                expired = await self._thread.run(_remove_lines, self._config.path, self._is_too_old)
            except OSError as error:
                self._log.error("cannot_purge", "Old dead letters cannot be removed.", error=str(error))
            else:
                for exporter, count in expired.items():
                    self._metrics.dead_letters.add(count, exporter, "expired")
            await ends_within(_PURGE_INTERVAL_SECONDS, self._closing.wait(), self._clock)


def read_header(line: bytes) -> JsonObject:
    """What a line records about its request; nothing if it is no dead letter."""
    place = line.rfind(_KEY)
    try:
        header = decode_json(line[place + len(_KEY) :].rstrip()[:-1]) if place >= 0 else {}
    except ValueError:
        header = {}
    return header if isinstance(header, dict) else {}


def _remove_lines(path: Path, is_unwanted: Callable[[JsonObject], bool]) -> Counter[str]:
    """Remove lines from a file of dead letters; how many spans or records, by exporter. Blocking."""
    removed: Counter[str] = Counter()
    with locked(path) as file:
        if file is None or not any(is_unwanted(header) for line in file if (header := read_header(line))):
            return removed
        file.seek(0)
        rest = path.with_name(path.name + ".tmp")
        with open(os.open(rest, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE), "wb") as copy:
            for line in file:
                header = read_header(line)
                if header and is_unwanted(header):
                    count = header.get("count")
                    removed[str(header.get("exporter"))] += count if isinstance(count, int) else 0
                else:
                    copy.write(line)
            copy.flush()
            os.fsync(copy.fileno())
        os.replace(rest, path)
    return removed


@contextmanager
def locked(path: Path) -> Iterator[BinaryIO | None]:
    """The file at `path`, which no one else moves or rewrites meanwhile; None if there is none."""
    while True:
        try:
            file = path.open("rb")
        except FileNotFoundError:
            yield None
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                is_same = os.path.samestat(os.stat(path), os.fstat(file.fileno()))
            except FileNotFoundError:
                continue
            if is_same:
                yield file
                return
