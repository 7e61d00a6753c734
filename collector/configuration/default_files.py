"""Where the files that come with tracegrade are: criteria, example configuration, JSON schemas."""

from pathlib import Path

_INSTALLED = Path(__file__).parents[1] / "_config"
_SOURCE_TREE = Path(__file__).parents[2] / "config"


def default_file(name: str) -> Path:
    """The file `name` below `config/`, such as `criteria/default.yaml`.

    In an installed tracegrade that folder lies inside the package, in a source tree at its top.
    """
    return (_INSTALLED if _INSTALLED.is_dir() else _SOURCE_TREE) / name
