from itertools import permutations, product

from hypothesis import example, given, settings
from hypothesis import strategies as st

from processors.comparison import best_fitting_order, common_subsequence_length, parallel_segments
from processors.model import ToolCall

_WIDTH = 5


@st.composite
def _rows_and_segments(draw: st.DrawFn) -> tuple[list[int], list[range]]:
    sizes = draw(st.lists(st.integers(1, 3), max_size=4))
    rows = draw(
        st.lists(st.integers(0, 2**_WIDTH - 1), min_size=sum(sizes), max_size=sum(sizes))
        | st.lists(st.sampled_from((0, 1, 2, 4, 8, 16, 5)), min_size=sum(sizes), max_size=sum(sizes))
    )
    segments, start = [], 0
    for size in sizes:
        segments.append(range(start, start + size))
        start += size
    return rows, segments


@settings(max_examples=150, deadline=None)
@given(_rows_and_segments())
@example(([16, 2, 9, 4], [range(0, 1), range(1, 2), range(2, 4)]))
def test_no_permutation_inside_the_groups_fits_better(case: tuple[list[int], list[range]]) -> None:
    rows, segments = case
    orders = product(*(permutations(segment) for segment in segments))
    best = max(
        common_subsequence_length([rows[position] for part in order for position in part], _WIDTH)
        for order in orders
    )

    order = best_fitting_order(rows, segments)

    assert order is not None
    assert best == common_subsequence_length([rows[position] for position in order], _WIDTH)
    assert [list(segment) for segment in segments] == [
        sorted(order[segment.start : segment.stop]) for segment in segments
    ]


def test_neighbours_with_one_group_number_form_a_segment() -> None:
    groups = (None, None, 1, 1, 2, None, 2)

    segments = parallel_segments([ToolCall(name="a", parallel_group=group) for group in groups])

    assert [range(0, 1), range(1, 2), range(2, 4), range(4, 5), range(5, 6), range(6, 7)] == segments


def test_a_search_that_would_take_too_long_is_given_up() -> None:
    width = 200
    rows = [1 << (position % width) for position in range(2000)]
    segments = [range(start, start + 2) for start in range(0, 2000, 2)]

    assert best_fitting_order(rows, segments) is None
