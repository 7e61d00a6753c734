"""Which setting of an agent's framework sends content: what the page says where none was captured."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from collector.framework_pages import supported_frameworks

_BY_DEFAULT = "nothing; "


class ContentSetting(NamedTuple):
    """A setting, with code in backticks, and the frameworks that have it."""

    frameworks: str
    told: str


@cache
def content_settings() -> Mapping[str, Sequence[ContentSetting]]:
    """What can be set, by the dialect that reads the framework; no entry where nothing can be."""
    found: dict[str, dict[str, list[str]]] = {}
    for framework in supported_frameworks():
        told = framework.switch_on
        if told == "nothing":
            continue
        told = told.removeprefix(_BY_DEFAULT) if told.startswith(_BY_DEFAULT) else f"switch on {told}"
        found.setdefault(framework.dialect, {}).setdefault(told, []).append(framework.name)
    return {
        dialect: [ContentSetting(", ".join(names), told) for told, names in by_setting.items()]
        for dialect, by_setting in found.items()
    }
