"""Parents before children, whatever the links are."""

import pytest

from processors.spans.span_tree import SpanTree
from tests.support.agent_spans import REMOTE_PARENT, span, span_id

pytestmark = pytest.mark.usefixtures("each_reader")


def test_parents_come_before_children_also_where_clocks_say_otherwise() -> None:
    tree = SpanTree([span(3, 2, "c", at=(0, 1)), span(2, 1, "b", at=(5, 6)), span(1, None, "a", at=(9, 10))])

    assert [span_id(1), span_id(2), span_id(3)] == [tree.span_ids[position] for position in tree.top_down]


def test_a_ring_is_cut_above_its_first_span() -> None:
    tree = SpanTree([span(1, 3, "a", at=(1, 9)), span(2, 1, "b", at=(2, 9)), span(3, 2, "c", at=(3, 9))])

    assert [-1, 0, 1] == tree.parents


def test_only_a_parent_that_is_neither_here_nor_remote_is_missing() -> None:
    spans = [
        span(1, None, "root", at=(1, 9)),
        span(2, 1, "child", at=(2, 9)),
        span(3, 3, "own parent", at=(3, 9)),
        span(4, 99, "lost", at=(4, 9)),
        span(5, 99, "remote", at=(5, 9), flags=REMOTE_PARENT),
        span(6, 0, "zeros", at=(6, 9)),
    ]

    tree = SpanTree(spans)

    assert [False, False, False, True, False, False] == tree.misses_parent


def test_of_two_spans_with_one_id_the_later_end_then_the_larger_bytes_count() -> None:
    early, late = span(1, None, "zzz", at=(1, 5)), span(1, None, "aaa", at=(1, 6))
    larger = span(1, None, "bbb", at=(1, 6))

    for order in ([early, late, larger], [larger, late, early]):
        tree = SpanTree(order)
        assert ["bbb"] == [tree.views[0].name]
