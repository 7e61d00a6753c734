"""The rule about skipped tests, seen on a run of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKIPPING = """
import pytest

@pytest.mark.requires_program("no-such-program")
def test_one(): ...

def test_two():
    pytest.skip("no-such-program is not installed")

@pytest.mark.xfail(strict=True)
def test_three():
    raise ValueError
"""


def run(directory: Path, require_all: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(Path(__file__).with_name("conftest.py"), directory)
    (directory / "test_skipping.py").write_text(SKIPPING)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(directory)],
        cwd=directory,
        env={**os.environ, "TRACEGRADE_REQUIRE_ALL": require_all},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_skipped_groups_are_named_at_the_end(tmp_path: Path) -> None:
    finished = run(tmp_path, "")

    assert 0 == finished.returncode, finished.stdout
    assert "Skipped groups: no-such-program is not installed (2)" in finished.stdout


@pytest.mark.parametrize("test", ["test_one", "test_two"])
def test_where_all_must_run_a_skipped_test_fails(tmp_path: Path, test: str) -> None:
    finished = run(tmp_path, "1")

    assert 1 == finished.returncode, finished.stdout
    assert f"::{test}: no-such-program is not installed, and TRACEGRADE_REQUIRE_ALL=1" in finished.stdout
    assert "1 xfailed" in finished.stdout
