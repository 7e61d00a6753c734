"""The page of frameworks is what the families say of themselves."""

import re
from pathlib import Path

from collector.framework_pages import supported_frameworks
from docs.generate.frameworks import frameworks_reference
from processors.carriers import discover_dialects

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "frameworks.md"


def test_the_page_is_up_to_date() -> None:
    assert frameworks_reference() == PAGE.read_text(), "run: make reference"


def test_every_dialect_says_which_frameworks_it_reads() -> None:
    assert {dialect.name for dialect in discover_dialects()} == {
        row.dialect for row in supported_frameworks()
    }


def test_every_framework_is_told_once_and_whole() -> None:
    frameworks = list(supported_frameworks())

    assert len(frameworks) == len({framework.name for framework in frameworks})
    for framework in frameworks:
        assert all(framework), framework.name
        assert "..\n" not in framework.rest, framework.name
        assert "|" not in "".join(framework), framework.name


def test_the_evidence_for_every_framework_is_there() -> None:
    for framework in supported_frameworks():
        (told,) = re.findall(r"^- Evidence: .+$", framework.rest, re.MULTILINE)
        paths = re.findall(r"`(tests/[^`]+)`", told)

        assert paths, framework.name
        assert all((ROOT / path).exists() for path in paths), framework.name
        if framework.evidence == "recorded":
            assert all(any((ROOT / path).rglob("*.binpb*")) for path in paths), framework.name
