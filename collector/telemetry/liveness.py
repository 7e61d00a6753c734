"""Whether the event loop turns: a heartbeat, and a watchdog that says what it is that keeps it from turning.

Both are looked at from threads of their own, on the system's time: a loop that stands still can tell nothing.
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
"""A step that takes longer without letting the loop turn is named in the log."""
DEAD_SECONDS = 60.0
"""A loop that has not turned for so long is not going to."""

_LOOK_SECONDS = 0.5
_OWN_CODE = ("collector.", "processors.")

_logger = logging.getLogger(__name__)


class Heartbeat:
    """Beats while the loop that it was started in turns; may be asked in any thread."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self.thread_id = 0
        """The thread of the loop, once started."""

    def start(self) -> None:
        """Begin to beat, in the running loop."""
        self.thread_id = threading.get_ident()
        self._beat()

    def stop(self) -> None:
        """Beat no more; safe before `start` and twice."""
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
    """Code whose local variables tell what it works on: `attribute` of `variable`, or of a part of it."""

    code: CodeType
    variable: str
    attribute: str

    def value(self, frame: FrameType) -> str:
        """What `frame`, which executes the code, works on; empty if it does not say yet."""
        try:
            value = attrgetter(self.attribute)(frame.f_locals[self.variable])
        except (KeyError, AttributeError):
            return ""
        return value.hex() if isinstance(value, bytes) else str(value)


class Watchdog:
    """Logs once what a loop is doing that has not turned for `step_seconds`, and again when it turns.

    `watched` is looked for among what the loop's thread is executing, by the key that the log has for it; it
    costs nothing while the loop turns. Where the process as a whole did not run, the log says that instead.
    """

    def __init__(
        self, heartbeat: Heartbeat, watched: Mapping[str, WatchedCode], step_seconds: float = STEP_SECONDS
    ) -> None:
        self._heartbeat = heartbeat
        self._watched = watched
        self._step_seconds = step_seconds
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to look; after the heartbeat was started."""
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more; safe before `start` and twice."""
        self._stopped.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _watch(self) -> None:
        is_told = False
        longest = 0.0
        look = min(_LOOK_SECONDS, self._step_seconds / 2)
        began, used = time.monotonic(), time.process_time()
        while not self._stopped.wait(look):
            late, worked = time.monotonic() - began - look, time.process_time() - used
            began, used = time.monotonic(), time.process_time()
            if late > self._step_seconds and worked < late / 2:
                # Not even this thread ran, and nothing of the process did instead: no step is to blame.
                _logger.warning(
                    "The process did not run: it was paused, or others had the CPU.",
                    extra={"seconds": round(late, 1)},
                )
                continue
            silent = self._heartbeat.silent_seconds
            if silent > self._step_seconds:
                longest = silent
                if not is_told:
                    is_told = True
                    _logger.warning(
                        "A step holds up everything else.",
                        extra={"seconds": round(silent, 1), **self._doing()},
                    )
            elif is_told:
                is_told = False
                _logger.warning("The step is over.", extra={"seconds": round(longest, 1)})

    def _doing(self) -> dict[str, str]:
        """What the loop's thread executes: the watched values, and the innermost function of ours.

        What the loop's thread says nothing of, other threads are asked for.
        """
        told: dict[str, str] = {}
        frames = sys._current_frames()
        self._add_doing(told, frames.pop(self._heartbeat.thread_id, None))
        for frame in frames.values() if "trace_id" not in told else ():
            self._add_doing(
                told, frame
            )  # a large trace is graded in a thread, which may not let the loop turn
        return told

    def _add_doing(self, told: dict[str, str], frame: FrameType | None) -> None:
        while frame is not None:
            module = str(frame.f_globals.get("__name__", ""))
            if "step" not in told and module.startswith(_OWN_CODE):
                told["step"] = f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}"
            for key, watched in self._watched.items():
                if key not in told and frame.f_code is watched.code:
                    told[key] = watched.value(frame)
            frame = frame.f_back
