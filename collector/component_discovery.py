"""Discovers components: one for each module of a folder that exposes a `COMPONENT`."""

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any


def find_components(folder: ModuleType, kinds: tuple[type, ...]) -> Mapping[str, Any]:
    """All components of the package by the name that configuration uses, in the order of their names.

    Raises:
        TypeError: a `COMPONENT` is none of `kinds`, or two modules claim one type name.
    """
    components: dict[str, Any] = {}
    for module_name in sorted(module.name for module in pkgutil.iter_modules(folder.__path__)):
        module = importlib.import_module(f"{folder.__name__}.{module_name}")
        component: Any = getattr(module, "COMPONENT", None)
        if component is None:
            continue
        if type(component) not in kinds:
            expected = folder.__name__.rpartition(".")[2].removesuffix("s")
            raise TypeError(f"{module.__name__}.COMPONENT: expected an {expected} type, got {component!r}")
        if component.type_name in components:
            raise TypeError(f"{module.__name__}.COMPONENT: the type {component.type_name!r} is taken")
        components[component.type_name] = component
    return MappingProxyType(dict(sorted(components.items())))
