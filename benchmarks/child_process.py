"""Processes of a measurement: started, spoken to by lines, watched (CPU time, memory), and always ended."""

import os
import queue
import re
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

REPOSITORY = Path(__file__).resolve().parent.parent

_KEPT_LINES = 40
_PAIR = re.compile(r"(\w+)=(\S+)")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_UTIME = 11  # fields of /proc/PID/stat behind the name: utime, stime, and of waited-for children


class MeasurementRefused(Exception):
    """What was measured cannot be trusted; the message says why."""


class ChildProcess:
    """A process that announces itself with a line of `key=value` pairs on stderr, marked by a word.

    One that does not can be told where to listen: then `listens` holds these pairs, and it is ready once it
    does. Used as a context manager: on leaving, the process is asked to end and killed if it does not.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, listens: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._listens = listens
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
        if self._listens is not None:
            self._wait_until_listening(self._listens.values(), time.monotonic() + timeout_seconds)
            return dict(self._listens)
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

    def _wait_until_listening(self, endpoints: Iterable[str], deadline: float) -> None:
        for endpoint in endpoints:
            host, _, port = endpoint.rpartition(":")
            while True:
                self.require_alive()
                try:
                    socket.create_connection((host, int(port)), timeout=1).close()
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise self._failed(f"does not listen on {endpoint}") from None
                time.sleep(0.05)

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


def free_endpoint() -> str:
    """An address of this machine on which nothing listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def cpu_seconds(pid: int) -> float:
    """User and system time of the process, its threads, and its children, ended or alive.

    The kernel counts in ticks of 10 ms.
    """
    return _cpu_ticks(pid) / _TICKS_PER_SECOND


def thread_seconds(pid: int) -> float:
    """CPU time of the process's living threads, counted by the nanosecond: for short work of a process that
    starts and ends no thread meanwhile.
    """
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def _cpu_ticks(pid: int) -> int:
    """Added as whole numbers: a sum of fractions could shrink when a child's time becomes its parent's."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat[stat.rindex(")") + 2 :].split()
    own = sum(int(ticks) for ticks in fields[_UTIME : _UTIME + 4])
    return own + sum(_cpu_ticks(child) for child in _children(pid))


def rss_mib(pid: int) -> float:
    """The resident set of the process now, with those of its living children."""
    return _status_mib(pid, "VmRSS:")


def peak_rss_mib(pid: int) -> float:
    """The largest resident set of the process so far, its living children's peaks added."""
    return _status_mib(pid, "VmHWM:")


def process_count(pid: int) -> int:
    """The process and its living children."""
    return 1 + sum(process_count(child) for child in _children(pid))


def _status_mib(pid: int, key: str) -> float:
    own = 0.0
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key):
            own = int(line.split()[1]) / 1024
    return own + sum(_status_mib(child, key) for child in _children(pid))


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
