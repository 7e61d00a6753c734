"""Details that are put together when they are looked at, and once."""

from processors.grading.deferred_details import DeferredDetails
from processors.json_value import JsonValue


def test_details_are_made_once_and_only_if_somebody_looks() -> None:
    made: list[int] = []

    def make() -> dict[str, JsonValue]:
        made.append(1)
        return {"expected": ["a"], "actual": []}

    details = DeferredDetails(make)
    assert [] == made

    assert {"expected": ["a"], "actual": []} == details
    assert ["expected", "actual"] == list(details)
    assert ["a"] == details["expected"]
    assert "{'expected': ['a'], 'actual': []}" == repr(details)
    assert [1] == made
