"""The page of stability levels, generated from their table."""

from collector.stability import LEVELS, MEANING

_TITLES = {"option": "Options", "metric": "Metrics", "rule": "Rules", "command": "Commands"}
_INTRODUCTION = """\
# Stability

This page is generated from `collector/stability.py` by `make reference`.

A row holds for everything below it or beginning with it; the longest row counts.
`tracegrade print-config` marks what is not stable.

| Level | Meaning |
|---|---|
"""


def stability_reference() -> str:
    """The page in Markdown."""
    text = _INTRODUCTION + "".join(f"| {level} | {meaning} |\n" for level, meaning in MEANING.items())
    for kind, rows in LEVELS.items():
        text += f"\n## {_TITLES[kind]}\n\n| Name | Level |\n|---|---|\n"
        text += "".join(f"| `{name}` | {level} |\n" for name, level in rows.items())
    return text
