"""How telemetry writes what agents do, whatever framework they run on: a file for each convention.

What a single framework does is in `processors/frameworks/`, which these may import. This door finds the
dialects, the rewrites and the content records of both rooms: a new file needs no registration.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import processors.frameworks
from processors.frameworks.tame import TABLE
from processors.shapes import ContentRecords, Dialect, Rewrite, RewriteStage

__all__ = ["discover_content_records", "discover_dialects", "discover_rewrites"]


@cache
def discover_dialects() -> Sequence[Dialect]:
    """All dialects, lowest rank first, then by name: each module's `DIALECT`, and the table of tame ones."""
    dialects = [*TABLE, *(module.DIALECT for module in _modules() if hasattr(module, "DIALECT"))]
    return tuple(sorted(dialects, key=lambda dialect: (dialect.rank, dialect.name)))


@cache
def discover_rewrites(stage: RewriteStage) -> Sequence[Rewrite]:
    """What frameworks need done to their runs: each module's `rewrite_agents` or `rewrite_runs`."""
    name = f"rewrite_{stage}"
    return tuple(getattr(module, name) for module in _modules() if hasattr(module, name))


@cache
def discover_content_records() -> Sequence[ContentRecords]:
    """The log records in which content is sent, by module: each module's `RECORDS`."""
    return tuple(module.RECORDS for module in _modules() if hasattr(module, "RECORDS"))


def _modules() -> Iterator[ModuleType]:
    for path, room in ((processors.frameworks.__path__, "processors.frameworks"), (__path__, __name__)):
        for module in iter_modules(path, f"{room}."):
            yield import_module(module.name)
