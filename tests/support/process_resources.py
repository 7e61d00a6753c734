"""What a process of this machine takes: memory and files."""

from pathlib import Path


def resident_mib(process: int) -> float:
    """Mebibytes of memory that it has in use, without what the system could read again from its files."""
    return _status_kib(process, "RssAnon:") / 1024


def peak_mib(process: int) -> float:
    """The most mebibytes of memory that it ever had in use."""
    return _status_kib(process, "VmHWM:") / 1024


def open_files(process: int) -> int:
    """How many file descriptors it has."""
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def _status_kib(process: int, key: str) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1])
    raise LookupError(key)
