"""What counts as told: folded texts, numbers, dates, and what nobody need have told."""

import pytest

from processors.model import JsonValue, OverLimitError
from processors.response_handling import FROM_USER, Evidence
from processors.response_handling.grounding import MAX_ARGUMENT_EVIDENCE, MAX_SEARCHED_CHARACTERS


def _told(*values: JsonValue) -> Evidence:
    evidence = Evidence()
    for value in values:
        evidence.add(value, FROM_USER if isinstance(value, str) else 0)
    return evidence


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ("I live in Oslo.", "oslo"),
        ("Book AX-7 for me", "ax7"),
        ("write to Ada.Lovelace@example.com", "ada.lovelace@example.com"),
        ({"user": {"first": "Ada", "last": "Lovelace"}}, "Ada Lovelace"),
        ({"items": [{"sku": "B-12 / red"}]}, "b12"),
        ("the café in Zürich", "Café Zürich"),
        ("我想订去东京的机票", "东京"),
        ("flights from Paris to Rome", "flights to Paris"),
        ({"usd": 1.2}, "USD"),
        ("a table for two at NY Grill", "NY"),
        ("call +47 22 12 34 56", "+4722123456"),
    ],
)
def test_texts_are_found_however_they_are_spelled(told: JsonValue, value: str) -> None:
    assert _told(told).supports(value, "words")


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ("I live in Oslo.", "Bergen"),
        ("I am from Edinburgh", "Rome"),
        ("Book AX-7 for me", "AX-9"),
        ("flights from Paris", "flights to Rome"),
        ("write to ada@example.com", "eve@example.com"),
        ("a party", "art"),
        ("", "x"),
    ],
)
def test_texts_that_were_not_told_are_not_found(told: JsonValue, value: str) -> None:
    assert not _told(told).supports(value, "words")


def test_words_of_a_text_may_have_to_stand_together() -> None:
    evidence = _told({"first": "Ada", "last": "Lovelace"})

    assert evidence.supports("Ada Lovelace", "words")
    assert not evidence.supports("Ada Lovelace", "whole")
    assert _told("ada lovelace").supports("Ada Lovelace", "whole")


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ("I have 1,250 euros", 1250),
        ({"price": 19.987}, 19.99),
        ({"price": 41.7}, 42),
        ("at 7% interest", 0.07),
        ("it costs $19.99", 1999),
        ("a loan over twenty years", 20),
        ({"rows": [0] * 37}, 37),
        ({"net": 100, "tax": 25}, 125),
        ({"price": 49.5, "seats": 3}, 148.5),
        ({"balance": -310.25}, 310.25),
        ({"id": 9007199254740993}, 9007199254740993),
        ({"id": 4711}, "4711"),
        ("order #4711", "4711"),
        ("the year 2031", 2031.0),
        ({"at": "2026-03-05T00:00:00Z"}, 1772668800),
    ],
)  # fmt: skip
def test_numbers_are_found_by_value(told: JsonValue, value: str | float) -> None:
    assert _told(told).supports(value, "words")


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ("I have 1,250 euros", 1251),
        ({"price": 19.987}, 19.95),
        ({"id": 4711}, "4712"),
        ({"id": 9007199254740993}, 9007199254740997),
        ({"values": [101.5 * n for n in range(1, 20)]}, 46.5),
    ],
)
def test_numbers_that_were_not_told_are_not_found(told: JsonValue, value: str | float) -> None:
    assert not _told(told).supports(value, "words")


@pytest.mark.parametrize("value", ["", " - ", 0, 10, -3, 7.0, "5"])
def test_what_need_not_be_told_is_always_supported(value: str | float) -> None:
    assert Evidence().supports(value, "words")


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ("on March 5, 2026", "2026-03-05"),
        ("on 5 March", "2026-03-05"),
        ("on March 5, 2026", "2026-03-05T00:00:00Z"),
        ("at 6:30 pm", "18:30"),
        ({"start": 1772735400}, "2026-03-05T18:30:00Z"),
        ("next Friday", "2026-03-06"),
        ("leaving tomorrow at 9", "2026-03-06T09:00:00"),
    ],
)
def test_dates_are_found_by_the_parts_that_are_written(told: JsonValue, value: str) -> None:
    assert _told(told).supports(value, "words")


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ("on March 5, 2026", "2026-03-06"),
        ("on March 5, 2026", "2027-03-05"),
        ("on March 5 at 6:30 pm", "2026-03-05T19:30:00"),
        ({"day": "next Friday"}, "2026-03-06"),
    ],
)
def test_dates_that_were_not_told_are_not_found(told: JsonValue, value: str) -> None:
    assert not _told(told).supports(value, "words")


def test_the_amount_of_evidence_is_bounded() -> None:
    with pytest.raises(OverLimitError):
        _told("x " * MAX_ARGUMENT_EVIDENCE)


def test_the_amount_of_searching_is_bounded() -> None:
    evidence = _told("word " * (MAX_ARGUMENT_EVIDENCE // 10))
    wanted = [f"absent{number}" for number in range(MAX_SEARCHED_CHARACTERS // 50_000)]

    with pytest.raises(OverLimitError):
        any(evidence.supports(word, "whole") for word in wanted)


def test_the_name_of_a_member_that_holds_others_is_evidence_too() -> None:
    evidence = _told({"covers": {"broken_glass": {"active": True}}, "records": {"TXT": ["v=spf1"]}})

    assert evidence.supports("broken_glass", "whole")
    assert evidence.supports("TXT", "whole")
