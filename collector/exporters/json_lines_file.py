"""A file that grows by whole lines: a write that fails leaves no half line behind. Blocking."""

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from collector.errors import RetryableExportError, StartupError
from collector.work_thread import WorkThread
from processors.model import decode_json

_BLOCK_BYTES = 64 * 1024


class JsonLinesFile:
    """Appends JSON lines to one file. One writer at a time; every method may block on the disk.

    When the file was renamed or removed (log rotation), the next lines go to a new file of the same name.
    Pipes and terminals are written to as they are.
    """

    def __init__(self, path: Path, *, mode: int = 0o644) -> None:
        """`mode` is that of a new file; with 0600 an existing file becomes private as well."""
        self.path = path
        self._mode = mode
        self._file = -1
        self._is_regular = True
        self._torn_at: int | None = None

    def open(self) -> None:
        """Open or create the file and repair its end; raises OSError.

        A last line that a crash cut off in the middle of an object is removed; any other last line
        without an end gets one.
        """
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, self._mode)
        try:
            self._is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)
            if self._is_regular:
                if self._mode == 0o600:
                    os.fchmod(self._file, self._mode)
                self._repair_end()
        except OSError:
            self.close()
            raise

    def open_for(self, setting: str) -> None:
        """As `open`; raises `StartupError`, which names the path's setting."""
        try:
            self.open()
        except OSError as error:
            raise StartupError(
                f"{setting}: {self.path} cannot be written: {error.strerror or error}"
            ) from error

    def append(self, lines: bytes) -> None:
        """Write `lines`, each with its end, wholly or not at all; raises OSError."""
        if self._is_regular:
            self._reopen_if_moved()
            if self._torn_at is not None:
                os.ftruncate(self._file, self._torn_at)
                self._torn_at = None
        start = os.fstat(self._file).st_size
        view = memoryview(lines)
        try:
            while view:
                view = view[os.write(self._file, view) :]
        except OSError:
            if self._is_regular:
                self._torn_at = start
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, start)
                    self._torn_at = None
            raise

    def sync(self) -> None:
        """Return when the disk has what was appended; raises OSError."""
        if self._is_regular and self._file >= 0:
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file; safe before `open` and twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _reopen_if_moved(self) -> None:
        if self._file >= 0:
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(self.path), os.fstat(self._file)):
                    return
            self.close()
            self._torn_at = None
        self.open()

    def _repair_end(self) -> None:
        size = start = os.fstat(self._file).st_size
        tail = b""
        with open(self.path, "rb") as reader:
            while start and b"\n" not in tail:
                block = min(start, _BLOCK_BYTES)
                start -= block
                reader.seek(start)
                tail = reader.read(block) + tail
        line = tail[tail.rfind(b"\n") + 1 :]
        if not line:
            return
        if line.startswith(b"{") and not _is_json(line):
            os.ftruncate(self._file, size - len(line))
        else:
            os.write(self._file, b"\n")


class JsonLinesWriter:
    """Appends to a `JsonLinesFile` in a thread of its own.

    Args:
        path: The file.
        name: Of the exporter, for the thread.
        setting: The setting of the path, for messages.
    """

    def __init__(self, path: Path, name: str, setting: str) -> None:
        self._file = JsonLinesFile(path)
        self._thread = WorkThread(f"export-{name}")
        self._setting = setting

    def start(self) -> None:
        """Open the file; raises `StartupError`."""
        self._file.open_for(self._setting)
        self._thread.start()

    async def append(self, make_lines: Callable[[], bytes]) -> None:
        """Write what `make_lines` gives in the thread; raises `RetryableExportError`."""
        try:
            await self._thread.run(lambda: self._file.append(make_lines()))
        except OSError as error:
            raise RetryableExportError(error.strerror or str(error)) from error

    def close(self) -> None:
        """Close the file behind what is being written; safe before `start` and twice."""
        self._thread.close(self._file.close)


def _is_json(line: bytes) -> bool:
    try:
        decode_json(line)
    except ValueError:
        return False
    return True
