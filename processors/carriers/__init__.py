"""How telemetry writes what agents do, whatever framework they run on: a file for each convention.

What a single framework does is in `processors/frameworks/`, which these may import. This door finds the
dialects and the rewrites of both rooms: a new file needs no registration.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import processors.frameworks
from processors.frameworks.tame import TABLE
from processors.shapes import Dialect, Rewrite, RewriteStage

__all__ = ["discover_dialects", "discover_rewrites"]


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


def _modules() -> Iterator[ModuleType]:
    for path, room in ((processors.frameworks.__path__, "processors.frameworks"), (__path__, __name__)):
        for module in iter_modules(path, f"{room}."):
            yield import_module(module.name)
