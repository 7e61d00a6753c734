"""Export requests recorded from real agent frameworks, with what their tools really did."""

from functools import cache
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "data" / "corpus"


@cache
def recorded_requests(framework: str = "*", scenario: str = "*") -> list[bytes]:
    """The bodies of all recorded requests, in order of arrival within a scenario."""
    return [path.read_bytes() for path in sorted(CORPUS.glob(f"{framework}/{scenario}/*.binpb"))]
