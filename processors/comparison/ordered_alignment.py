"""Which calls stand for the expected ones when order counts: a longest common subsequence, call by call."""

from collections.abc import Sequence

from processors.comparison.common_subsequence import common_subsequence, common_subsequence_length
from processors.comparison.parallel_order import best_fitting_order, parallel_segments
from processors.model.agent_run import ToolCall


def aligned_calls(
    calls: Sequence[ToolCall], rows: Sequence[int], width: int, *, any_order: bool
) -> list[int] | None:
    """For each expected call the position of the call that stands for it in order, or -1.

    As many as possible are aligned. With `any_order` calls of one parallel group are taken in the order that
    fits best.

    Returns None when the search for that order was given up.
    """
    order: Sequence[int] = range(len(calls))
    keys = common_subsequence(rows, width)
    if any_order and len(keys) < width and any(call.parallel_group is not None for call in calls):
        best = best_fitting_order(rows, parallel_segments(calls), width)
        if best is None:
            return None
        order = best
        keys = common_subsequence([rows[position] for position in order], width)
    assigned = [-1] * width
    following = iter(order)
    for key in keys:
        for position in following:
            if rows[position] >> key & 1:
                assigned[key] = position
                break
    return assigned


def lasting_alignment(calls: Sequence[ToolCall], rows: Sequence[int], width: int) -> int:
    """How many expected calls are aligned whatever further calls come, and wherever they stand.

    Of a parallel group only one call is counted on, since later spans may tell its order.
    """
    first_of_each = [rows[segment[0]] for segment in parallel_segments(calls)]
    return common_subsequence_length(first_of_each, width)
