"""What the pages beside dialects state about each framework that is read."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import processors.carriers
import processors.frameworks

_SECTION = re.compile(
    r"^## (?P<name>.+)\n\n(?:- Dialect: `(?P<dialect>\w+)`\.\n)?- Versions: (?P<versions>.+)\.\n"
    r"(?P<evidence>- Evidence: (?P<kind>recorded|written|read)\b.+\.\n)"
    r"(?P<rest>- Read: .+\.\n- Switch on: (?P<switch_on>.+)\.\n- Cannot be known: .+\.\n)(?=\n## |\Z)",
    re.MULTILINE,
)
_NO_SETTING = re.compile("^nothing(; | can be: )")
"""How what is to be switched on begins where there is nothing, and something else matters."""
_KINDS = {"recorded": "recorded", "written": "run", "read": "source"}


class Framework(NamedTuple):
    """One framework or instrumentation whose spans are read. All fields are Markdown for people."""

    name: str
    dialect: str
    """Whose reading it is."""
    versions: str
    """What the reading was built from: versions, or "any"."""
    evidence: str
    """How it is known that the reading is right: `recorded`, `run` or `source`."""
    switch_on: str
    """What its instrumentation needs to send content, or what keeps it from that; begins in lower case."""
    rest: str
    """Which spans are calls and runs, what must be switched on, what cannot be known, and the evidence."""


def supported_frameworks() -> Iterator[Framework]:
    """What the page beside each carrier and each framework states is read.

    Raises:
        ValueError: a page has a section that is not in the form of the others.
    """
    rooms = (processors.carriers, processors.frameworks)
    pages = [page for room in rooms for page in Path(room.__path__[0]).glob("*.md")]
    for page in sorted(pages, key=lambda page: page.stem):
        text = page.read_text()
        sections = list(_SECTION.finditer(text))
        if len(sections) != text.count("\n## "):
            raise ValueError(
                f"{page}: a section lacks Versions, Evidence, Read, Switch on or Cannot be known"
            )
        for section in sections:
            yield Framework(
                name=section["name"],
                dialect=section["dialect"] or page.stem,
                versions=section["versions"],
                evidence=_KINDS[section["kind"]],
                switch_on=section["switch_on"],
                rest=section["rest"] + section["evidence"],
            )


@cache
def content_settings() -> Mapping[str, Sequence[tuple[str, str]]]:
    """For each dialect what decides whether its frameworks send content: framework names, setting.

    Code is in backticks. Dialects without such settings are missing.
    """
    collected: dict[str, dict[str, list[str]]] = {}
    for framework in supported_frameworks():
        if framework.switch_on != "nothing":
            setting = _NO_SETTING.sub("", framework.switch_on, count=1)
            collected.setdefault(framework.dialect, {}).setdefault(setting, []).append(framework.name)
    return {
        dialect: [(", ".join(names), setting) for setting, names in by_setting.items()]
        for dialect, by_setting in collected.items()
    }
