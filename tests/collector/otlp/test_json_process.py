"""JSON converted by another process: the same answers, and a clear one where the process does not live."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from collector.errors import MalformedRequest, Overloaded
from collector.otlp import json_to_request, json_to_request_in_process, request_to_json
from tests.support.backends import eventually
from tests.support.otlp_senders import export_request


def children() -> list[int]:
    """The processes that convert for this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"json_process" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue  # it is gone
    return found


async def test_the_request_is_the_same() -> None:
    text = request_to_json(export_request(500))

    assert json_to_request(text) == await json_to_request_in_process(text)
    assert [] == children()


@pytest.mark.parametrize("text", [b"[1, 2", b'{"resourceSpans": [{"scopeSpans": 7}]}', b""])
async def test_what_is_refused_is_refused_with_the_same_words(text: bytes) -> None:
    with pytest.raises(MalformedRequest) as here:
        json_to_request(text)
    with pytest.raises(MalformedRequest) as apart:
        await json_to_request_in_process(text)

    assert str(here.value) == str(apart.value)


async def test_a_process_that_is_killed_asks_the_sender_to_come_back() -> None:
    reading = asyncio.create_task(json_to_request_in_process(b" " * (64 << 20)))
    await eventually(lambda: bool(children()), "the process runs")
    for pid in children():
        os.kill(pid, signal.SIGKILL)

    with pytest.raises(Overloaded, match="ended before it was done"):
        await reading


async def test_a_process_that_nobody_waits_for_is_ended() -> None:
    reading = asyncio.create_task(json_to_request_in_process(b" " * (64 << 20)))
    await eventually(lambda: bool(children()), "the process runs")

    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)

    assert [] == children()
