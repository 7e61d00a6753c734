"""A file of lines stays a file of whole lines, whatever the disk does."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collector.exporters.json_lines_file import JsonLinesFile


@contextmanager
def _file_size_limit(size: int) -> Iterator[None]:
    """A real write error: the system takes bytes up to `size` and refuses the rest, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_lines_are_appended_to_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a":1}\n')
    file = JsonLinesFile(path)

    file.open()
    file.append(b'{"a":2}\n{"a":3}\n')
    file.close()

    assert b'{"a":1}\n{"a":2}\n{"a":3}\n' == path.read_bytes()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"a":1}\n{"a":', b'{"a":1}\n'),
        (b'{"a":', b""),
        (b'{"a":1}\n{"a":2}', b'{"a":1}\n{"a":2}\n'),
        (b"no json", b"no json\n"),
        (b'{"a":1}\n{"' + b"x" * 200_000, b'{"a":1}\n'),
        (b"", b""),
    ],
)
def test_a_torn_last_line_is_removed_and_nothing_else(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(before)
    file = JsonLinesFile(path)

    file.open()
    file.close()

    assert after == path.read_bytes()


def test_a_write_that_fails_half_way_leaves_no_half_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    file = JsonLinesFile(path)
    file.open()
    file.append(b'{"a":1}\n')

    with _file_size_limit(5000), pytest.raises(OSError, match="File too large"):
        file.append(b"x" * 20_000 + b"\n")
    left = path.read_bytes()
    file.append(b'{"a":2}\n')
    file.close()

    assert b'{"a":1}\n' == left
    assert b'{"a":1}\n{"a":2}\n' == path.read_bytes()


def test_after_a_rotation_lines_go_to_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    file = JsonLinesFile(path)
    file.open()
    file.append(b"1\n")

    path.rename(tmp_path / "a.jsonl.1")
    file.append(b"2\n")
    file.close()

    assert b"1\n" == (tmp_path / "a.jsonl.1").read_bytes()
    assert b"2\n" == path.read_bytes()


def test_a_full_device_raises(tmp_path: Path) -> None:
    file = JsonLinesFile(Path("/dev/full"))
    file.open()

    with pytest.raises(OSError, match="No space left"):
        file.append(b"1\n")

    file.close()


def test_close_is_safe_before_open_and_twice(tmp_path: Path) -> None:
    file = JsonLinesFile(tmp_path / "a.jsonl")

    file.close()
    file.open()
    file.close()
    file.close()

    assert ["a.jsonl"] == os.listdir(tmp_path)
