from types import ModuleType
from typing import ClassVar

import pytest
from pydantic import BaseModel

from processors.criteria.evaluator_discovery import evaluator_in, evaluator_types


class ToolNoise:
    id: ClassVar[str] = "tool-noise"
    version: ClassVar[str] = "1"
    Config: ClassVar[type[BaseModel]] = BaseModel
    Criteria: ClassVar[type[BaseModel] | None] = None

    def evaluate(self) -> None: ...

    def attainable(self) -> None: ...


def module(name: str, **classes: type) -> ModuleType:
    made = ModuleType(name)
    for class_name, value in classes.items():
        setattr(made, class_name, type(class_name, (value,), {"__module__": name}))
    return made


def test_every_file_in_the_folder_is_an_evaluator_under_its_own_id() -> None:
    found = evaluator_types()

    assert {"tool-call-count", "tool-call-order", "tool-call-args", "tool-call-output"} <= set(found)
    assert sorted(found) == list(found)
    assert all(name == evaluator.id for name, evaluator in found.items())


def test_an_imported_or_private_class_is_not_the_evaluator_of_a_module() -> None:
    made = module("folder.tool_noise", ToolNoise=ToolNoise, _Base=ToolNoise)
    made.Imported = ToolNoise  # type: ignore[attr-defined]

    assert evaluator_in(made).__name__ == "ToolNoise"


@pytest.mark.parametrize("classes", [{}, {"A": ToolNoise, "B": ToolNoise}], ids=["none", "two"])
def test_a_file_without_exactly_one_evaluator_is_an_error(classes: dict[str, type]) -> None:
    with pytest.raises(TypeError, match=r"folder\.tool_noise: expected exactly one public class"):
        evaluator_in(module("folder.tool_noise", **classes))


def test_a_file_named_unlike_its_evaluator_is_an_error() -> None:
    with pytest.raises(TypeError, match='the id of ToolNoise is "tool-noise", expected "tool-sound"'):
        evaluator_in(module("folder.tool_sound", ToolNoise=ToolNoise))
