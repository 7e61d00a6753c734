"""Finds the dialects: every module in `processors/dialects/`, without a list to keep."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import processors.dialects
from processors.frameworks.dialect import Dialect


@cache
def discover_dialects() -> Sequence[Dialect]:
    """All dialects, lowest rank first, then by name. A module without a `DIALECT` is an error."""
    found: list[Dialect] = []
    for module in iter_modules(processors.dialects.__path__):
        dialect: Dialect = import_module(f"processors.dialects.{module.name}").DIALECT
        found.append(dialect)
    return tuple(sorted(found, key=lambda dialect: (dialect.rank, dialect.name)))
