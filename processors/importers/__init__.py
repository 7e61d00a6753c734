"""Criteria from other tools' files, one module for each kind of files."""

from processors.importers.imported_criteria import Imported, usable
from processors.importers.letta import import_letta, read_dataset
from processors.importers.uipath import import_uipath

__all__ = ["Imported", "import_letta", "import_uipath", "read_dataset", "usable"]
