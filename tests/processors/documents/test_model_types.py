from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue

from processors.documents.model_types import booleans_as_numbers


class Inner(BaseModel):
    max_calls: Annotated[int, Field(ge=0)] | None = None


class Outer(BaseModel):
    share: float = 1.0
    counts: Mapping[str, tuple[Literal["="], int]] = {}
    inner: list[Inner] = []
    enabled: bool = True
    label: str | int = ""
    anything: JsonValue = None


def test_true_and_false_are_found_wherever_a_number_is_meant() -> None:
    written: JsonValue = {
        "share": True,
        "counts": {"search": ["=", False]},
        "inner": [{}, {"maxCalls": True}],
    }

    found = list(booleans_as_numbers(written, Outer))

    assert [
        (("share",), True),
        (("counts", "search", 1), False),
        (("inner", 1, "maxCalls"), True),
    ] == found


def test_true_and_false_may_stand_where_more_than_numbers_may() -> None:
    written: JsonValue = {"enabled": False, "label": True, "anything": {"share": True}, "unknown": True}

    assert [] == list(booleans_as_numbers(written, Outer))
