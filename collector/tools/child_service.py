"""A service as a child process of a command."""

import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

_READY = re.compile(r"^(?:tracegrade )?ready: (.*)\n", re.MULTILINE)
_SHOWN_LINES = 20


class ChildService:
    """`python -m` with `arguments`, which announces its endpoints; what it prints is kept in the file `log`.

    At the end of the context it is killed, if it has not ended by itself.
    """

    def __init__(self, log: Path, *arguments: str) -> None:
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def __enter__(self) -> "ChildService":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self.process.poll() is not None

    def endpoints(self, patience_seconds: float) -> Mapping[str, str]:
        """Its endpoints by name, once it is ready; none where it does not get so."""
        deadline = time.monotonic() + patience_seconds
        while time.monotonic() < deadline and not self.has_ended:
            if ready := _READY.search(self._log.read_text(errors="replace")):
                return dict(pair.split("=", 1) for pair in ready[1].split())
            time.sleep(0.05)
        return {}

    def log(self) -> str:
        """The last lines that it printed."""
        return "".join(self._log.read_text(errors="replace").splitlines(keepends=True)[-_SHOWN_LINES:])
