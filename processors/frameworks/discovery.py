"""Finds the dialects: the reader of every folder in `processors/frameworks/`, without a list to keep."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import processors.frameworks
from processors.frameworks.dialect import Dialect


@cache
def discover_dialects() -> Sequence[Dialect]:
    """All dialects, lowest rank first, then by name. A reader without a `DIALECT` is an error."""
    found: list[Dialect] = []
    for module in iter_modules(processors.frameworks.__path__):
        if module.ispkg and module.name != "shapes":
            dialect: Dialect = import_module(f"processors.frameworks.{module.name}.reader").DIALECT
            found.append(dialect)
    return tuple(sorted(found, key=lambda dialect: (dialect.rank, dialect.name)))
