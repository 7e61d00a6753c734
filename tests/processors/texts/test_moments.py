import pytest

from processors.texts.moments import CalendarDate, ClockTime, written_moments


@pytest.mark.parametrize(
    "text",
    ["2025-11-02", "November 2, 2025", "Nov. 2 2025", "2 November 2025", "2nd of November 2025", "11/02/2025",
     "02.11.2025", "2025/11/02", "2025-11-02T18:30:00Z"],
)  # fmt: skip
def test_a_date_is_read_in_every_common_writing(text: str) -> None:
    dates = [date for written in written_moments(f"It was on {text}.") for date in written.dates]

    assert CalendarDate(2025, 11, 2) in dates


@pytest.mark.parametrize(
    ("text", "hour", "minute"),
    [("18:30", 18, 30), ("6:30 PM", 18, 30), ("6:30pm", 18, 30), ("12 a.m.", 0, 0), ("12:15 pm", 12, 15)],
)
def test_a_time_is_read_in_every_common_writing(text: str, hour: int, minute: int) -> None:
    (written,) = written_moments(f"It starts at {text} today")

    assert ClockTime(hour, minute, True) == written.time


@pytest.mark.parametrize(
    "text", ["16:9.5", "May 10,000 users", "2025-13-40", "it may be 5", "1/2 cup", "25:99"]
)
def test_other_numbers_are_no_dates(text: str) -> None:
    assert [] == written_moments(text)


def test_dates_agree_in_the_parts_that_both_have() -> None:
    assert CalendarDate(None, 11, 2).agrees(CalendarDate(2025, 11, 2))
    assert CalendarDate(2025, 11, None).agrees(CalendarDate(2025, 11, 2))
    assert not CalendarDate(2024, 11, 2).agrees(CalendarDate(2025, 11, 2))


def test_a_time_without_its_half_of_the_day_agrees_with_both() -> None:
    assert ClockTime(6, 30, False).agrees(ClockTime(18, 30, True))
    assert not ClockTime(6, 30, True).agrees(ClockTime(18, 30, True))
