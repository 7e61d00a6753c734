"""The shell session of docs/guarantees.md, line by line: a killed service loses nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.support.backend_server import free_port

pytestmark = pytest.mark.end_to_end

PAGE = Path(__file__).parents[2] / "docs" / "guarantees.md"
SECONDS = 60


def _block(language: str, within: str) -> str:
    found = re.findall(rf"```{language}\n(.*?)```", within, re.DOTALL)
    assert len(found) == 1, f"{len(found)} blocks of {language}"
    return str(found[0])


def test_the_session_shows_that_a_killed_service_loses_nothing(tmp_path: Path) -> None:
    page = PAGE.read_text()
    session = page[page.index("To try it") : page.index("## A trace that continues")]
    grpc, http, telemetry = free_port(), free_port(), free_port()
    ports = (
        f"receivers: {{otlp: {{protocols: {{grpc: {{endpoint: 127.0.0.1:{grpc}}},"
        f" http: {{endpoint: 127.0.0.1:{http}}}}}}}}}\n"
        f"service: {{telemetry: {{endpoint: 127.0.0.1:{telemetry}}}}}\n"
    )
    (tmp_path / "tracegrade.yaml").write_text(_block("yaml", session) + ports)
    (tmp_path / "trace.json").write_text(_block("json", session))
    lines = _block("sh", session)
    assert "localhost:4318" in lines
    output = tmp_path / "output.txt"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    with output.open("wb") as written:
        shell = subprocess.Popen(
            ["bash", "-m", "-c", lines.replace("localhost:4318", f"localhost:{http}")],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            stdout=written,
            stderr=subprocess.STDOUT,
        )
    try:
        ends = monotonic() + SECONDS
        while "supported-response" not in (said := output.read_text()) and monotonic() < ends:
            assert shell.poll() is None, said
            sleep(0.2)
        shell.terminate()  # the last line runs in place of the shell
        assert 0 == shell.wait(SECONDS)
    finally:
        shell.kill()
        shell.wait()

    assert "2 undelivered spans of 1 traces" in said
    assert "already graded: 0 traces" in said
    assert re.search(
        r"PASS, 3 of 6 not evaluated +shop +trace_id=0af7651916cd43dd8448eb211c80319c +1 call, root", said
    ), said
    assert 'search {"query": "boots"}' in said
