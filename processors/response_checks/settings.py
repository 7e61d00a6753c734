"""What a user may change about the checks."""

from dataclasses import dataclass
from enum import StrEnum


class ErrorClass(StrEnum):
    """What kind of error a tool returned, and so what an agent can do about it."""

    PERMANENT = "permanent"
    RETRYABLE = "retryable"
    ARGUMENT = "argument"
    UNKNOWN = "unknown"


class PersonalData(StrEnum):
    """Personal data whose disclosure is checked only on request: showing users their own is normal."""

    EMAIL = "email"
    PHONE = "phone"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """Settings of the checks; the defaults are those of `tool-response-handling`.

    `acknowledgements` are phrases that admit trouble, beside the built-in English ones.
    """

    require_retry: bool = False
    retryable_attempts: int = 4
    acknowledgements: tuple[str, ...] = ()
    personal_data: frozenset[PersonalData] = frozenset()


DEFAULT_SETTINGS = CheckSettings()
