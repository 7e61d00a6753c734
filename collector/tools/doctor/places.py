"""Whether files can be written where the configuration says. Blocking."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from collector.configuration import ServiceConfig
from collector.tools.doctor.hop import Hop

_TRIAL_BYTES = 64 * 1024
_LEAST_FREE_BYTES = 16 * 1024 * 1024
_ADVICE = (
    "Create the folder or mount it for writing, with room in it, or correct the path; run this as the user "
    "of the service."
)


def place_hops(config: ServiceConfig) -> Iterator[Hop]:
    """A hop for each place on disk but those of exporters."""
    if config.journal is not None:
        folder = config.journal.directory
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent  # the service creates what is missing
        yield _folder_hop("journal.directory", folder)
    if config.keeps_runs and config.store.path is not None:
        yield file_hop("store.path", config.store.path)
    if config.service.dead_letters is not None:
        yield file_hop("service.dead_letters.path", config.service.dead_letters.path)


def file_hop(where: str, path: Path) -> Hop:
    """Whether lines can be added to the file `path`, which may not exist yet."""
    if path.exists() and (path.is_dir() or not os.access(path, os.W_OK)):
        problem = f"{path} {'is a folder' if path.is_dir() else 'cannot be written'}"
        return Hop(where, problem, "a file that the service may write", "Correct its name or its mode.")
    if path.exists() and not path.is_file():
        return Hop(where, f"{path} is no regular file: it is written to as it is")
    return _folder_hop(where, path.parent)


def _folder_hop(where: str, folder: Path) -> Hop:
    """Whether files can be created and grow in `folder`."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".tracegrade-doctor-") as trial:
            trial.write(bytes(_TRIAL_BYTES))
            trial.flush()
            os.fsync(trial.fileno())
        free = shutil.disk_usage(folder).free
        problem = f"{free >> 10} KiB are free in {folder}" if free < _LEAST_FREE_BYTES else ""
    except OSError as error:
        problem = f"nothing can be written in {folder}: {error.strerror or error}"
    if problem:
        expected = f"a folder that the service may write, with {_LEAST_FREE_BYTES >> 20} MiB of room in it"
        return Hop(where, problem, expected, _ADVICE)
    return Hop(where, f"{folder} can be written, {free >> 20} MiB are free")
