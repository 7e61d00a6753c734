"""Which evaluators there are: one for each module in `processors/evaluators/`.

A new evaluator is a new file there; nothing has to be registered.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, ModuleType

import processors.evaluators
from processors.model.evaluator import Evaluator

_CONTRACT = ("id", "version", "Config", "Criteria", "evaluate", "attainable")


@cache
def evaluator_types() -> Mapping[str, type[Evaluator]]:
    """All evaluator classes by short id, in the order of their ids.

    Raises:
        TypeError: a module does not hold exactly one public evaluator class, or its id is not the
            name of the file with hyphens.
    """
    folder = processors.evaluators
    names = sorted(module.name for module in pkgutil.iter_modules(folder.__path__))
    found = {}
    for name in names:
        evaluator = evaluator_in(importlib.import_module(f"{folder.__name__}.{name}"))
        found[evaluator.id] = evaluator
    return MappingProxyType(dict(sorted(found.items())))


def evaluator_in(module: ModuleType) -> type[Evaluator]:
    """The one evaluator class that `module` defines; raises TypeError as `evaluator_types` does."""
    classes = [
        value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and not name.startswith("_")
        and all(hasattr(value, attribute) for attribute in _CONTRACT)
    ]
    if len(classes) != 1:
        names = ", ".join(value.__name__ for value in classes) or "none"
        raise TypeError(
            f"{module.__name__}: expected exactly one public class with {', '.join(_CONTRACT)}; found {names}"
        )
    evaluator: type[Evaluator] = classes[0]
    expected = module.__name__.rpartition(".")[2].replace("_", "-")
    if evaluator.id != expected:
        raise TypeError(
            f'{module.__name__}: the id of {evaluator.__name__} is "{evaluator.id}", expected "{expected}" '
            "as the file is named"
        )
    return evaluator
