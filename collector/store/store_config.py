"""`store`: what the user writes."""

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler

from collector.config_fields import EMPTY_IS_DEFAULTS, FilePath, PositiveDuration
from processors.documents import StrictModel

_MEMORY_MIB, _FILE_MIB = 64, 1024
_LEAST_MIB = 8
_DAY_SECONDS = 24 * 3600.0


class StoreConfig(StrictModel):
    """Stores graded runs for the page and for searches. `off` is short for `{enabled: false}`."""

    enabled: bool = True
    """Whether runs are stored at all."""
    path: FilePath | None = Field(default=None, examples=["/var/lib/tracegrade/runs.db"])
    """A file on a local disk for this process alone, created with mode 0600. Without it runs are stored in
    memory, provided that there is a page."""
    retention: PositiveDuration = Field(default=14 * _DAY_SECONDS, examples=["14d", "36h"])
    """Older runs are removed."""
    max_mib: int | None = Field(default=None, ge=_LEAST_MIB, le=1024 * 1024, examples=[1024])
    """Limit for runs and indices; the oldest runs are removed first. Default: 1024 with a path, 64 in memory.
    """

    max_cpu: float = Field(default=0.1, gt=0, le=1, examples=[0.02])
    """Share of one core that storing runs may take. If runs arrive faster, some are not stored; failed ones
    are the last to be left out."""

    @property
    def limit_bytes(self) -> int:
        """Limit for runs and indices."""
        default = _MEMORY_MIB if self.path is None else _FILE_MIB
        return (self.max_mib or default) * 1024 * 1024

    def memory_bytes(self, most: int | None = None) -> int:
        """The limit for memory: 0 with a path. Unless `max_mib` is set, `most` limits it further.

        It is never less than the least value of `max_mib`.
        """
        if self.path is not None:
            return 0
        if most is None or self.max_mib is not None:
            return self.limit_bytes
        return max(min(self.limit_bytes, most), _LEAST_MIB * 1024 * 1024)


_OFF_IS_DISABLED = BeforeValidator(
    lambda written: {"enabled": False} if written is False or written == "off" else written
)


class _OrOff:
    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"enum": ["off", False, None]}]}


StoreSection: TypeAlias = Annotated[StoreConfig, EMPTY_IS_DEFAULTS, _OFF_IS_DISABLED, _OrOff()]
"""The settings, nothing for their defaults, or `off`."""
