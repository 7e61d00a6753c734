"""The edit distance: equal to the table of its definition, symmetric, and counted in steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.texts.edit_distance import edit_distance, edit_steps

_texts = st.text(st.sampled_from("abé漢"), max_size=24)
_long_texts = st.text(st.sampled_from("ab"), min_size=60, max_size=140)


def _by_definition(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for number, character in enumerate(left, start=1):
        previous, row = row, [number]
        for column, other in enumerate(right, start=1):
            row.append(min(previous[column] + 1, row[-1] + 1, previous[column - 1] + (character != other)))
    return row[-1]


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("", "abc", 3),
        ("kitten", "sitting", 3),
        ("flaw", "lawn", 2),
        ("日本語", "日本", 1),
        ("aaaa", "aa", 2),
        ("ab", "ba", 2),
    ],
)
def test_distance_is_the_least_number_of_edits(left: str, right: str, distance: int) -> None:
    assert distance == edit_distance(left, right)
    assert distance == edit_distance(right, left)


@given(left=_texts, right=_texts)
def test_distance_is_that_of_the_definition(left: str, right: str) -> None:
    assert _by_definition(left, right) == edit_distance(left, right)


@given(left=_long_texts, right=_long_texts)
def test_distance_is_that_of_the_definition_across_machine_words(left: str, right: str) -> None:
    assert _by_definition(left, right) == edit_distance(left, right)


def test_equal_ends_do_not_change_the_distance() -> None:
    middle = edit_distance("abcd", "badc")

    assert middle == edit_distance("x" * 5000 + "abcd" + "y" * 5000, "x" * 5000 + "badc" + "y" * 5000)


def test_steps_grow_with_the_shorter_text_and_slowly_with_the_longer_one() -> None:
    assert edit_steps("", "x" * 10_000) == edit_steps("", "x")
    assert edit_steps("ab", "abc") == edit_steps("abc", "ab")
    assert edit_steps("x" * 10, "y" * 100) < edit_steps("x" * 20, "y" * 100)
    assert edit_steps("x" * 10, "y" * 100) < edit_steps("x" * 10, "y" * 10_000)
