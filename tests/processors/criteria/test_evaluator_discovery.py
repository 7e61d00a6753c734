from types import ModuleType
from typing import ClassVar

import pytest
from pydantic import BaseModel

from processors.criteria.evaluator_discovery import evaluator_types, evaluators_in


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


def test_every_evaluator_in_the_folder_is_found_under_its_own_id() -> None:
    found = evaluator_types()

    assert {"tool-call-count", "tool-call-order", "tool-call-args", "tool-call-output"} <= set(found)
    assert sorted(found) == list(found)
    assert all(name == evaluator.id for name, evaluator in found.items())


def test_an_imported_or_private_class_is_not_an_evaluator_of_a_module() -> None:
    made = module("folder.tool_noise", ToolNoise=ToolNoise, _Base=ToolNoise)
    made.Imported = ToolNoise  # type: ignore[attr-defined]

    assert ["ToolNoise"] == [found.__name__ for found in evaluators_in([made]).values()]


def test_a_file_may_hold_several_evaluators() -> None:
    quiet = type("ToolQuiet", (ToolNoise,), {"id": "tool-quiet"})
    made = module("folder.tool_sounds", Quiet=quiet, Noise=ToolNoise)

    assert ["tool-noise", "tool-quiet"] == list(evaluators_in([made]))


def test_a_file_without_an_evaluator_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"folder\.tool_noise: expected a public class"):
        evaluators_in([module("folder.tool_noise")])


def test_two_evaluators_with_one_id_are_an_error() -> None:
    with pytest.raises(
        TypeError, match=r'the id of B is "tool-noise", which is that of folder\.tool_noise\.A'
    ):
        evaluators_in([module("folder.tool_noise", A=ToolNoise, B=ToolNoise)])
