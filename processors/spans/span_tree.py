"""The spans of one trace as a tree, whatever order they came in and however broken their links are."""

from collections.abc import Sequence
from typing import TypeAlias

from processors.spans.span import RawSpan, Span

MAX_EVENTS = 100_000
"""Events of a trace that are read; reading one takes some microseconds, between two requests of one loop."""

_Row: TypeAlias = tuple[int, int, bytes, Span]
"""(start, end times minus one, span id, view)."""


class SpanTree:
    """Spans in order of start, then later end first, then span id; positions in the lists are their names.

    `parents` holds the position of the parent or -1. A parent that is not in the trace, or is the span
    itself, counts as none; a ring of parents is cut above its first span. `top_down` lists all positions
    with every parent before its children. Of a trace with more than `MAX_EVENTS` events none is read, and
    `lacks_events` is true.
    """

    __slots__ = (
        "ends",
        "lacks_events",
        "misses_parent",
        "parent_ids",
        "parents",
        "span_ids",
        "starts",
        "top_down",
        "views",
    )

    def __init__(self, spans: Sequence[RawSpan]) -> None:
        """Of several spans with one id, the one with the later end, then the larger bytes, counts.

        Args:
            spans: Spans of one trace.

        Raises:
            google.protobuf.message.DecodeError: A span holds no Span message.
        """
        rows: dict[bytes, _Row] = {}
        for span_id, raw, envelope in spans:
            view = Span(raw, envelope)
            row = (view.start_unix_nano, -view.end_unix_nano, span_id, view)
            known = rows.setdefault(span_id, row)
            if known is not row and (-known[1], known[3].raw) < (-row[1], raw):
                rows[span_id] = row
        self.span_ids: list[bytes] = []
        self.parent_ids: list[bytes] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.views: list[Span] = []
        self.parents: list[int] = []
        self.misses_parent: list[bool] = []
        """True where a span names a parent that is not here, and does not say that it is remote."""
        events = 0
        position_of: dict[bytes, int] = {}
        ordered = sorted(rows.values())  # span ids differ, so nothing behind them is compared
        for position, (start, negative_end, span_id, view) in enumerate(ordered):
            position_of[span_id] = position
            self.span_ids.append(span_id)
            self.parent_ids.append(view.parent_span_id)
            self.starts.append(start)
            self.ends.append(-negative_end)
            self.views.append(view)
            events += view.event_count
        self.lacks_events = events > MAX_EVENTS
        if self.lacks_events:
            for view in self.views:
                view.leave_out_events()
        for position, parent in enumerate(self.parent_ids):
            found = position_of.get(parent, -1) if parent else -1
            self.parents.append(-1 if found == position else found)
            self.misses_parent.append(
                found < 0 and bool(parent) and not self.views[position].parent_is_remote
            )
        self.top_down = self._order()

    def __len__(self) -> int:
        return len(self.span_ids)

    def _order(self) -> list[int]:
        """Every parent before its children; in what remains, rings are cut at their first span."""
        parents = self.parents
        count = len(parents)
        # Parents mostly start before their children, then the order of start is the answer.
        for position, parent in enumerate(parents):
            if parent >= position:
                break
        else:
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
