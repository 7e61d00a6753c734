"""What a dialect promises for one agent framework, in words: the rows of the page of frameworks."""

from typing import NamedTuple


class Framework(NamedTuple):
    """One framework or instrumentation whose spans a dialect reads. All fields are Markdown for people."""

    name: str
    versions: str
    """What the reading was built from: versions, or "any"."""
    reads: str
    """Which spans are calls and runs, and where their fields come from."""
    capture: str
    """What must be switched on at the sender so that arguments and results are in the spans."""
    unknown: str
    """What the spans cannot tell."""
