"""Which exporters there are: one for each module in this folder that exposes a `COMPONENT`.

A new exporter is a new file here; nothing has to be registered.
"""

from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from pydantic import BaseModel

import collector.exporters
from collector.component_discovery import find_components
from collector.exporters.exporter import ResultExporterType, SpanExporterType

ComponentType: TypeAlias = SpanExporterType[BaseModel] | ResultExporterType[BaseModel]
"""Either kind; `kind` tells them apart."""


@cache
def exporter_types() -> Mapping[str, ComponentType]:
    """All exporter types by the name that configuration uses, in the order of their names.

    Raises:
        TypeError: a `COMPONENT` is something else, or two modules claim one type name.
    """
    return find_components(collector.exporters, (SpanExporterType, ResultExporterType))
