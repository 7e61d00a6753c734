from hypothesis import given
from hypothesis import strategies as st

from processors.comparison import matching_size, maximum_matching

_WIDTH = 6
_rows = st.lists(st.integers(0, 2**_WIDTH - 1), max_size=7)


def _largest(rows: list[int], width: int) -> int:
    """The size of a maximum matching, by trying everything."""
    if not width:
        return 0
    key = 1 << (width - 1)
    best = _largest(rows, width - 1)
    for position, row in enumerate(rows):
        if row & key:
            best = max(best, 1 + _largest(rows[:position] + rows[position + 1 :], width - 1))
    return best


@given(rows=_rows)
def test_as_many_expected_calls_are_served_as_possible(rows: list[int]) -> None:
    expected = _largest(rows, _WIDTH)

    assert expected == matching_size(rows, _WIDTH)


@given(rows=_rows)
def test_every_call_serves_one_expected_call_that_it_fits(rows: list[int]) -> None:
    assigned = maximum_matching(rows, _WIDTH)

    taken = [position for position in assigned if position >= 0]
    assert len(taken) == len(set(taken))
    assert all(rows[position] >> key & 1 for key, position in enumerate(assigned) if position >= 0)


def test_a_call_that_first_fit_would_waste_is_moved() -> None:
    fits_both, fits_the_first = 0b11, 0b01

    assigned = maximum_matching([fits_both, fits_the_first], 2)

    assert [1, 0] == assigned


def test_equal_calls_serve_expected_calls_in_their_order() -> None:
    assert [0, 1, 2] == maximum_matching([0b111] * 5, 3)


def test_without_calls_or_expected_calls_nothing_is_served() -> None:
    assert [] == maximum_matching([], 0)
    assert [-1, -1] == maximum_matching([0, 0], 2)


def test_keys_beyond_the_width_are_not_seen() -> None:
    assert [0] == maximum_matching([0b111, 0b100], 1)
