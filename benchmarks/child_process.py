"""Processes of a measurement: started, spoken to by lines, watched, and ended whatever happens."""

import queue
import re
import subprocess
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

REPOSITORY = Path(__file__).resolve().parent.parent

_KEPT_LINES = 40
_PAIR = re.compile(r"(\w+)=(\S+)")


class MeasurementRefused(Exception):
    """What was measured cannot be trusted; the message says why."""


class ChildProcess:
    """A process that announces itself with a line of `key=value` pairs on stderr, marked by a word.

    Used as a context manager: on leaving, the process is asked to end and killed if it does not.
    """

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._announcements: queue.Queue[str | None] = queue.Queue()
        self._last_lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in (
                (self._process.stdout, self._answers),
                (self._process.stderr, self._announcements),
            )
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ready(self, timeout_seconds: float = 30.0) -> dict[str, str]:
        """The pairs of the first line on stderr that contains the word `ready`."""
        while True:
            line = self._next(self._announcements, timeout_seconds, "announce itself")
            if "ready" in line.partition(":")[0].split():
                return dict(_PAIR.findall(line))

    def ask(self, line: str, timeout_seconds: float) -> str:
        """Write a line to stdin and return the next line of stdout."""
        if self._process.stdin is None:
            raise MeasurementRefused(f"{self.name}: its stdin is closed")
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed("has ended") from None
        return self._next(self._answers, timeout_seconds, f"answer {line!r}")

    def require_alive(self) -> None:
        """Raise `MeasurementRefused` if the process has ended."""
        if self._process.poll() is not None:
            raise self._failed("has ended")

    def last_lines(self) -> str:
        """The last lines of its stdout and stderr, indented."""
        return "\n".join(f"    {line}" for line in self._last_lines) or "    (none)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(5)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _read(self, stream: IO[str] | None, lines: queue.Queue[str | None]) -> None:
        if stream is not None:
            for line in stream:
                self._last_lines.append(line.rstrip())
                lines.put(line.rstrip())
        lines.put(None)

    def _next(self, lines: queue.Queue[str | None], timeout_seconds: float, task: str) -> str:
        try:
            line = lines.get(timeout=timeout_seconds)
        except queue.Empty:
            raise self._failed(f"did not {task} within {timeout_seconds:g} s") from None
        if line is None:
            raise self._failed(f"ended before it could {task}")
        return line

    def _failed(self, what: str) -> MeasurementRefused:
        return MeasurementRefused(f"{self.name} {what}; its last lines:\n{self.last_lines()}")
