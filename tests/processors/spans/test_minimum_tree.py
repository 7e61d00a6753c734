"""The nearest number that is low enough, beside looking at one number after the other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.spans.minimum_tree import MinimumTree

NUMBERS = st.lists(st.integers(0, 9), min_size=1, max_size=20)


@given(NUMBERS, st.integers(0, 25), st.integers(-1, 10))
def test_the_first_low_number_is_the_one_that_looking_at_each_finds(
    numbers: list[int], start: int, bound: int
) -> None:
    wanted = next((place for place in range(start, len(numbers)) if numbers[place] <= bound), -1)

    assert wanted == MinimumTree(numbers).first(start, bound)


@given(NUMBERS, st.integers(0, 19), st.integers(-1, 10))
def test_the_last_low_number_is_the_one_that_looking_at_each_finds(
    numbers: list[int], stop: int, bound: int
) -> None:
    stop = min(stop, len(numbers) - 1)

    wanted = next((place for place in range(stop, -1, -1) if numbers[place] <= bound), -1)

    assert wanted == MinimumTree(numbers).last(stop, bound)


@pytest.mark.parametrize("numbers", [[], [7]])
def test_where_no_number_is_low_enough_there_is_no_place(numbers: list[int]) -> None:
    assert -1 == MinimumTree(numbers).first(0, 6)
