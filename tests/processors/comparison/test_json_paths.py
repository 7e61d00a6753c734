import pytest

from processors.comparison.json_paths import leaves, parse_json_path, place_text
from processors.model import JsonValue

_FLIGHTS: JsonValue = {"flights": [{"id": 1, "via": ["OSL", "CPH"]}, {"id": 2, "via": []}], "a.b": {"": 3}}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("flights[0].id", [1]),
        ("$.flights[-1].id", [2]),
        ("flights[*].id", [1, 2]),
        ("flights.*.via[*]", ["OSL", "CPH"]),
        ("$['flights'][1]['id']", [2]),
        ('["a.b"][""]', [3]),
        ("flights[7].id", []),
        ("flights.id", []),
        ("none", []),
        ("", [_FLIGHTS]),
        ("$", [_FLIGHTS]),
    ],
)
def test_a_path_picks_values(path: str, values: list[JsonValue]) -> None:
    assert values == parse_json_path(path).values(_FLIGHTS)


@pytest.mark.parametrize("text", ["flights[", "flights[x]", "a..b", "a]", "[", "flights[0"])
def test_a_text_that_is_no_path_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no path: .* at character \d"):
        parse_json_path(text)


def test_leaves_come_with_their_places_in_order() -> None:
    found = [(place_text(place), value) for place, value in leaves(_FLIGHTS)]

    assert [
        ("flights[0].id", 1),
        ("flights[0].via[0]", "OSL"),
        ("flights[0].via[1]", "CPH"),
        ("flights[1].id", 2),
        ('["a.b"][""]', 3),
    ] == found


def test_the_text_of_a_place_is_a_path_to_it() -> None:
    for place, value in leaves(_FLIGHTS):
        assert [value] == parse_json_path(place_text(place)).values(_FLIGHTS)


def test_a_path_covers_what_it_picks_and_what_lies_inside() -> None:
    path = parse_json_path("flights[*].via")

    assert path.covers(("flights", 0, "via"))
    assert path.covers(("flights", 0, "via", 1))
    assert not path.covers(("flights", 0, "id"))
    assert not path.covers(("flights",))
