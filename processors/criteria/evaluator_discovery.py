"""Which evaluators there are: the public classes of the modules in `processors/evaluators/`.

A new evaluator is a class in a new file there, or in that of its family; nothing has to be registered.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType, ModuleType

import processors.evaluators
from processors.model import Evaluator

_CONTRACT = ("id", "version", "Config", "Criteria", "evaluate", "attainable")


@cache
def evaluator_types() -> Mapping[str, type[Evaluator]]:
    """All evaluator classes by id, in order; raises TypeError for a module without, or an id of two."""
    folder = processors.evaluators
    names = sorted(module.name for module in pkgutil.iter_modules(folder.__path__))
    return evaluators_in(importlib.import_module(f"{folder.__name__}.{name}") for name in names)


def evaluators_in(modules: Iterable[ModuleType]) -> Mapping[str, type[Evaluator]]:
    """The evaluator classes that `modules` define; raises TypeError as `evaluator_types` does."""
    evaluators: dict[str, type[Evaluator]] = {}
    for module in modules:
        classes: list[type[Evaluator]] = [
            value
            for name, value in vars(module).items()
            if isinstance(value, type)
            and value.__module__ == module.__name__
            and not name.startswith("_")
            and all(hasattr(value, attribute) for attribute in _CONTRACT)
        ]
        if not classes:
            raise TypeError(
                f"{module.__name__}: expected a public class with {', '.join(_CONTRACT)}; found none"
            )
        for evaluator in classes:
            other = evaluators.setdefault(evaluator.id, evaluator)
            if other is not evaluator:
                raise TypeError(
                    f'{module.__name__}: the id of {evaluator.__name__} is "{evaluator.id}", '
                    f"which is that of {other.__module__}.{other.__name__}"
                )
    return MappingProxyType(dict(sorted(evaluators.items())))
