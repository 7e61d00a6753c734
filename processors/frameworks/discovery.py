"""Finds what the families' folders in `processors/frameworks/` hold, and the rows of their table."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType

import processors.frameworks
from processors.frameworks.dialect import Dialect
from processors.frameworks.rewriting import Rewrite
from processors.frameworks.tame.table import TABLE


@cache
def discover_dialects() -> Sequence[Dialect]:
    """All dialects, lowest rank first, then by name. A reader without a `DIALECT` is an error."""
    found: list[Dialect] = [*TABLE, *(module.DIALECT for module in _modules("reader"))]
    return tuple(sorted(found, key=lambda dialect: (dialect.rank, dialect.name)))


@cache
def discover_rewrites() -> Sequence[Rewrite]:
    """What families do to their runs, by the order of folders. A rewrite without a `REWRITE` is an error."""
    return tuple(module.REWRITE for module in _modules("rewrite"))


def _modules(name: str) -> Iterator[ModuleType]:
    """The modules `name` of the families that have one, in the order of their folders."""
    for folder in iter_modules(processors.frameworks.__path__, "processors.frameworks."):
        if folder.ispkg and find_spec(f"{folder.name}.{name}") is not None:
            yield import_module(f"{folder.name}.{name}")
