"""The page of frameworks, written from the READMEs of the families: `make reference`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import processors.frameworks

_INTRODUCTION = """\
# Frameworks

This page is generated from the READMEs in `processors/frameworks/` by `make reference`.

Every framework below is read without configuration.
Each telemetry convention is a dialect: a folder, or a row of a table, that says which spans it recognises and
reads their fields.
Several dialects may read one span, so instrumentations can be mixed; what one leaves out the other fills in.

- A call that several spans report (an agent's, a protocol client's, a server's) is one call.
- Where no span tells of calls, they are taken from the messages of the model's turns.
- Models, their tokens and the time to the first output are read under all names that these frameworks use
  (`processors/frameworks/shapes/model_usage.py`).
- A value that is not in the telemetry, or is redacted or cut off, is unknown: evaluations that need it are
  `not_evaluated` with the reason `content_not_captured`, never `fail`.
- `tracegrade replay --explain PATH` shows which dialect read which span as what, and why spans were left out.
- A convention that is not listed can be described under `processors.evaluation.dialects` in the service file:
  see `config/tracegrade.yaml`.

How it is known that a framework is read rightly stands in the last column, and with each framework under
Evidence: *recorded* means that requests of the real package are kept and a test reads them; *run* that the
spans in a test were written after what the package sent when it was run; *source* that they were written
after its source or its documentation.

| Framework | Versions | Dialect | Evidence |
|---|---|---|---|
"""
_SECTION = re.compile(
    r"^## (?P<name>.+)\n\n(?:- Dialect: `(?P<dialect>\w+)`\.\n)?- Versions: (?P<versions>.+)\.\n"
    r"(?P<evidence>- Evidence: (?P<kind>recorded|written|read)\b.+\.\n)"
    r"(?P<rest>- Read: .+\.\n- Switch on: .+\.\n- Cannot be known: .+\.\n)(?=\n## |\Z)",
    re.MULTILINE,
)


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
    rest: str
    """Which spans are calls and runs, what must be switched on, what cannot be known, and the evidence."""


def frameworks_reference() -> str:
    """The page in Markdown."""
    rows = sorted(supported_frameworks(), key=lambda row: row.name.lower())
    table = "".join(f"| {row.name} | {row.versions} | `{row.dialect}` | {row.evidence} |\n" for row in rows)
    return _INTRODUCTION + table + "".join(f"\n## {row.name}\n\n{row.rest}" for row in rows)


def supported_frameworks() -> Iterator[Framework]:
    """What the README of each family says is read.

    Raises:
        ValueError: a README has a section that is not in the form of the others.
    """
    for page in sorted(Path(processors.frameworks.__path__[0]).glob("*/README.md")):
        text = page.read_text()
        sections = list(_SECTION.finditer(text))
        if len(sections) != text.count("\n## "):
            raise ValueError(
                f"{page}: a section lacks Versions, Evidence, Read, Switch on or Cannot be known"
            )
        for told in sections:
            yield Framework(
                name=told["name"],
                dialect=told["dialect"] or page.parent.name,
                versions=told["versions"],
                evidence=_KINDS[told["kind"]],
                rest=told["rest"] + told["evidence"],
            )


if __name__ == "__main__":
    print(frameworks_reference(), end="")
