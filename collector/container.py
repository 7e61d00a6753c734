"""The memory and the cores of the container that the service runs in, by its control groups."""

import os
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/")
_UNLIMITED = 1 << 60
"""Without a memory limit, cgroups of version 1 show a little less than 2^63."""


def container_memory(root: Path = _ROOT) -> int | None:
    """The lowest memory limit of the control groups that this process is in, in bytes; None without one."""
    texts = [
        _read(group / name)
        for group in _control_groups(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
    ]
    limits = [int(text) for text in texts if text.isdigit()]
    return min([limit for limit in limits if 0 < limit < _UNLIMITED], default=None)


def usable_cores(root: Path = _ROOT) -> int:
    """How many cores this process can keep busy: its set of cores, or the lowest quota of its control groups.

    A quota is rounded down, to one at least: beyond it all processes are stopped until the next period, the
    one that receives as well.
    """
    quotas = (_quota(group) for group in _control_groups(root, "cpu"))
    cores = len(os.sched_getaffinity(0))
    return min([cores, *(max(1, int(quota)) for quota in quotas if quota is not None)])


def _quota(group: Path) -> float | None:
    """Cores that a control group of either version allows; None without a limit, or with an odd one."""
    quota, period = (*_read(group / "cpu.max").split(), "", "")[:2]
    if not quota:
        quota, period = _read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")
    if not quota.isdigit() or not period.isdigit() or not int(quota) or not int(period):
        return None  # "max", or -1 in version 1
    return int(quota) / int(period)


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _control_groups(root: Path, controller: str) -> Iterator[Path]:
    """Folders of the process's own groups and of the ones above, as far as it sees them.

    A container mostly sees its own group as the top, whatever path /proc shows.
    """
    groups = root / "sys/fs/cgroup"
    for line in ["0::/", f"0:{controller}:/", *_read(root / "proc/self/cgroup").splitlines()]:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            top = groups
        elif controller in controllers.split(","):
            top = groups / controller
        else:
            continue
        place = top / path.strip("/")
        yield place
        while place != top:
            place = place.parent
            yield place
