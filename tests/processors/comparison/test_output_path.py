"""Paths into outputs: how they are read, and what is said where they lead nowhere."""

import pytest

from processors.comparison.output import OutputPath, OutputPathError
from processors.model import JsonValue

_OUTPUT: JsonValue = {"a": {"b": 1, "c d": 2}, "items": [{"name": "x"}, [3, 4]], "0": 5}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("*", _OUTPUT),
        ("a.b", 1),
        ("a..b", 1),
        (".a.b.", 1),
        ("a.c d", 2),
        ("a[b]", 1),
        ("items[0].name", "x"),
        ("items[1][0]", 3),
        ("0", 5),
    ],
)
def test_a_path_leads_from_key_to_key_and_position_to_position(path: str, value: JsonValue) -> None:
    assert value == OutputPath(path).resolve(_OUTPUT)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("b", 'no "b": there is no key "b"'),
        ("items[2]", 'no "items[2]": the list has no entry [2]'),
        ("a[0]", 'no "a[0]": expected a list with entry [0], found an object'),
        ("items.name", 'no "items.name": expected an object with "name", found a list'),
        ("a.b.c", 'no "a.b.c": expected an object with "c", found a number'),
    ],
)
def test_a_path_to_nothing_says_where_it_ends(path: str, message: str) -> None:
    with pytest.raises(OutputPathError) as refusal:
        OutputPath(path).resolve(_OUTPUT)

    assert message == str(refusal.value)


@pytest.mark.parametrize("path", ["", ".", "[]", "..[]"])
def test_a_path_without_a_step_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="a path such as"):
        OutputPath(path)


def test_only_a_key_that_is_written_as_it_stands_is_one_key() -> None:
    assert OutputPath("a b").is_one_key
    assert not any(OutputPath(path).is_one_key for path in ("*", "a.b", "a.", "items[0]"))
