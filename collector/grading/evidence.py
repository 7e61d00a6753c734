"""Looks whether a trace shows that it is over, at the boundary to the pure part."""

from collections.abc import Callable, Sequence

from processors.reconstruction import Scopes, settled_scopes, span_reader
from processors.shapes import Dialect
from processors.spans import RawSpan


def evidence_reader(dialects: Sequence[Dialect]) -> Callable[[Sequence[RawSpan]], Scopes | None]:
    """What tells the runs of a trace that is settled, read with `dialects` and the built-in ones.

    It is for the thread of the loop. A trace that cannot be read is not settled: grading it says why.
    """
    reader = span_reader(dialects)

    def read(spans: Sequence[RawSpan]) -> Scopes | None:
        try:
            return settled_scopes(spans, reader)
        except Exception:  # one trace must not take the others down
            return None

    return read
