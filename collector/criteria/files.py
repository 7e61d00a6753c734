"""Files of configuration: those that come with tracegrade, and those named by path, folder or glob."""

import glob
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from processors.documents import Problem

MAX_FILE_BYTES = 64 * 1024 * 1024
"""A larger file is no configuration."""

_INSTALLED = Path(__file__).parents[1] / "_config"
_SOURCE_TREE = Path(__file__).parents[2] / "config"


def default_file(name: str) -> Path:
    """The file `name` below `config/`, such as `criteria/default.yaml`.

    In an installed tracegrade that folder lies inside the package, in a source tree at its top.
    """
    return (_INSTALLED if _INSTALLED.is_dir() else _SOURCE_TREE) / name


@dataclass(frozen=True, slots=True)
class LocatedFiles:
    """What stands on disk for a list of patterns.

    `matches` has the files of each pattern that matched any, each file under the first pattern that names
    it. `contents` misses files that could not be read. `digest` changes with names, contents and problems.
    """

    matches: Mapping[str, Sequence[str]]
    contents: Mapping[str, bytes]
    problems: Sequence[Problem]
    digest: str


def find_files(
    patterns: Sequence[str], endings: tuple[str, ...], is_other: Callable[[bytes], bool] = lambda _: False
) -> LocatedFiles:
    """Find and read every file that `patterns` name, in the order of the patterns, then of the names.

    A folder stands for the files directly in it with one of `endings`, hidden ones left out. `is_other`
    is true for a content of another kind: such files are left out of folders and globs. A pattern that
    matches nothing and a file that cannot be read are problems.
    """
    matches: dict[str, list[str]] = {}
    contents: dict[str, bytes] = {}
    problems: list[Problem] = []
    taken: set[Path] = set()
    for pattern in dict.fromkeys(patterns):
        try:
            result = _names(pattern, endings)
        except (OSError, ValueError) as error:
            problems.append(Problem(pattern, 0, "", _cannot_be_read(error)))
            continue
        others = 0
        for name in result:
            resolved = Path(name).resolve()
            if resolved in taken:
                continue
            try:
                content = _read(Path(name))
            except (OSError, ValueError) as error:
                problems.append(Problem(name, 0, "", _cannot_be_read(error)))
            else:
                if name != pattern and is_other(content):
                    others += 1
                    continue
                contents[name] = content
            taken.add(resolved)
            matches.setdefault(pattern, []).append(name)
        if others == len(result):
            what = "no file in this folder" if Path(pattern).is_dir() else "no such file"
            if glob.has_magic(pattern):
                what = "no file matches"
            problems.append(Problem(pattern, 0, "", what))
        else:
            matches.setdefault(pattern, [])
    return LocatedFiles(matches, contents, problems, _digest(contents, problems))


def _names(pattern: str, endings: tuple[str, ...]) -> list[str]:
    path = Path(pattern)
    if path.is_dir():
        return sorted(
            str(file)
            for file in path.iterdir()
            if file.name.endswith(endings) and not file.name.startswith(".") and file.is_file()
        )
    if path.exists():
        return [pattern]
    return sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())


def _cannot_be_read(error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"cannot be read: {reason}"


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise ValueError("not a regular file")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"larger than {MAX_FILE_BYTES} bytes")
    return path.read_bytes()


def _digest(contents: Mapping[str, bytes], problems: Sequence[Problem]) -> str:
    digest = sha256()
    for name, content in contents.items():
        digest.update(repr((name, len(content))).encode())
        digest.update(content)
    for problem in problems:
        digest.update(str(problem).encode(errors="replace"))
    return digest.hexdigest()
