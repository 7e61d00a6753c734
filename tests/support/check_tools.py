"""The programs that check `deploy/`: in `.venv-checks` (`make checks-install`), or else on the PATH."""

import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent
DEPLOY = PROJECT / "deploy"
_PROGRAMS = PROJECT / ".venv-checks" / "bin"


def find_tool(name: str) -> str:
    """The path of the program `name`; skips the test, by name, where it is not installed."""
    found = shutil.which(name, path=str(_PROGRAMS)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (make checks-install)")
    return found


def find_checks_python(module: str) -> str:
    """The interpreter of `.venv-checks`, if it has `module`; skips the test, by name, where it does not."""
    python = _PROGRAMS / "python"
    if not python.exists() or subprocess.run([python, "-c", f"import {module}"], check=False).returncode:
        pytest.skip(f"{module} is not installed (make checks-install)")
    return str(python)


def run_tool(*command: str | Path, folder: Path = PROJECT) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, in `folder`; what it said is text."""
    arguments = [str(part) for part in command]
    return subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def assert_clean(done: subprocess.CompletedProcess[str]) -> None:
    """Fail with everything that the program said unless it found nothing."""
    assert 0 == done.returncode, f"{done.args}\n{done.stdout}\n{done.stderr}"
