"""Logging of the service: one line per record, readable on a terminal, JSON elsewhere.

Components log through the standard `logging` with fields in `extra`, and through a `RateLimitedLogger` what
may happen once per request. No line ever contains content of spans.
"""

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import TextIO

from collector.clock import Clock, SystemClock
from collector.telemetry.telemetry_config import LogEncoding, LogLevel

LogValue = str | int | float | bool | None

INTERVAL_SECONDS = 10.0
"""A reason is logged at most once in this time."""

_STANDARD_FIELDS = frozenset(
    vars(logging.LogRecord("", 0, "", 0, "", (), None)).keys() | {"message", "asctime", "taskName"}
)
OWN_LOGGERS = ("collector", "processors")
"""Top-level packages of the project; everything else that logs is a library."""

_MAX_FOREIGN_REASONS = 1000


class RateLimitedLogger:
    """Logs at most once in ten seconds for each reason; a line counts the suppressed ones.

    The reasons are words from a closed list. Use one for each logger: it holds the state of the limit.
    """

    def __init__(self, logger: logging.Logger, clock: Clock) -> None:
        self._logger = logger
        self._limit = _RateLimit(clock)

    def info(self, reason: str, message: str, **fields: LogValue) -> None:
        """Log at INFO."""
        self._log(logging.INFO, reason, message, fields)

    def warning(self, reason: str, message: str, **fields: LogValue) -> None:
        """Log at WARNING."""
        self._log(logging.WARNING, reason, message, fields)

    def error(self, reason: str, message: str, **fields: LogValue) -> None:
        """Log at ERROR."""
        self._log(logging.ERROR, reason, message, fields)

    def exception(
        self, reason: str, message: str, error: Exception | None = None, **fields: LogValue
    ) -> None:
        """Log at ERROR, with `error`, by default the exception being handled."""
        self._log(logging.ERROR, reason, message, fields, error or True)

    def _log(
        self,
        level: int,
        reason: str,
        message: str,
        fields: dict[str, LogValue],
        exception: Exception | bool = False,
    ) -> None:
        if not self._logger.isEnabledFor(level):
            return
        suppressed = self._limit.admit((self._logger.name, reason))
        if suppressed is None:
            return
        # `logging` refuses fields with the name of a record's own attribute.
        extra = {f"{name}_" if name in _STANDARD_FIELDS else name: value for name, value in fields.items()}
        extra["reason"] = reason
        if suppressed:
            extra["suppressed"] = suppressed
        # The origin is the caller's line: _log and the public method are two frames.
        self._logger.log(level, message, extra=extra, exc_info=exception, stacklevel=3)


class _RateLimit:
    """Remembers when each key was last admitted, and how often it was suppressed since."""

    def __init__(self, clock: Clock, max_keys: int | None = None) -> None:
        self._clock = clock
        self._max_keys = max_keys
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def admit(self, key: tuple[str, str]) -> int | None:
        """The number suppressed since the last time, or None if this one is suppressed."""
        now = self._clock.monotonic()
        last, suppressed = self._seen.get(key, (-INTERVAL_SECONDS, 0))
        if key in self._seen and now - last < INTERVAL_SECONDS:
            self._seen[key] = (last, suppressed + 1)
            return None
        if self._max_keys is not None and len(self._seen) >= self._max_keys:
            self._seen.clear()
        self._seen[key] = (now, 0)
        return suppressed


class ForeignRateLimit(logging.Filter):
    """Applies the same limit to warnings and errors of libraries, by logger and message template.

    A library logs a line for each broken request: senders of those must not fill the disk.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._limit = _RateLimit(clock, _MAX_FOREIGN_REASONS)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record may be written."""
        if record.levelno < logging.WARNING or record.name.partition(".")[0] in OWN_LOGGERS:
            return True
        suppressed = self._limit.admit((record.name, str(record.msg)))
        if suppressed:
            record.suppressed = suppressed
        return suppressed is not None


class _Lines(logging.Formatter):
    """A record as a JSON object, or for people as `time level=... logger=... message="..." key=value ...`."""

    def __init__(self, *, for_people: bool) -> None:
        super().__init__()
        self._for_people = for_people

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        moment = datetime.fromtimestamp(record.created, UTC)
        entry = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **record_fields(record),
        }
        if not self._for_people:
            return json.dumps(entry, default=str)
        time = entry.pop("time")
        return " ".join([str(time), *(f"{name}={_quoted(value)}" for name, value in entry.items())])


def configure_logging(
    stream: TextIO, *, level: LogLevel = "info", encoding: LogEncoding = "auto", clock: Clock | None = None
) -> logging.Handler:
    """Send every record of the process to `stream` only; returns the handler.

    `auto` writes for people if `stream` is a terminal and JSON lines otherwise. Libraries are logged from
    WARNING on. A later call replaces the effect of an earlier one.
    """
    for_people = encoding == "console" or (encoding == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Lines(for_people=for_people))
    handler.addFilter(ForeignRateLimit(clock or SystemClock()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())
    logging.captureWarnings(True)
    return handler


def record_fields(record: logging.LogRecord) -> dict[str, object]:
    """The fields of a record that were given as `extra`, and its exception."""
    fields = {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        fields["error"] = f"{type(error).__name__}: {error}"
        fields["traceback"] = "".join(traceback.format_exception(error))
    return fields


def _quoted(value: object) -> str:
    """Bare if that is unambiguous, else as a JSON text."""
    text = str(value).lower() if isinstance(value, bool) or value is None else str(value)
    if text and text.isprintable() and not any(character in text for character in ' "=\\'):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
