"""CPU time and memory of a process with all its children, as Linux tells them."""

import os
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_UTIME = 11  # fields of /proc/PID/stat behind the name: utime, stime


def can_measure() -> bool:
    """Whether this system tells of its processes."""
    return (_PROC / "self" / "stat").exists()


def cpu_seconds(pid: int) -> float:
    """CPU time of the process and its children so far."""
    ticks = 0
    for each in _tree(pid):
        fields = (_PROC / str(each) / "stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[_UTIME]) + int(fields[_UTIME + 1])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int) -> tuple[int, int]:
    """What the process and its children have resident now, and the sum of the most each ever had."""
    now = most = 0
    for each in _tree(pid):
        for line in (_PROC / str(each) / "status").read_text().splitlines():
            key, _, value = line.partition(":")
            if key == "VmRSS":
                now += int(value.split()[0]) * 1024
            elif key == "VmHWM":
                most += int(value.split()[0]) * 1024
    return now, most


def process_count(pid: int) -> int:
    """The process and its children."""
    return sum(1 for _ in _tree(pid))


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for children in (_PROC / str(pid) / "task").glob("*/children"):
        for child in children.read_text().split():
            yield from _tree(int(child))
