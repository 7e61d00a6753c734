from collections.abc import Mapping
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, JsonValue, ValidationError

from processors.documents import EvaluatorModel, Problem, read_yaml, validated


class Inner(BaseModel):
    max_calls: Annotated[int, Field(ge=0)] | None = None


class Outer(BaseModel):
    share: float = 1.0
    counts: Mapping[str, tuple[Literal["="], int]] = {}
    inner: list[Inner] = []
    enabled: bool = True
    label: str | int = ""
    anything: JsonValue = None


class Switch(EvaluatorModel):
    on: bool = False


def problems(text: str) -> list[str]:
    document = read_yaml(text, "")
    found: list[Problem] = []
    validated(Outer, document.value, document, found)
    return list(map(str, found))


def test_true_and_false_are_found_wherever_a_number_is_meant() -> None:
    text = "share: true\ncounts: {search: ['=', no]}\ninner:\n- {}\n- {maxCalls: yes}\n"

    assert [
        "share: expected a number; found true",
        "counts.search[1]: expected a number; found false",
        "inner[1].maxCalls: expected a number; found true",
    ] == problems(text)


def test_true_and_false_may_stand_where_more_than_numbers_may() -> None:
    assert [] == problems("{enabled: false, label: true, anything: {share: true}, unknown: true}")


@pytest.mark.parametrize(
    "written", [True, 1, 1.0, "true", "TRUE", "t", "yes", "Y", "on", "On", "1"], ids=repr
)
def test_what_people_write_for_true_is_true(written: object) -> None:
    assert Switch.model_validate({"on": written}).on is True


@pytest.mark.parametrize("written", [False, 0, 0.0, "false", "F", "no", "n", "OFF", "0"], ids=repr)
def test_what_people_write_for_false_is_false(written: object) -> None:
    assert Switch.model_validate({"on": written}).on is False


@pytest.mark.parametrize("written", ["maybe", "", " true", "2", 2, -1, 0.5, None, [], [True], {}], ids=repr)
def test_anything_else_is_refused(written: object) -> None:
    with pytest.raises(ValidationError):
        Switch.model_validate({"on": written})
