"""Criteria from other tools' files, one module for each kind of files."""

from processors.importers.imported_criteria import (
    EVERY_AGENT,
    Imported,
    usable,
    write_criteria,
    write_criteria_file,
)
from processors.importers.letta import import_letta, read_dataset
from processors.importers.uipath import import_uipath

__all__ = [
    "EVERY_AGENT", "Imported", "import_letta", "import_uipath", "read_dataset", "usable", "write_criteria",
    "write_criteria_file",
]  # fmt: skip
