"""The journal on disk: tables of records in one LMDB file. Everything here blocks.

LMDB keeps the file consistent over a crash of the process at any moment, and over a power cut as long as
every transaction is synced. It has no checksums: records carry their own (`records`).
"""

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import NamedTuple, TypeAlias

import lmdb

from collector.errors import StartupError
from collector.journal_file.records import FORMAT_VERSION, DamagedRecord, seal, unseal

_FILE, _LOCK_FILE = "data.mdb", "lock"
_COPY = "data.mdb.new"
_ROOM_BYTES = 64 * 1024 * 1024
FORMAT_KEY = b"format"
"""Of the version of the format, in the table `ABOUT`."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""
_NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "beegfs",
     "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse"}
)  # fmt: skip


class Table(Enum):
    """The tables of the journal."""

    SEGMENTS = b"segments"
    """The requests of one transaction, numbered in the order of admission, until all is delivered."""
    VERDICTS = b"verdicts"
    """How the traces of one transaction were graded, until they are delivered."""
    NOTES = b"notes"
    """Which exporters have received a trace; which batches have left, or are no longer needed."""
    FINISHED = b"finished"
    """Finished traces with their span ids, those of one transaction together."""
    ATTEMPTS = b"attempts"
    """In how many crashes traces were being graded."""
    CRITERIA = b"criteria"
    """The last good text of each criteria file, by its path."""
    ABOUT = b"about"
    """The format of the journal."""


def place_of(table: Table, key: bytes) -> bytes:
    """What a record's checksum covers besides the content: nothing in `ABOUT`, which all versions read."""
    return b"" if table is Table.ABOUT else table.value + key


class Change(NamedTuple):
    """A record to be written, its content in parts, or deleted (no content)."""

    table: Table
    key: bytes
    content: Sequence[bytes] | None


Record: TypeAlias = tuple[bytes, bytes]
"""A key and the content."""


class JournalFailed(Exception):
    """The disk did not store what was written; the journal has to be reopened."""


class JournalFull(JournalFailed):
    """There is no room for more until something is deleted."""


def has_file(directory: Path) -> bool:
    """Whether there is a journal in the directory; a file in which nothing was ever written is none."""
    file = directory / _FILE
    return file.is_file() and file.stat().st_size > 0


class _Journal:
    """Reads the tables of an open environment."""

    def __init__(self) -> None:
        self._environment: lmdb.Environment | None = None
        self._tables: dict[Table, lmdb._Database] = {}

    def records(self, table: Table) -> Iterator[Record]:
        """The records of a table in the order of their keys.

        Raises:
            DamagedRecord: one of them is not what was written.
        """
        for key, record in self.sealed_records(table):
            yield key, unseal(place_of(table, key), record)

    def record(self, table: Table, key: bytes) -> bytes | None:
        """The content of one record, if there is one.

        Raises:
            DamagedRecord: it is not what was written.
            JournalFailed: it cannot be read.
        """
        if self._environment is None:
            raise JournalFailed("the journal is not open")
        try:
            with self._environment.begin() as transaction:
                match = transaction.get(key, db=self._tables[table])
        except lmdb.Error as error:
            raise JournalFailed(str(error)) from error
        return None if match is None else unseal(place_of(table, key), match)

    def version(self) -> int | None:
        """The format of the journal; None where nothing was ever written.

        Raises:
            DamagedRecord: it is not what was written.
        """
        if self._environment is None:
            return None
        with self._environment.begin() as transaction:
            if Table.ABOUT in self._tables:
                match = transaction.get(FORMAT_KEY, db=self._tables[Table.ABOUT])
                if match is not None:
                    return int(unseal(place_of(Table.ABOUT, FORMAT_KEY), match))
            if any(transaction.stat(table)["entries"] for table in self._tables.values()):
                raise DamagedRecord("the version of its format is missing")
        return None

    def sealed_records(self, table: Table) -> Iterator[Record]:
        """The same with their checksums, which are not looked at."""
        if self._environment is None:
            raise JournalFailed("the journal is not open")
        if table not in self._tables:
            return
        try:
            with (
                self._environment.begin() as transaction,
                transaction.cursor(db=self._tables[table]) as cursor,
            ):
                count = 0
                for record in cursor:
                    count += 1
                    yield record
                expected = transaction.stat(self._tables[table])["entries"]
                if count != expected:
                    raise DamagedRecord(f"of {expected} records of {table.name.lower()} {count} can be found")
        except lmdb.Error as error:
            raise DamagedRecord(f"the table of {table.name.lower()} cannot be read: {error}") from error

    def _close_environment(self) -> None:
        environment, self._environment = self._environment, None
        self._tables = {}
        if environment is not None:
            environment.close()


