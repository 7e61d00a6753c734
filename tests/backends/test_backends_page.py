"""Every configuration on the page about backends is one that `tracegrade validate` accepts."""

import re
from pathlib import Path

import pytest

from collector.cli import run_command

PAGE = Path(__file__).parent.parent.parent / "docs" / "backends.md"
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{env:([A-Z_]+)\}")


def configurations() -> list[tuple[str, str]]:
    """The heading and the text of every YAML block."""
    text = PAGE.read_text()
    found: list[tuple[str, str]] = []
    for block in _BLOCK.finditer(text):
        above = _HEADING.findall(text, 0, block.start())
        found.append((f"{len(found)} {above[-1]}", block[1]))
    return found


@pytest.mark.parametrize(("name", "text"), configurations(), ids=[name for name, _ in configurations()])
def test_a_configuration_of_the_page_is_valid(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "tracegrade.yaml"
    config.write_text(text)
    for variable in _VARIABLE.findall(text):  # whatever one is there for, it may be a URL
        monkeypatch.setenv(variable, "https://example.com/v1/traces")

    code = run_command(["validate", "--config", str(config)])

    assert 0 == code, "".join(capsys.readouterr())


def test_each_backend_of_the_table_has_a_section_with_a_configuration() -> None:
    rows = re.findall(r"^\| \[(.+?)\]\(#(.+?)\)", PAGE.read_text(), re.MULTILINE)
    sections = {name.partition(" ")[2] for name, _ in configurations()}

    assert 8 == len(rows)
    assert sections >= {name.replace("A Collector", "An OpenTelemetry Collector") for name, _ in rows}
