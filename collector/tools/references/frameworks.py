"""The page of frameworks, written from the READMEs of the families: `make reference`."""

from collector.framework_pages import supported_frameworks

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


def frameworks_reference() -> str:
    """The page in Markdown."""
    rows = sorted(supported_frameworks(), key=lambda row: row.name.lower())
    table = "".join(f"| {row.name} | {row.versions} | `{row.dialect}` | {row.evidence} |\n" for row in rows)
    return _INTRODUCTION + table + "".join(f"\n## {row.name}\n\n{row.rest}" for row in rows)


if __name__ == "__main__":
    print(frameworks_reference(), end="")
