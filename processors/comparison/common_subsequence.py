"""Longest common subsequences of calls and expected keys, on machine words instead of a table.

A call is a row: an integer whose bit `j` says that the call can stand for expected key `j`. One row of the
usual table is kept as one integer as well: bit `j` is clear where the length grows from key `j - 1` to
key `j` (the formulation of Hyyrö, 2004), so a row costs a few operations on integers.
"""

from collections.abc import Sequence


def common_subsequence(rows: Sequence[int], width: int) -> list[int]:
    """The expected keys, as ascending positions, of one longest common subsequence.

    Of several the one is taken that is found from the ends backwards by: a match is used; else a call is
    left out if that alone keeps the length; else an expected key.
    """
    full = (1 << width) - 1
    vector = full
    vectors = []
    for row in rows:
        matched = vector & row
        vector = ((vector + matched) | (vector - matched)) & full
        vectors.append(vector)

    positions = []
    row_index, bit = len(rows) - 1, width - 1
    while row_index >= 0 and bit >= 0:
        if rows[row_index] >> bit & 1:
            positions.append(bit)
            row_index -= 1
            bit -= 1
        elif vectors[row_index] >> bit & 1:
            bit -= 1
        else:
            row_index -= 1
    positions.reverse()
    return positions


def common_subsequence_length(rows: Sequence[int], width: int) -> int:
    """The length of the longest common subsequences."""
    full = (1 << width) - 1
    vector = full
    for row in rows:
        matched = vector & row
        vector = ((vector + matched) | (vector - matched)) & full
    return width - vector.bit_count()
