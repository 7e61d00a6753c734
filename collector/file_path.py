"""Paths of files, as configuration writes them."""

from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator


def _checked(path: Path) -> Path:
    if not path.name:
        raise ValueError("expected the path of a file")
    return path


FilePath: TypeAlias = Annotated[Path, AfterValidator(_checked)]
"""A configuration field that names a file; an empty text, `.` and `/` name none."""
