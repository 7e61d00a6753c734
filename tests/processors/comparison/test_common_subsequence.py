from hypothesis import given
from hypothesis import strategies as st

from processors.comparison.alignment import common_subsequence, common_subsequence_length

_WIDTH = 7
_rows = st.lists(st.integers(0, 2**_WIDTH - 1), max_size=9)


def _by_table(rows: list[int], width: int) -> list[int]:
    """The same with the usual table, walked back as the rule for ties says."""
    table = [[0] * (width + 1) for _ in range(len(rows) + 1)]
    for i, row in enumerate(rows, 1):
        for j in range(1, width + 1):
            matches = row >> (j - 1) & 1
            table[i][j] = table[i - 1][j - 1] + 1 if matches else max(table[i - 1][j], table[i][j - 1])
    i, j, found = len(rows), width, []
    while i and j:
        if rows[i - 1] >> (j - 1) & 1:
            i, j = i - 1, j - 1
            found.append(j)
        elif table[i - 1][j] > table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found[::-1]


@given(_rows)
def test_the_subsequence_is_the_one_of_the_usual_table(rows: list[int]) -> None:
    expected = _by_table(rows, _WIDTH)

    assert expected == common_subsequence(rows, _WIDTH)
    assert len(expected) == common_subsequence_length(rows, _WIDTH)


def test_without_calls_or_without_keys_it_is_empty() -> None:
    assert [] == common_subsequence([], 3)
    assert [] == common_subsequence([0, 0], 0)
    assert 0 == common_subsequence_length([], 3)