class ReadOnlyJournal(_Journal):
    """A journal that no process writes to. Nothing is checked before it is read.

    Raises:
        lmdb.Error: the file is none of LMDB's, or is not there.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__()
        environment = lmdb.open(str(directory), max_dbs=len(Table), readonly=True, create=False, lock=False)
        self._environment = environment
        for table in Table:
            try:
                self._tables[table] = environment.open_db(table.value, create=False)
            except lmdb.NotFoundError:
                continue

    @property
    def lost_tables(self) -> int:
        """How many tables of the file have unknown names; those of another version among them."""
        assert self._environment is not None
        entries: int = self._environment.stat()["entries"]
        return entries - len(self._tables)

    def close(self) -> None:
        """Close the file."""
        self._close_environment()


def copy_journal(directory: Path) -> None:
    """Copy the records of a journal that is not in use to a new file next to it, and sync it.

    LMDB's list of free pages has no checksum, and nothing reads it before a record is written: damaged, it
    kills the process that writes, or lets it overwrite records. The copy is laid out anew.

    There is no copy where there is no room for it, or the journal is of another version.

    Raises:
        DamagedRecord: a record cannot be read.
    """
    copy = directory / _COPY
    copy.unlink(missing_ok=True)
    room = (directory / _FILE).stat().st_size * 2 + _ROOM_BYTES
    with closing(ReadOnlyJournal(directory)) as journal:
        if journal.version() != FORMAT_VERSION:
            return
        try:
            with lmdb.open(
                str(copy), room, subdir=False, mode=0o600, max_dbs=len(Table), sync=False, lock=False
            ) as new:
                for table in Table:
                    database = new.open_db(table.value)
                    for key, record in journal.sealed_records(table):
                        with new.begin(database, write=True) as transaction:
                            transaction.put(key, record, append=True)
                new.sync(True)
        except (lmdb.Error, OSError):
            copy.unlink(missing_ok=True)


def take_copy(directory: Path) -> bool:
    """Replace the journal by its copy, if there is one; a power cut leaves either."""
    copy = directory / _COPY
    if not copy.exists():
        return False
    copy.replace(directory / _FILE)
    folder = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True


class JournalStore(_Journal):
    """The tables of one directory. One process at a time, one thread at a time.

    Args:
        directory: Created if it does not exist.
        max_bytes: Limit for records; the file may be half as large again, so that there is always room for a
            transaction that deletes.
        syncs: Whether `write` returns only when the disk has it.
    """

    def __init__(self, directory: Path, *, max_bytes: int, syncs: bool) -> None:
        super().__init__()
        self._directory = directory
        self._map_size = max_bytes + max_bytes // 2 + _ROOM_BYTES
        self._syncs = syncs
        self._lock = -1

    def open(self, check: Callable[[], None] | None = None) -> None:
        """Open the directory for this process alone; also after a failure.

        Args:
            check: Called when no other process has the directory, before the file is mapped.

        Raises:
            StartupError: it cannot be used; the message says why and what to do.
        """
        directory = self._directory
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = directory.stat().st_uid
            if owner != os.geteuid():
                raise StartupError(
                    f"journal.directory: {directory} belongs to user {owner}, not to user {os.geteuid()} "
                    "of this process: expected a folder of its own, which it creates itself"
                )
            file_system = file_system_of(directory)
            if file_system in _NETWORK_FILE_SYSTEMS:
                raise StartupError(
                    f"journal.directory: {directory} is on a network filesystem ({file_system}), which does "
                    "not keep what LMDB relies on: expected a local disk or a block volume"
                )
            directory.chmod(0o700)
            self._take_lock()
            if check is not None:
                check()
            _keep_freed_memory()
            self._open_environment()
        except lmdb.VersionMismatchError as error:
            raise self._unusable(f"was written by another version of LMDB ({error})") from error
        except lmdb.Error as error:
            raise self._unusable(f"cannot be opened ({error})") from error
        except OSError as error:
            raise StartupError(
                f"journal.directory: {directory} cannot be used: {error.strerror or error}"
            ) from error

    def write(self, changes: Sequence[Change]) -> None:
        """All of `changes` in one transaction, or none.

        Raises:
            JournalFull: there is no room.
            JournalFailed: the disk refused.
        """
        if self._environment is None:
            raise JournalFailed("the journal is not open")
        try:
            with self._environment.begin(write=True) as transaction:
                for table, key, content in changes:
                    if content is None:
                        transaction.delete(key, db=self._tables[table])
                        continue
                    transaction.put(key, seal(place_of(table, key), content), db=self._tables[table])
        except lmdb.MapFullError as error:
            raise JournalFull("the journal is full") from error
        except (lmdb.Error, OSError) as error:
            raise JournalFailed(str(error)) from error

    def sync(self) -> None:
        """Sync what was written.

        Raises:
            JournalFailed: it refused.
        """
        if self._environment is None:
            raise JournalFailed("the journal is not open")
        try:
            self._environment.sync(True)
        except (lmdb.Error, OSError) as error:
            raise JournalFailed(str(error)) from error

    def close(self, *, keep_lock: bool = False) -> None:
        """Close the file. May be called twice. With `keep_lock` the directory stays with this process."""
        self._close_environment()
        if self._lock >= 0 and not keep_lock:
            os.close(self._lock)
            self._lock = -1

    def _take_lock(self) -> None:
        if self._lock >= 0:
            return
        lock = os.open(self._directory / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise StartupError(
                f"journal.directory: {self._directory} is in use by another process: "
                "expected a directory for each"
            ) from error
        self._lock = lock

    def _open_environment(self) -> None:
        previous = os.umask(0o077)
        try:
            environment = lmdb.open(
                str(self._directory),
                map_size=self._map_size,
                max_dbs=len(Table),
                mode=0o600,
                sync=self._syncs,
                metasync=self._syncs,
                lock=False,
                readahead=False,
            )
        finally:
            os.umask(previous)
        self._environment = environment
        self._tables = {table: environment.open_db(table.value) for table in Table}
        version = self.version()
        if version is None:
            record = seal(place_of(Table.ABOUT, FORMAT_KEY), [b"%d" % FORMAT_VERSION])
            with environment.begin(self._tables[Table.ABOUT], write=True) as transaction:
                transaction.put(FORMAT_KEY, record)
        elif version != FORMAT_VERSION:
            self.close()
            age = "a newer" if version > FORMAT_VERSION else "an older"
            raise StartupError(
                f"journal.directory: {self._directory} was written by {age} version of tracegrade (format "
                f"{version}; this one knows {FORMAT_VERSION}): expected another directory, or that version"
            )

    def _unusable(self, what: str) -> StartupError:
        return StartupError(
            f"journal.directory: {self._directory} {what}: inspect it with `tracegrade journal --inspect "
            f"{self._directory}`, save what can be read with `--salvage`, then move it away"
        )


def _keep_freed_memory() -> None:
    """Have the allocator retain the megabytes that the next transaction takes again.

    Otherwise glibc returns them to the kernel with every transaction, and faulting each page in anew costs
    more than writing it. Other allocators have no such setting.
    """
    set_parameter = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_parameter is not None:
        set_parameter(_MMAP_THRESHOLD, 32 * 1024 * 1024)  # the most that it takes
        set_parameter(_TRIM_THRESHOLD, 64 * 1024 * 1024)


def file_system_of(directory: Path) -> str:
    """The type of the file system that a directory is on; empty if unknown."""
    result, longest = "", -1
    path = str(directory.resolve())
    try:
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            for line in mounts:
                fields, _, rest = line.partition(" - ")
                mount_point = fields.split()[4].encode().decode("unicode_escape")
                holds = path == mount_point or path.startswith(mount_point.rstrip("/") + "/")
                if holds and len(mount_point) >= longest:
                    result, longest = rest.split()[0], len(mount_point)
    except (OSError, IndexError):
        return ""
    return result
