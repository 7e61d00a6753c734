"""Plain texts are told by the head that a message of their size must have."""

import pytest

from processors.spans import encoded_text, text_in

_SIZES = [*range(1, 400), *range(2030, 2060), *range(16_370, 16_384)]


@pytest.mark.parametrize("damage", [b"", b"\x00"])
def test_a_text_of_any_length_is_found_and_only_if_nothing_else_is_there(damage: bytes) -> None:
    for size in _SIZES:
        encoded = encoded_text("a" * size) + damage
        assert (None if damage else b"a" * size) == text_in(encoded), size


@pytest.mark.parametrize("encoded", [b"", b"\x0a", b"\x0a\x00", b"\x10\x01", encoded_text("a" * 16_384)])
def test_no_text_an_empty_and_a_long_one_are_left_to_others(encoded: bytes) -> None:
    assert text_in(encoded) is None


def test_what_is_cut_off_is_no_text() -> None:
    for size in _SIZES:
        assert text_in(encoded_text("a" * size)[:-1]) is None, size
