"""What people write as durations and addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from collector.config_fields import (
    Duration,
    Endpoint,
    PositiveDuration,
    format_duration,
    parse_duration,
    parse_endpoint,
    parse_moment,
)


class _Model(BaseModel):
    wait: Duration = 2.0
    timeout: PositiveDuration = 10.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("0s", 0.0),
        ("200ms", 0.2),
        ("5s", 5.0),
        ("1.5s", 1.5),
        ("1m", 60.0),
        ("1h30m", 5400.0),
        (" 2s ", 2.0),
    ],
)
def test_texts_with_units_are_seconds(text: str, seconds: float) -> None:
    assert seconds == parse_duration(text)


@pytest.mark.parametrize("text", ["", "s", "5", "-5s", "5 s", "1s 2m", "5y", "1e3s", "5s!", ".5s", "∞"])
def test_anything_else_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 200ms, 5s, 1m or 1h30m, got"):
        parse_duration(text)


@pytest.mark.parametrize("value", [5, 2.5, "5", "2.5"])
def test_a_bare_number_is_refused_for_its_missing_unit(value: object) -> None:
    with pytest.raises(ValidationError, match="the unit is missing"):
        _Model.model_validate({"wait": value})


@pytest.mark.parametrize("value", [True, None, [], {}])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="expected a duration"):
        _Model.model_validate({"wait": value})


def test_zero_needs_no_unit_but_may_not_be_allowed() -> None:
    assert 0.0 == _Model.model_validate({"wait": 0}).wait
    with pytest.raises(ValidationError):
        _Model.model_validate({"timeout": "0s"})


def test_models_print_what_they_read() -> None:
    model = _Model.model_validate({"wait": "1h30m"})

    assert {"wait": "1h30m", "timeout": "10s"} == model.model_dump()
    assert model == _Model.model_validate(model.model_dump())


@given(st.integers(0, 10**9))
def test_formatting_and_parsing_agree_to_the_millisecond(milliseconds: int) -> None:
    assert milliseconds / 1000 == parse_duration(format_duration(milliseconds / 1000))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:4318", ("127.0.0.1", 4318)),
        ("localhost:0", ("localhost", 0)),
        (":4317", ("0.0.0.0", 4317)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_an_endpoint_is_host_and_port(text: str, expected: tuple[str, int]) -> None:
    assert expected == parse_endpoint(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "localhost:",
        "localhost:65536",
        "localhost:-1",
        "::1:4318",
        "[localhost]:1",
        "http://localhost:4318",
        "a b:1",
        "host:٣",
        "host:" + "9" * 5000,
    ],
)
def test_any_other_address_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValidationError, match="expected host:port such as"):
        TypeAdapter(Endpoint).validate_python(text)


NOW = 1_769_846_403_250
"""2026-01-31T08:00:03.25Z."""


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("24h", NOW - 86_400_000),
        ("9999w", 1),
        ("now", NOW),
        ("today", 1_769_817_600_000),
        ("yesterday", 1_769_731_200_000),
        ("2026-01-31", 1_769_817_600_000),
        ("2026-01-31T08:00", 1_769_846_400_000),
        ("2026-01-31 08:00:03.250", NOW),
        ("2026-01-31T08:00:00Z", 1_769_846_400_000),
        ("2026-01-31T08:00:00+02:00", 1_769_839_200_000),
    ],
)
def test_a_moment_is_a_duration_ago_a_day_or_a_time(text: str, milliseconds: int) -> None:
    assert milliseconds == parse_moment(text, NOW)


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-13-01", "1969-12-31", "0001-01-01T00:00+14:00", "-1h"]
)
def test_other_moments_are_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 24h or 7d, a date such as 2026-01-31"):
        parse_moment(text, NOW)
