"""A mapping that is put together when it is looked at, and once."""

from processors.model import JsonValue, LateMapping


def test_a_mapping_is_made_once_and_only_if_somebody_looks() -> None:
    made: list[int] = []

    def make() -> dict[str, JsonValue]:
        made.append(1)
        return {"expected": ["a"], "actual": []}

    details = LateMapping(make)
    assert [] == made

    assert {"expected": ["a"], "actual": []} == details
    assert ["expected", "actual"] == list(details)
    assert ["a"] == details["expected"]
    assert "{'expected': ['a'], 'actual': []}" == repr(details)
    assert [1] == made
