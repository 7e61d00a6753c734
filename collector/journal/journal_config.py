"""`journal`: what the user writes."""

from typing import Literal

from pydantic import Field

from collector.config_fields import Duration, FilePath
from processors.documents import StrictModel


class JournalConfig(StrictModel):
    """Keeps acknowledged spans on disk, so that a crash loses none: as they came, not encrypted."""

    directory: FilePath = Field(
        description="A dedicated directory on a local disk, for one process. Created with mode 0700."
    )
    fsync: Literal["always", "interval", "never"] = Field(
        default="always",
        description="When the disk is made to keep what was written: before a request is acknowledged, every "
        "`interval`, or when the system likes. But for `always` a power cut may lose acknowledged spans and "
        "damage the journal; a crash of the process alone loses none.",
    )
    interval: Duration = Field(
        default=1.0, gt=0, description="Maximum time between two syncs with `fsync: interval`."
    )
    max_bytes: int = Field(
        default=4 * 1024**3,
        ge=16 * 1024**2,
        description="Limit of the journalled spans, at which requests are refused retryably. The file may be "
        "half as large again.",
    )
    on_shutdown: Literal["keep", "drain"] = Field(
        default="keep",
        description="What happens to unfinished traces on SIGTERM. keep: the next process continues "
        "them; drain: they are finished and delivered, for where the volume is lost with the process.",
    )
