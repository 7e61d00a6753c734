"""`store`: what the user writes."""

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler

from collector.config_fields import EMPTY_IS_DEFAULTS, FilePath, PositiveDuration
from processors.documents import StrictModel

_MEMORY_MIB, _FILE_MIB = 64, 1024
_LEAST_MIB = 8
_DAY_SECONDS = 24 * 3600.0


class StoreConfig(StrictModel):
    """Keeps graded runs, so that people can look them up. `off` is short for `{enabled: false}`."""

    enabled: bool = Field(default=True, description="Whether runs are kept at all.")
    path: FilePath | None = Field(
        default=None,
        description="A file of its own on a local disk, for one process; it is made with mode 0600. Without "
        "it runs are kept in memory, while there is a page to look them up on.",
        examples=["/var/lib/tracegrade/runs.db"],
    )
    retention: PositiveDuration = Field(
        default=14 * _DAY_SECONDS, description="Older runs are removed.", examples=["14d", "36h"]
    )
    max_mib: int | None = Field(
        default=None,
        ge=_LEAST_MIB,
        le=1024 * 1024,
        description="What everything may take, indices included; the oldest runs go first. Left out: 1024 "
        "with a path, 64 in memory.",
        examples=[1024],
    )

    @property
    def limit_bytes(self) -> int:
        """What everything may take."""
        default = _MEMORY_MIB if self.path is None else _FILE_MIB
        return (self.max_mib or default) * 1024 * 1024

    def memory_bytes(self, most: int | None = None) -> int:
        """What it may take of the process's memory: nothing with a path, else what is written.

        Where nothing is written it takes at most `most` bytes, but never less than `max_mib` may say.
        """
        if self.path is not None:
            return 0
        if most is None or self.max_mib is not None:
            return self.limit_bytes
        return max(min(self.limit_bytes, most), _LEAST_MIB * 1024 * 1024)


def _without_off(written: object) -> object:
    return {"enabled": False} if written is False or written == "off" else written


class _OrOff:
    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"enum": ["off", False, None]}]}


StoreSection: TypeAlias = Annotated[StoreConfig, EMPTY_IS_DEFAULTS, BeforeValidator(_without_off), _OrOff()]
"""The settings, nothing for their defaults, or `off`."""
