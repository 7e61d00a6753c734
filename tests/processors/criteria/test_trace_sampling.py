from hypothesis import given
from hypothesis import strategies as st

from processors.criteria import is_sampled


@given(st.binary(min_size=16, max_size=16), st.floats(0, 1), st.floats(0, 1))
def test_a_trace_drawn_at_a_rate_is_drawn_at_every_higher_one(
    trace_id: bytes, one: float, two: float
) -> None:
    low, high = sorted((one, two))

    assert is_sampled(trace_id, low) <= is_sampled(trace_id, high)


@given(st.binary(min_size=16, max_size=16))
def test_all_traces_are_drawn_at_one_and_none_at_zero(trace_id: bytes) -> None:
    assert is_sampled(trace_id, 1.0)
    assert not is_sampled(trace_id, 0.0)


def test_the_share_is_kept_for_ids_that_only_count_up() -> None:
    drawn = sum(is_sampled(number.to_bytes(16, "big"), 0.1) for number in range(20_000))

    assert 1800 < drawn < 2200


def test_the_choice_is_the_same_in_every_version() -> None:
    drawn = [number for number in range(40) if is_sampled(number.to_bytes(16, "big"), 0.1)]

    assert [7, 8, 10, 24] == drawn
