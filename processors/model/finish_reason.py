"""Why a trace was taken as finished."""

from enum import StrEnum


class FinishReason(StrEnum):
    """The closed list of reasons; it travels with every result of the trace."""

    ROOT = "root"
    """A local root is there, no parent is missing, and the trace was quiet for its grace."""
    ROOT_INCOMPLETE = "root_incomplete"
    """A local root is there, but some span names a parent that never arrived."""
    IDLE = "idle"
    """No local root was seen and the trace was quiet for the idle time."""
    MAX_AGE = "max_age"
    OVER_LIMIT = "over_limit"
    PRESSURE = "pressure"
    SHUTDOWN = "shutdown"


CUT_SHORT: frozenset[FinishReason] = frozenset(
    {FinishReason.MAX_AGE, FinishReason.OVER_LIMIT, FinishReason.PRESSURE, FinishReason.SHUTDOWN}
)
"""Reasons under which more spans were still to be expected: runs of such a trace are not complete."""
