import pytest
from pydantic import BaseModel, ValidationError

from processors.documents.lenient_bool import LenientBool, read_lenient_bool


class Switch(BaseModel):
    on: LenientBool = False


@pytest.mark.parametrize(
    "written", [True, 1, 1.0, "true", "TRUE", "t", "yes", "Y", "on", "On", "1"], ids=repr
)
def test_what_people_write_for_true_is_true(written: object) -> None:
    assert read_lenient_bool(written) is True


@pytest.mark.parametrize("written", [False, 0, 0.0, "false", "F", "no", "n", "OFF", "0"], ids=repr)
def test_what_people_write_for_false_is_false(written: object) -> None:
    assert read_lenient_bool(written) is False


@pytest.mark.parametrize("written", ["maybe", "", " true", "2", 2, -1, 0.5, None, [], [True], {}], ids=repr)
def test_anything_else_is_refused(written: object) -> None:
    with pytest.raises(ValidationError):
        Switch.model_validate({"on": written})
