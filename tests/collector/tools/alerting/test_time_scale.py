from fractions import Fraction

import pytest

from collector.tools.alerting.windows import TimeScale, hours


@pytest.mark.parametrize("duration", ["7d", "1h", "15m", "1h30m", "500ms", "2m"])
def test_at_scale_one_a_duration_stays_as_it_is(duration: str) -> None:
    assert duration == TimeScale().scaled(duration)


@pytest.mark.parametrize(
    ("duration", "scaled"),
    [("7d", "16m48s"), ("1h", "6s"), ("5m", "500ms"), ("15m", "1s500ms"), ("3h", "18s"), ("1s", "2ms")],
)
def test_every_duration_is_multiplied(duration: str, scaled: str) -> None:
    assert scaled == TimeScale(Fraction(1, 600)).scaled(duration)


def test_durations_are_added_and_taken_away() -> None:
    assert "7d5h" == TimeScale().scaled("7d", "6h", less="1h")
    assert "1ms" == TimeScale().scaled("1h", less="1h")


def test_seconds_are_scaled_as_well() -> None:
    assert "300" == TimeScale().seconds("5m")
    assert "0.5" == TimeScale.parse("1/600").seconds("5m")


@pytest.mark.parametrize("text", ["0", "-1", "2", "1/0", "x", ""])
def test_what_is_no_scale_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a fraction such as 1/600"):
        TimeScale.parse(text)


def test_what_is_no_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        hours("1week")


def test_hours() -> None:
    assert 168 == hours("7d")
