import pytest

from processors.texts.number_tokens import number_tokens
from processors.texts.spelled_numbers import spelled_numbers


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234 rows", [1234, 1.234]),
        ("1 234 567 rows", [1234567]),
        ("1'234 rows", [1234]),
        ("12,34,567 rupees", [1234567]),
        ("1.299,50", [1299.5]),
        ("48,75 euros", [48.75]),
        ("1.299", [1299, 1.299]),
        ("-5 and +7", [5, 7]),
        ("4.82 billion", [4.82e9]),
        ("5k", [5000]),
        ("1,2,3", [1, 2, 3]),
        ("version 3.11.7 at 10.0.0.1", []),
        ("B7, x86 and abc123", []),
        ("7Zq9", []),
        ("no number", []),
    ],
)
def test_a_number_is_read_in_every_way_it_can_be_meant(text: str, values: list[float]) -> None:
    found = [reading.magnitude for token in number_tokens(text) for reading in token.readings]

    assert values == found


def test_what_stands_beside_a_number_is_read() -> None:
    price, share, cold, far = number_tokens("about $12.50, 40%, 5°C and 3 miles")

    assert price.is_approximate
    assert "USD" in price.currencies
    assert share.is_percent
    assert "C" == cold.temperature
    assert far.unit is not None
    assert "length" == far.unit.dimension
    assert [2, 0, 0, 0] == [token.readings[0].decimals for token in (price, share, cold, far)]


def test_a_code_of_a_currency_counts_before_and_behind_the_number() -> None:
    before, behind = number_tokens("EUR 50 or 60 GBP")

    assert {"EUR"} == before.currencies
    assert {"GBP"} == behind.currencies


def test_number_words_are_read_with_their_compounds() -> None:
    assert [42, 3, 20] == spelled_numbers("Forty-two, three and twenty.")
