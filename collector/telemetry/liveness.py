"""Whether the event loop turns: a heartbeat, and a watchdog that logs what blocks it.

Both are checked by separate threads on system time, since a blocked loop cannot report anything.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import CodeType, FrameType

BEAT_SECONDS = 0.25
STEP_SECONDS = 2.0
"""A step that blocks the loop for longer is logged."""
DEAD_SECONDS = 60.0
"""A loop blocked for longer counts as dead."""

_CHECK_SECONDS = 0.5
_OWN_CODE = ("collector.", "processors.")

_logger = logging.getLogger(__name__)


class Heartbeat:
    """Beats while the loop that it was started in turns; can be read in any thread."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self.thread_id = 0
        """The thread of the loop, once started."""

    def start(self) -> None:
        """Start beating in the running loop."""
        self.thread_id = threading.get_ident()
        self._beat()

    def stop(self) -> None:
        """Stop beating; safe before `start` and twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def silent_seconds(self) -> float:
        """How long ago the loop last turned."""
        return time.monotonic() - self._last

    def _beat(self) -> None:
        self._last = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat)


@dataclass(frozen=True, slots=True)
class WatchedCode:
    """Code whose local variables show what it works on: `attribute` of `variable`."""

    code: CodeType
    variable: str
    attribute: str

    def value(self, frame: FrameType) -> str:
        """What `frame`, which executes the code, works on; empty if not set yet."""
        try:
            value = attrgetter(self.attribute)(frame.f_locals[self.variable])
        except (KeyError, AttributeError):
            return ""
        return value.hex() if isinstance(value, bytes) else str(value)


@dataclass(eq=False)
class Watchdog:
    """Logs once what blocks a loop for more than `step_seconds`, and again when it turns.

    `watched` is code to look for among the frames of the loop's thread, by its key in the log; it costs
    nothing while the loop turns. If the process as a whole did not run, that is logged instead.
    """

    heartbeat: Heartbeat
    watched: Mapping[str, WatchedCode]
    step_seconds: float = STEP_SECONDS

    def __post_init__(self) -> None:
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start watching, once the heartbeat was started."""
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; safe before `start` and twice."""
        self._stopped.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _watch(self) -> None:
        longest = 0.0  # how long the loop has been blocked; 0 while it turns
        interval = min(_CHECK_SECONDS, self.step_seconds / 2)
        started, used = time.monotonic(), time.process_time()
        while not self._stopped.wait(interval):
            late, worked = time.monotonic() - started - interval, time.process_time() - used
            started, used = time.monotonic(), time.process_time()
            if late > self.step_seconds and worked < late / 2:
                # Not even this thread ran, and nothing of the process did instead: no step is to blame.
                _logger.warning(
                    "The process did not run: it was suspended or had no CPU.",
                    extra={"seconds": round(late, 1)},
                )
                continue
            silent = self.heartbeat.silent_seconds
            if silent > self.step_seconds:
                if not longest:
                    doing = {"seconds": round(silent, 1), **self._doing()}
                    _logger.warning("A step blocks the event loop.", extra=doing)
                longest = silent
            elif longest:
                _logger.warning("The event loop turns again.", extra={"seconds": round(longest, 1)})
                longest = 0.0

    def _doing(self) -> dict[str, str]:
        """The watched values, and the innermost function of this project, in the loop's thread.

        Values missing there are searched for in the other threads: a large trace is graded in a thread, which
        can also block the loop.
        """
        doing: dict[str, str] = {}
        frames = sys._current_frames()
        self._add_doing(doing, frames.pop(self.heartbeat.thread_id, None))
        for frame in frames.values() if "trace_id" not in doing else ():
            self._add_doing(doing, frame)
        return doing

    def _add_doing(self, doing: dict[str, str], frame: FrameType | None) -> None:
        while frame is not None:
            module = str(frame.f_globals.get("__name__", ""))
            if "step" not in doing and module.startswith(_OWN_CODE):
                doing["step"] = f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}"
            for key, watched in self.watched.items():
                if key not in doing and frame.f_code is watched.code:
                    doing[key] = watched.value(frame)
            frame = frame.f_back
