"""What the guides show is so: their criteria files hold, and what they quote is what is printed."""

import json
import re
from pathlib import Path

import pytest

from collector.cli import run_command
from docs.generate.runs_file import runs_file_reference
from processors.annotation.run_form import Call, Run

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
_BLOCK = re.compile(r"^```(yaml|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall((DOCS / page).read_text()) if kind == language]


@pytest.mark.parametrize("page", ["agents-and-patterns.md", "tenants.md"])
def test_the_criteria_files_of_a_guide_are_valid_and_their_tests_hold(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = blocks(page, "yaml")

    assert files
    for text in files:
        assert "tests:" in text
        file = tmp_path / "criteria.yaml"
        file.write_text(text)
        assert (0, "") == (run_command(["validate", str(file)]), capsys.readouterr().err)


def test_what_the_guide_to_importing_quotes_is_imported(capsys: pytest.CaptureFixture[str]) -> None:
    folder = PROJECT / "tests" / "data" / "import" / "weather"

    assert 1 == run_command(["import", str(folder), "--agent", "weather_agent"])

    printed = capsys.readouterr().out
    quoted = blocks("importing.md", "yaml")
    assert 2 == len(quoted)
    assert all(text in printed for text in quoted)


def test_the_page_of_the_runs_file_is_up_to_date_and_its_line_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "runs-file.md").read_text()

    assert runs_file_reference() == page, "run: make reference"
    assert all(f"| `{key}`" in page for key in (*Run.__struct_fields__, *Call.__struct_fields__))
    (line,) = blocks("runs-file.md", "json")
    (tmp_path / "a.runs.jsonl").write_text(line)
    assert 0 == run_command(["replay", str(tmp_path), "--format", "json"])
    assert "support_agent" == json.loads(capsys.readouterr().out)["agent"]["name"]


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in (*DOCS.glob("*.md"), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"):
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
