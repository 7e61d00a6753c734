"""The page of frameworks, written from the dialects: `make reference`."""

from collections.abc import Iterator

from processors.frameworks.dialect import Dialect
from processors.frameworks.discovery import discover_dialects
from processors.frameworks.framework import Framework

_INTRODUCTION = """\
# Frameworks

This page is generated from `processors/frameworks/` by `make reference`.

Every framework below is read without configuration.
Each telemetry convention is a dialect: one file that says which spans it recognises and reads their fields.
Several dialects may read one span, so instrumentations can be mixed; what one leaves out the other fills in.

- A call that several spans report (an agent's, a protocol client's, a server's) is one call.
- Where no span tells of calls, they are taken from the messages of the model's turns.
- A value that is not in the telemetry, or is redacted or cut off, is unknown: evaluations that need it are
  `not_evaluated` with the reason `content_not_captured`, never `fail`.
- `tracegrade replay --explain PATH` shows which dialect read which span as what, and why spans were left out.
- A convention that is not listed can be described under `processors.evaluation.dialects` in the service file:
  see `config/tracegrade.yaml`.

| Framework | Versions | Dialect |
|---|---|---|
"""


def frameworks_reference() -> str:
    """The page in Markdown."""
    rows = sorted(_rows(), key=lambda row: row[0].name.lower())
    table = "".join(f"| {framework.name} | {framework.versions} | `{name}` |\n" for framework, name in rows)
    return _INTRODUCTION + table + "".join(_section(framework) for framework, _ in rows)


def _rows() -> Iterator[tuple[Framework, str]]:
    dialect: Dialect
    for dialect in discover_dialects():
        for framework in dialect.frameworks:
            yield framework, dialect.name


def _section(framework: Framework) -> str:
    return (
        f"\n## {framework.name}\n\n"
        f"- Read: {framework.reads}.\n"
        f"- Switch on: {framework.capture}.\n"
        f"- Cannot be known: {framework.unknown}.\n"
    )


if __name__ == "__main__":
    print(frameworks_reference(), end="")
