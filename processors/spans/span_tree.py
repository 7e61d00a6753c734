"""The spans of one trace as a tree, whatever order they came in and however broken their links are."""

from collections.abc import Sequence
from operator import neg
from typing import TypeAlias

from processors.spans.native import NATIVE
from processors.spans.span import NO_PARENT, RawSpan, Span

MAX_EVENTS = 100_000
"""Events of a trace that are read; reading one takes some microseconds, between two requests of one loop."""

_Row: TypeAlias = tuple[int, int, bytes, Span, bytes]
"""(start, end times minus one, span id, view, id of the parent)."""


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
        self.starts: Sequence[int]
        self.ends: Sequence[int]
        self.span_ids: Sequence[bytes]
        self.views: list[Span]
        self.parent_ids: Sequence[bytes]
        self.parents: list[int]
        self.misses_parent: list[bool]
        """True where a span names a parent that is not here, and does not say that it is remote."""
        self.lacks_events = False
        linked = None if NATIVE is None else NATIVE.link_spans(spans, MAX_EVENTS)
        if linked is None:
            is_in_order = self._link(spans)
        else:
            (
                self.starts, self.ends, self.span_ids, self.views, self.parent_ids, self.parents,
                self.misses_parent, is_in_order,
            ) = linked  # fmt: skip
        # Parents mostly start before their children.
        self.top_down = list(range(len(self.span_ids))) if is_in_order else self._order()

    def __len__(self) -> int:
        return len(self.span_ids)

    def _link(self, spans: Sequence[RawSpan]) -> bool:
        """Set all but `top_down`; whether parents stand before their children."""
        rows: dict[bytes, _Row] = {}
        size = 0
        for span_id, raw, envelope in spans:
            view = Span(raw, envelope)
            message = view.message
            start, end = message.start_time_unix_nano, message.end_time_unix_nano
            row = start, -end, span_id, view, message.parent_span_id
            size += len(raw)
            if span_id in rows:
                row = max(rows[span_id], row, key=_precedence)
            rows[span_id] = row
        ordered = sorted(rows.values())  # span ids differ, so nothing behind them is compared
        self.starts, ends, self.span_ids, views, self.parent_ids = (
            zip(*ordered, strict=True) if ordered else ((),) * 5
        )
        self.views = list(views)
        self.ends = list(map(neg, ends))
        if NO_PARENT in self.parent_ids:
            self.parent_ids = [view.parent_span_id for view in self.views]
        self.misses_parent = [False] * len(ordered)
        # An event takes two bytes at least, so few spans need counting.
        self.lacks_events = (
            size > 2 * MAX_EVENTS and sum(view.event_count for view in self.views) > MAX_EVENTS
        )
        if self.lacks_events:
            for view in self.views:
                view.leave_out_events()
        position_of = dict(zip(self.span_ids, range(len(ordered)), strict=True))
        self.parents = parents = [position_of.get(parent, -1) if parent else -1 for parent in self.parent_ids]
        is_in_order = True
        for position, parent in enumerate(parents):
            if parent < 0:
                if self.parent_ids[position]:
                    self.misses_parent[position] = not self.views[position].parent_is_remote
            elif parent == position:
                parents[position] = -1
            elif parent > position:
                is_in_order = False
        return is_in_order

    def _order(self) -> list[int]:
        """Every parent before its children; in what remains, rings are cut at their first span."""
        parents = self.parents
        count = len(parents)
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


def _precedence(row: _Row) -> tuple[int, bytes]:
    """Of two spans with one id the one with the higher of these counts."""
    return -row[1], row[3].raw
