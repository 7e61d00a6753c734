"""The reader in Rust changes no result, and a user can see whether it is in use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from processors.spans import NATIVE, NATIVE_REASON
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end


def _printed_config(switch: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "collector.cli", "print-config"],
        env=os.environ | {"TRACEGRADE_NATIVE": switch},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout.splitlines()[0]


async def _native_info(folder: Path, switch: str) -> dict[str, float]:
    async with ServiceProcess(folder, within=("env", f"TRACEGRADE_NATIVE={switch}")) as service:
        metrics = await service.metrics()
    return {name: value for name, value in metrics.items() if name.startswith("tracegrade_native_info")}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_recording_gives_the_same_with_it_and_without(tmp_path: Path) -> None:
    if NATIVE is None:
        pytest.skip(NATIVE_REASON)
    for switch in ("on", "off"):
        subprocess.run(
            [sys.executable, "-m", "tests.support.recorded_results", tmp_path / switch],
            env=os.environ | {"TRACEGRADE_NATIVE": switch},
            check=True,
        )

    files = sorted(file.name for file in (tmp_path / "on").iterdir())
    assert len(files) > 100
    for file in files:
        assert (tmp_path / "on" / file).read_bytes() == (tmp_path / "off" / file).read_bytes(), file


async def test_switched_off_it_is_not_in_use(tmp_path: Path) -> None:
    assert "# Requests and spans are read by Python, TRACEGRADE_NATIVE is off." == _printed_config("off")
    assert {'tracegrade_native_info{native_version="",reason="TRACEGRADE_NATIVE is off"}': 0} == (
        await _native_info(tmp_path, "off")
    )


async def test_installed_it_is_in_use(tmp_path: Path) -> None:
    if NATIVE is None:
        pytest.skip(NATIVE_REASON)

    assert f"# Requests and spans are read by tracegrade-native {NATIVE.VERSION}, experimental." == (
        _printed_config("")
    )
    assert {f'tracegrade_native_info{{native_version="{NATIVE.VERSION}",reason=""}}': 1} == (
        await _native_info(tmp_path, "")
    )
