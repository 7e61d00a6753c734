"""Finds the dialects: the reader of every folder in `processors/frameworks/`, and the rows of its table."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

import processors.frameworks
from processors.frameworks.dialect import Dialect
from processors.frameworks.tame.table import TABLE


@cache
def discover_dialects() -> Sequence[Dialect]:
    """All dialects, lowest rank first, then by name. A reader without a `DIALECT` is an error."""
    found: list[Dialect] = list(TABLE)
    for module in iter_modules(processors.frameworks.__path__, "processors.frameworks."):
        if module.ispkg and find_spec(f"{module.name}.reader") is not None:
            dialect: Dialect = import_module(f"{module.name}.reader").DIALECT
            found.append(dialect)
    return tuple(sorted(found, key=lambda dialect: (dialect.rank, dialect.name)))
