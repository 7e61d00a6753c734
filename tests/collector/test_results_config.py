"""The page about results: what it shows is what the service takes."""

from pathlib import Path

import pytest
import yaml

from collector.configuration import parse_configuration

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def _examples() -> list[str]:
    """The YAML blocks of the page, without the indentation of the lists that they stand in."""
    blocks: list[str] = []
    lines = PAGE.read_text().splitlines()
    while lines:
        line = lines.pop(0)
        if line.strip() != "```yaml":
            continue
        indent = len(line) - len(line.lstrip())
        block: list[str] = []
        while (line := lines.pop(0)).strip() != "```":
            block.append(line[indent:])
        blocks.append("\n".join(block))
    return blocks


def test_there_are_examples() -> None:
    assert 6 == len(_examples())


@pytest.mark.parametrize("text", _examples())
def test_every_example_is_taken(text: str) -> None:
    config = parse_configuration(text, "results.md", {})

    written = yaml.safe_load(text).get("results", {"mode": "hold"})
    assert written["mode"] == config.results.mode
