"""The spans of one trace as a tree, whatever order they came in and however broken their links are."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from processors.envelope import Envelope
from processors.span import RawSpan, Span
from processors.span_head import parent_is_remote, read_span_head

_NO_SPAN_ID = bytes(8)

_Row: TypeAlias = "tuple[int, int, bytes, bytes, bytes, Envelope, Span | None]"
"""(start, end times minus one, span id, parent id, bytes, envelope, view)."""


class SpanTree:
    """Spans in order of start, then later end first, then span id; positions in the lists are their names.

    `parents` holds the position of the parent or -1. A parent that is not in the trace, or is the span
    itself, counts as none; a ring of parents is cut above its first span. `top_down` lists all positions
    with every parent before its children. A span view exists only where it was asked for.
    """

    __slots__ = (
        "_raws",
        "ends",
        "misses_parent",
        "parent_ids",
        "parents",
        "span_ids",
        "starts",
        "top_down",
        "views",
    )

    def __init__(self, spans: Sequence[RawSpan], is_wanted: Callable[[bytes], bool]) -> None:
        """Of several spans with one id, the one with the later end, then the larger bytes, counts.

        Args:
            spans: Spans of one trace.
            is_wanted: Tells from the bytes of a span whether its view will be needed.
        """
        rows: dict[bytes, _Row] = {}
        for span_id, raw, envelope in spans:
            view: Span | None = None
            if is_wanted(raw):
                view = Span(raw, envelope)
                parent, start, end = view.parent_span_id, view.start_unix_nano, view.end_unix_nano
            else:
                parent, _, start, end = read_span_head(raw)
            known = rows.get(span_id)
            if known is None or (-known[1], known[4]) < (end, raw):
                rows[span_id] = (start, -end, span_id, parent, raw, envelope, view)
        ordered = sorted(rows.values())  # span ids differ, so nothing behind them is compared
        position_of = {row[2]: position for position, row in enumerate(ordered)}

        self.span_ids = [row[2] for row in ordered]
        self.parent_ids = [row[3] for row in ordered]
        self.starts = [row[0] for row in ordered]
        self.ends = [-row[1] for row in ordered]
        self.views = [row[6] for row in ordered]
        self._raws = [(row[4], row[5]) for row in ordered]
        self.parents: list[int] = []
        self.misses_parent: list[bool] = []
        """True where a span names a parent that is not here, and does not say that it is remote."""
        for position, row in enumerate(ordered):
            parent = row[3]
            found = position_of.get(parent, -1) if parent else -1
            misses = found < 0 and bool(parent) and parent != _NO_SPAN_ID and not parent_is_remote(row[4])
            self.parents.append(-1 if found == position else found)
            self.misses_parent.append(misses)
        self.top_down = self._order()

    def __len__(self) -> int:
        return len(self.span_ids)

    def view(self, position: int) -> Span:
        """The view of the span at `position`, made now if it does not exist."""
        view = self.views[position]
        if view is None:
            view = Span(*self._raws[position])
            self.views[position] = view
        return view

    def _order(self) -> list[int]:
        """Every parent before its children; in what remains, rings are cut at their first span."""
        parents = self.parents
        count = len(parents)
        # Parents mostly start before their children, then the order of start is the answer.
        if all(parent < position for position, parent in enumerate(parents)):
            return list(range(count))
        children: list[list[int]] = [[] for _ in range(count)]
        order: list[int] = []
        for position, parent in enumerate(parents):
            if parent < 0:
                order.append(position)
            else:
                children[parent].append(position)
        for position in order:
            order.extend(children[position])
        if len(order) == count:
            return order
        reached = bytearray(count)
        for position in order:
            reached[position] = 1
        for start in range(count):
            if reached[start]:
                continue
            ring = self._ring_above(start)
            cut = min(ring)
            parents[cut] = -1
            branch = [cut]
            reached[cut] = 1
            for position in branch:
                for child in children[position]:
                    if not reached[child]:
                        reached[child] = 1
                        branch.append(child)
            order.extend(branch)
        return order

    def _ring_above(self, position: int) -> list[int]:
        seen: dict[int, int] = {}
        path: list[int] = []
        while position not in seen:
            seen[position] = len(path)
            path.append(position)
            position = self.parents[position]
        return path[seen[position] :]
