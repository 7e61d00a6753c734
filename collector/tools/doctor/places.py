"""Whether the service can write where its configuration says: journal, store, files. Blocking."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from collector.configuration import ServiceConfig
from collector.tools.doctor.hop import Hop, Trouble, works

_TRIAL_BYTES = 64 * 1024
_LEAST_FREE_BYTES = 16 * 1024 * 1024


def place_hops(config: ServiceConfig) -> Iterator[Hop]:
    """A hop for each place on disk but those of exporters."""
    if config.journal is not None:
        yield folder_hop("journal.directory", config.journal.directory, is_made=True)
    if config.keeps_runs and config.store.path is not None:
        yield file_hop("store.path", config.store.path)
    if config.service.dead_letters is not None:
        yield file_hop("service.dead_letters.path", config.service.dead_letters.path)


def file_hop(where: str, path: Path) -> Hop:
    """Whether lines can be added to the file `path`, which may not be there yet."""
    if path.exists() and not path.is_dir() and not path.is_file():
        return works(where, f"{path} is no regular file: it is written to as it is")
    if path.is_dir():
        return Trouble(f"{path} is a folder", "a file", f"Give the name of a file in {where}.").at(where)
    if path.exists() and not os.access(path, os.W_OK):
        return Trouble(
            f"{path} cannot be written",
            "a file that the service may write",
            "Change its owner or its mode; run this as the user of the service.",
        ).at(where)
    return folder_hop(where, path.parent)


def folder_hop(where: str, folder: Path, *, is_made: bool = False) -> Hop:
    """Whether files can be made and grow in `folder`, which the service makes itself with `is_made`."""
    looked_at = folder
    while is_made and not looked_at.exists() and looked_at != looked_at.parent:
        looked_at = looked_at.parent
    if not looked_at.is_dir():
        what = "is no folder" if looked_at.exists() else "is not there"
        return Trouble(
            f"the folder {looked_at} {what}", "a folder that the service may write",
            "Make the folder or mount the volume, or correct the path.",
        ).at(where)  # fmt: skip
    try:
        with tempfile.NamedTemporaryFile(dir=looked_at, prefix=".tracegrade-doctor-") as trial:
            trial.write(bytes(_TRIAL_BYTES))
            trial.flush()
            os.fsync(trial.fileno())
        free = shutil.disk_usage(looked_at).free
    except OSError as error:
        return Trouble(
            f"nothing can be written in {looked_at}: {error.strerror or error}",
            "a folder that the service may write, with room in it",
            "Free the disk, mount it for writing, or change the owner of the folder; run this as the user of "
            "the service.",
        ).at(where)
    if free < _LEAST_FREE_BYTES:
        return Trouble(
            f"{free >> 10} KiB are free in {looked_at}",
            f"at least {_LEAST_FREE_BYTES >> 20} MiB",
            "Free the disk or give the folder a larger one.",
        ).at(where)
    return works(where, f"{folder} can be written, {free >> 20} MiB are free")
