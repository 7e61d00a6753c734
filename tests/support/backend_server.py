"""A trace backend that people run, as a process of its own on this machine, out of `.venv-backends`."""

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

PROJECT = Path(__file__).parent.parent.parent
_PROGRAMS = PROJECT / ".venv-backends" / "bin"

START_SECONDS = 300.0
"""These servers import hundreds of modules and build their database first."""

STORE_SECONDS = 90.0
"""What a backend has answered may be seen in it only after a while."""


class BackendServer:
    """The program `name`, ready between `with` and its end. Tests skip, by name, where it is not installed.

    Args:
        name: A program of `.venv-backends`.
        arguments: What follows it on the command line.
        environment: Variables beside those of the tests.
        folder: Where it runs; its log is there, and everything it stores.
        url: Where it answers HTTP.
        health_path: What answers with 200 once it is ready.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *,
        url: str,
        health_path: str,
    ) -> None:
        self.url = url
        self._program = _PROGRAMS / name
        self._arguments = arguments
        self._environment = environment
        self._folder = folder
        self._log_path = folder / f"{name}.log"
        self._health_url = url + health_path
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if not self._program.exists():
            pytest.skip(f"{self._program.name} is not installed (make backends-install)")
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [str(self._program), *self._arguments],
                cwd=self._folder,
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self._end(self._process)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._end(self._process)

    def log_tail(self) -> str:
        return "\n".join(self._log_path.read_text(errors="replace").splitlines()[-40:])

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            assert process.poll() is None, f"{self._program.name} has ended:\n{self.log_tail()}"
            assert time.monotonic() < deadline, f"{self._program.name} is not ready:\n{self.log_tail()}"
            time.sleep(0.25)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(self._health_url, timeout=10) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End it and all that it has started: they have a session of their own."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                break
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                continue
        process.wait()


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago, for programs that cannot choose one themselves."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
