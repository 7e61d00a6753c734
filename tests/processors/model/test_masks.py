"""Masks are known by their forms, and what they hide neither equals nor differs."""

import pytest

from processors.model import (
    ValueState,
    contains_text,
    decode_arguments,
    decode_result,
    has_mask,
    is_mask,
    parse_json,
    same_text,
    text_value,
)

WHOLE = [
    "****", "********", "***", "[REDACTED]", "[redacted]", "<REDACTED>", "__REDACTED__", "[REDACTED_EMAIL]",
    "[Scrubbed due to 'password']", "[MASKED]", "[Filtered]", "<PERSON>", "<EMAIL_ADDRESS>",
    "HIDDEN:non-empty", "REDACTED", "<email_hash:a1b2c3d4>", " [REDACTED] ",
    "<not serializable>", "<not serializable object of type: Client>", "<replaced>",
    "[object Object]",
]  # fmt: skip
PART = [
    "paid with [REDACTED]", "card ****4410", "f****7ae5", "It is **** degrees", "j***@example.com",
    "token=***", "key: ***, next", "138****2210", "<PERSON> wrote", "{'key': '***'}", "abc…xyz",
    "Oslo is...[truncated, original 90000 chars]", "Oslo…[truncated]… 11 degrees", "Oslo is... (truncated)",
    "Oslo is\n\n[TRUNCATED - Content exceeds 60KB limit]",
]  # fmt: skip
NONE = [
    "**bold** and ***both***", "a ** b", "2**3", "* * * * *", "0 */5 * * *", "first\n***\nsecond",
    "first\n****\nsecond", "[1, 2]", "[note] see above", "<b>REDACTION</b>", "Loading...", "", "a [link](x)",
    "masked", "the [asked] one", "each result (truncated) is added", "a [truncated normal](x) one",
    "truncated", "d670460b4b4aece5915caf5c68d12f560a9fe3e4",
]  # fmt: skip


@pytest.mark.parametrize("text", WHOLE)
def test_a_text_that_is_a_mask_is_redacted_wherever_it_stands(text: str) -> None:
    assert is_mask(text)
    assert (None, ValueState.REDACTED) == text_value(text.strip())[::2]
    assert ValueState.REDACTED is decode_result(text).state
    assert ValueState.REDACTED is decode_arguments(text).state


@pytest.mark.parametrize("text", PART)
def test_a_mask_in_a_text_is_seen_and_the_text_is_kept(text: str) -> None:
    assert has_mask(text)
    assert not is_mask(text)
    assert text == text_value(text).value


@pytest.mark.parametrize("text", NONE)
def test_markup_lists_and_formulas_are_no_masks(text: str) -> None:
    assert not has_mask(text)


@pytest.mark.parametrize(
    ("expected", "actual", "verdict"),
    [
        ("paid with 4111", "paid with [REDACTED]", None),
        ("sold with 4111", "paid with [REDACTED]", False),
        ("a [REDACTED]", "a [REDACTED]", True),
        ("x 1 y 2 z", "x **** y **** z", None),
        ("x 1 z 2 y", "x **** y **** z", False),
        ("aba", "ab****ba", False),
        ("Oslo", "9f86d081884c7d659a2feaa0c55ad015", None),
        ("11 degrees in Oslo", "11 deg... [truncated]", None),
        ("12 degrees in Oslo", "11 deg... [truncated]", False),
        ("0" * 32, "9f86d081884c7d659a2feaa0c55ad015", False),
        ("0" * 40, "9f86d081884c7d659a2feaa0c55ad015", None),
        ("Oslo", "Paris", False),
    ],
)
def test_texts_are_told_apart_by_what_is_known(expected: str, actual: str, verdict: bool | None) -> None:
    assert verdict is same_text(expected, actual)


def test_what_is_not_in_the_known_part_may_be_behind_a_mask() -> None:
    assert contains_text("paid with ****", "Paid", fold=True) is True
    assert contains_text("paid with ****", "4111") is None
    assert contains_text("paid in cash", "4111") is False


def test_json_is_read_where_asterisks_stand_for_numbers() -> None:
    text = '{"total": ****4, "rate": ****.0, "note": "a: **** \\"b\\"", "list": [****, 2]}'

    expected = {"total": "****4", "rate": "****.0", "note": 'a: **** "b"', "list": ["****", 2]}
    assert expected == parse_json(text)


@pytest.mark.parametrize("text", ["{****}", '{"city": "To****'])
def test_arguments_that_a_mask_broke_are_redacted(text: str) -> None:
    assert ValueState.REDACTED is decode_arguments(text).state
