"""Which exporters there are: one for each module in this folder that exposes a `COMPONENT`.

A new exporter is a new file here; nothing has to be registered.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from pydantic import BaseModel

import collector.exporters
from collector.exporters.exporter import ResultExporterType, SpanExporterType

ComponentType: TypeAlias = SpanExporterType[BaseModel] | ResultExporterType[BaseModel]
"""Either kind; `kind` tells them apart."""


@cache
def exporter_types() -> Mapping[str, ComponentType]:
    """All exporter types by the name that configuration uses, in the order of their names.

    Raises:
        TypeError: a `COMPONENT` is something else, or two modules claim one type name.
    """
    found: dict[str, ComponentType] = {}
    folder = collector.exporters
    for module_name in sorted(module.name for module in pkgutil.iter_modules(folder.__path__)):
        module = importlib.import_module(f"{folder.__name__}.{module_name}")
        component = getattr(module, "COMPONENT", None)
        if component is None:
            continue
        if not isinstance(component, SpanExporterType | ResultExporterType):
            raise TypeError(f"{module.__name__}.COMPONENT: expected an exporter type, found {component!r}")
        if component.type_name in found:
            raise TypeError(f"{module.__name__}.COMPONENT: the type {component.type_name!r} is taken")
        found[component.type_name] = component
    return MappingProxyType(dict(sorted(found.items())))
