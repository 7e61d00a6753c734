"""What users install: the wheel alone, in an empty environment, used from an empty folder."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

PROJECT = Path(__file__).parent.parent.parent


def _run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False, timeout=500
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_brings_its_defaults_its_schemas_and_the_demo(tmp_path: Path) -> None:
    pip = ["-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheels, environment, empty = tmp_path / "wheels", tmp_path / "environment", tmp_path / "empty"
    empty.mkdir()
    pins = tmp_path / "constraints.txt"
    lock = (PROJECT / "requirements.lock").read_text()
    pins.write_text("\n".join(re.findall(r"^[a-z0-9-]+==[^ \\\n]+", lock, re.MULTILINE)))
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(PROJECT)]
    _run(sys.executable, *build, folder=tmp_path)
    (wheel,) = wheels.glob("tracegrade-*.whl")
    _run(sys.executable, "-m", "venv", environment, folder=tmp_path)
    python, tracegrade = environment / "bin" / "python", environment / "bin" / "tracegrade"
    _run(python, *pip, "install", "--constraint", pins, wheel, folder=tmp_path)

    schema = json.loads(_run(tracegrade, "schema", folder=empty))
    rules = _run(tracegrade, "rules", folder=empty)
    demo = _run(tracegrade, "demo", folder=empty)

    assert "receivers" in schema["properties"]
    assert (PROJECT / "deploy" / "prometheus" / "rules" / "tracegrade.yaml").read_text() == rules
    assert "8 runs, evaluations:" in demo
    assert "stopped with exit code 0" in demo
    assert str(environment) in demo  # the criteria it used are its own
    assert [] == list(empty.iterdir())
