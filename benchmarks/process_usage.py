"""What a process has used, from /proc: CPU time of all its threads and children, and its peak memory."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_UTIME = 11  # fields of /proc/PID/stat behind the name: utime, stime, and of waited-for children


def cpu_seconds(pid: int) -> float:
    """User and system time of the process, its threads, and its children, ended or alive.

    The kernel counts in ticks of 10 ms.
    """
    return _cpu_ticks(pid) / _TICKS_PER_SECOND


def _cpu_ticks(pid: int) -> int:
    """Added as whole numbers: a sum of fractions could shrink when a child's time becomes its parent's."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat[stat.rindex(")") + 2 :].split()
    own = sum(int(ticks) for ticks in fields[_UTIME : _UTIME + 4])
    return own + sum(_cpu_ticks(child) for child in _children(pid))


def peak_rss_mib(pid: int) -> float:
    """The largest resident set of the process so far, its living children's peaks added."""
    own = 0.0
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            own = int(line.split()[1]) / 1024
    return own + sum(peak_rss_mib(child) for child in _children(pid))


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]
