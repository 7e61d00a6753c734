"""The dashboards against Grafana's own types: wrong values and misspelt keys do not compile."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.dashboards import GRAFANA

CHECK = GRAFANA / "schema_check"
COMPILER = CHECK / "node_modules" / ".bin" / "tsc"

pytestmark = pytest.mark.requires_program("node")


@pytest.fixture
def compiler() -> Path:
    if not COMPILER.exists():
        pytest.skip("TypeScript is not installed (make dashboards-install)")
    return COMPILER


def as_typescript(dashboard: str) -> str:
    """A literal: keys that Grafana does not know are found in literals alone."""
    types = (CHECK / "types").as_posix()
    return (
        f'import type {{ CheckedDashboard }} from "{types}";\nexport const it: CheckedDashboard = {dashboard}'
    )


def compiled(compiler: Path, *sources: Path) -> subprocess.CompletedProcess[str]:
    options = ("--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--target", "es2022")
    node = shutil.which("node")
    assert node is not None
    return subprocess.run(
        (node, str(compiler), *options, "--moduleResolution", "bundler", *map(str, sources)),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_the_dashboards_are_of_grafanas_types(compiler: Path, tmp_path: Path) -> None:
    sources = []
    for path in (GRAFANA / "dashboards").glob("*.json"):
        source = tmp_path / f"{path.stem}.ts"
        source.write_text(as_typescript(path.read_text()))
        sources.append(source)

    done = compiled(compiler, *sources)

    assert "" == done.stdout
    assert 0 == done.returncode
    assert 3 == len(sources)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"graphMode": "none"', '"graphMod": "none"'),
        ('"mode": "absolute"', '"mode": "absolut"'),
        ('"showPoints": "auto"', '"showPoint": "auto"'),
        ('"editable": false', '"editable": "no"'),
        ('"enablePagination": true', '"enablePagination": "yes"'),
        ('"allValue"', '"allvalue"'),
    ],
)
def test_a_mistake_is_found(compiler: Path, tmp_path: Path, right: str, wrong: str) -> None:
    dashboard = (GRAFANA / "dashboards" / "tracegrade-agent-quality.json").read_text()
    source = tmp_path / "wrong.ts"
    source.write_text(as_typescript(dashboard.replace(right, wrong)))

    done = compiled(compiler, source)

    assert right in dashboard
    assert 0 != done.returncode
    assert "error TS" in done.stdout
