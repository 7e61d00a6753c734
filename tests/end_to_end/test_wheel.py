"""What a release consists of: `make dist`, and the wheel alone used from an empty folder."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(900)]

PROJECT = Path(__file__).parent.parent.parent


def _run(*command: str | Path, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=800,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def test_a_release_is_complete_and_its_wheel_works_alone(tmp_path: Path) -> None:
    folder = tmp_path / "dist"

    printed = _run("make", "dist", f"DIST={folder}", f"PYTHON={sys.executable}", folder=PROJECT)

    # The demonstration ran in the environment of the wheel, with the criteria in it.
    assert "9 runs, evaluations:" in printed
    assert "stopped with exit code 0" in printed
    assert (
        f"read by {'tracegrade-native' if shutil.which('cargo') else 'Python, tracegrade-native is not'}"
        in printed
    )
    assert f"{folder / 'environment'}" in printed
    _check_sums(folder)
    _check_materials(folder)
    _check_defaults(folder, tmp_path)


def _check_sums(folder: Path) -> None:
    version = re.findall(r'(?m)^version = "(.*)"', (PROJECT / "pyproject.toml").read_text())[0]
    sums = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())

    native = {file.name for file in folder.glob("tracegrade_native-*.whl")}
    assert len(native) == (shutil.which("cargo") is not None)
    assert all(re.fullmatch(rf"tracegrade_native-{version}-cp311-abi3-\w+\.whl", name) for name in native)
    assert native | {
        f"tracegrade-{version}-py3-none-any.whl",
        f"tracegrade-{version}.tar.gz",
        "tracegrade.cdx.json",
        "criteria.schema.json",
    } == set(sums)
    assert {*sums, "SHA256SUMS"} == {file.name for file in folder.iterdir()}
    for name, digest in sums.items():
        assert digest == hashlib.sha256((folder / name).read_bytes()).hexdigest()


def _check_materials(folder: Path) -> None:
    """The bill of materials lists what the lock pins, as far as this platform installs it."""
    text = (folder / "tracegrade.cdx.json").read_text()
    materials = json.loads(text)
    lock = (PROJECT / "requirements.lock").read_text()
    pinned = re.findall(r"(?m)^([a-z0-9-]+)==([^ \\\n]+)( ;)?", lock)

    assert ("CycloneDX", "tracegrade") == (
        materials["bomFormat"],
        materials["metadata"]["component"]["name"],
    )
    found = {
        (re.sub(r"[-_.]+", "-", part["name"]).lower(), part["version"]) for part in materials["components"]
    }
    assert found <= {(name, version) for name, version, _ in pinned}
    assert {(name, version) for name, version, is_conditional in pinned if not is_conditional} <= found
    assert all(part["purl"] for part in materials["components"])
    assert str(folder) not in text


def _check_defaults(folder: Path, tmp_path: Path) -> None:
    """The wheel brings its defaults and what the schemas are made of."""
    (wheel,) = folder.glob("tracegrade-*.whl")
    unpacked, empty = tmp_path / "unpacked", tmp_path / "empty"
    zipfile.ZipFile(wheel).extractall(unpacked)
    empty.mkdir()
    tracegrade = [sys.executable, "-m", "collector.cli"]

    schema = json.loads(_run(*tracegrade, "schema", folder=empty, PYTHONPATH=str(unpacked)))
    rules = _run(*tracegrade, "rules", folder=empty, PYTHONPATH=str(unpacked))
    valid = _run(*tracegrade, "validate", folder=empty, PYTHONPATH=str(unpacked))

    assert "receivers" in schema["properties"]
    assert (PROJECT / "deploy" / "prometheus" / "rules" / "tracegrade.yaml").read_text() == rules
    assert "valid" in valid
    assert [] == list(empty.iterdir())
