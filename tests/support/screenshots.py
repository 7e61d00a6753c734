"""The pictures of the page in README and docs: `make screenshots`.

The runs are those of the demonstration, graded by its criteria, with times and ids that are always the same.
A picture holds the text that the page shows in it, so that a test can tell whether it is current: how letters
are drawn differs from machine to machine.
"""

import asyncio
import base64
import json
import struct
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from collector.clock import ManualClock
from collector.criteria import CriteriaStore, DraftSettings, EvaluationConfig, default_file
from collector.page import PageConfig, PageServer, Views
from processors.annotation import graded_run_from_json
from processors.criteria import CriteriaSet, read_criteria
from processors.model import GradedRun
from tests.support.chromium import Chromium
from tests.support.service_process import ServiceProcess
from tests.support.stored_runs import filled

WIDTH = 1200
_SECOND = 1_000_000_000
_CHANGE = ('refund_payment: ["<=", 1]', 'refund_payment: ["=", 0]')
"""What the draft in a picture changes in the criteria in force."""
_NOON = 1_772_366_400 * _SECOND
"""2026-03-01 12:00 UTC."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_BOTTOM = 24
"""Pixels of the empty space below a page that a picture leaves out."""
_KEYWORD = b"Description\0"
_END = struct.pack(">I", 0) + b"IEND"


@dataclass(frozen=True, slots=True)
class Screenshot:
    """A picture as PNG, and the text that it shows."""

    name: str
    png: bytes
    text: str


async def demo_runs(folder: Path) -> Sequence[GradedRun]:
    """The runs of the demonstration as the service grades them, in an order and at times that are made up."""
    criteria = default_file("criteria/demo.yaml").read_text()
    async with ServiceProcess(folder, {}, criteria) as service:
        from collector.tools.demo import scripted_runs, send_scripted_runs

        await asyncio.to_thread(send_scripted_runs, service.endpoints["grpc"])
        async with asyncio.timeout(60):
            while len(service.results()) < len(scripted_runs()):
                await asyncio.sleep(0.1)
        found = [graded_run_from_json(line, "demo") for line in service.results()]
    found.sort(
        key=lambda graded: (
            graded.run.agent.name,
            *map(str, (graded.run.input, graded.run.output)),
            str([(call.name, call.arguments_text, call.result_text) for call in graded.run.tool_calls]),
        )
    )
    return [_at(graded, number, len(found)) for number, graded in enumerate(found)]


def _at(graded: GradedRun, number: int, count: int) -> GradedRun:
    """The run at a time of its own: turns of the model and calls in turns, each a fifth of a second long."""
    start = _NOON - (count - number) * 3400 * _SECOND
    calls = [
        structs.replace(
            call,
            start_unix_nano=start + (index + 1) * _SECOND * 2 // 5,
            end_unix_nano=start + (index + 1) * _SECOND * 2 // 5 + _SECOND // 5,
        )
        for index, call in enumerate(graded.run.tool_calls)
    ]
    turns = [
        structs.replace(
            turn, start_unix_nano=start + index * _SECOND * 2 // 5 + _SECOND // 5, duration_seconds=0.2
        )
        for index, turn in enumerate(graded.run.model_calls)
    ]
    run = replace(
        graded.run,
        trace_id=(number + 0xA61C_0000_0000_0000_0000_0000_0000_0001).to_bytes(16, "big"),
        span_id=(number + 1).to_bytes(8, "big"),
        start_unix_nano=start,
        end_unix_nano=start + (len(calls) + 2) * _SECOND * 2 // 5,
        tool_calls=calls,
        model_calls=turns,
        time_to_first_output_seconds=None,
    )
    return replace(graded, run=run, graded_unix_nano=run.end_unix_nano + _SECOND, instance="demo")


async def taken(folder: Path) -> Sequence[Screenshot]:
    """Every picture, taken anew; `folder` is for files that are needed on the way."""
    runs = await demo_runs(folder)
    clock = ManualClock()
    clock.advance((_NOON - clock.unix_nano()) / _SECOND)
    text = default_file("criteria/demo.yaml").read_text()
    criteria = CriteriaSet(read_criteria(text, "demo.yaml", {}).agents)
    failed = next(run for run in runs if len(run.run.tool_calls) > 1 and run.verdict.value == "fail")
    files = CriteriaStore([default_file("criteria/demo.yaml")], environment={})
    server = PageServer(
        PageConfig(endpoint="127.0.0.1:0"),
        Views(filled(runs), lambda: criteria, clock),
        draft_order=lambda *draft: DraftSettings(files.texts, EvaluationConfig()).order(*draft),
    )
    await server.start()
    pictures = []
    async with Chromium(WIDTH) as browser:
        await browser.resize(WIDTH, 1)
        for name, path in (
            ("page-agents", "/"),
            ("page-run", f"/run/{failed.run.trace_id.hex()}"),
            ("page-draft", "/draft"),
        ):
            await browser.open(f"http://{server.endpoint}{path}")
            if path == "/draft":
                await _tried(browser, text.replace(*_CHANGE))
            shown = await browser.text()
            height = await browser.evaluate("document.querySelector('main').getBoundingClientRect().bottom")
            await browser.resize(WIDTH, round(height) - _BOTTOM)
            answer = await browser.call("Page.captureScreenshot", format="png")
            pictures.append(
                Screenshot(f"{name}.png", _described(base64.b64decode(answer["data"]), shown), shown)
            )
    await server.shutdown(clock.monotonic() + 5)
    return pictures


async def _tried(browser: Chromium, draft: str) -> None:
    """Have a draft graded."""
    area = "document.querySelector('textarea').value"
    await browser.evaluate(f"{area} = {json.dumps(draft)}; document.querySelector('.draft button').click()")
    await browser.until("document.querySelector('main')?.innerText.includes('What would change')")


def _described(png: bytes, text: str) -> bytes:
    """The picture with a text in it, as a compressed chunk of its format."""
    chunk = b"iTXt" + _KEYWORD + b"\1\0\0\0" + zlib.compress(text.encode(), 9)
    at = png.rindex(_END)
    return (
        png[:at] + struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[at:]
    )


def shown_in(png: bytes) -> tuple[tuple[int, int], str]:
    """Width and height of a picture, and the text that `make screenshots` put into it."""
    assert png.startswith(_SIGNATURE)
    width, height = struct.unpack(">II", png[16:24])
    _, _, rest = png.partition(b"iTXt" + _KEYWORD + b"\1\0\0\0")
    return (width, height), zlib.decompressobj().decompress(rest).decode()


def write_screenshots(into: Path, folder: Path) -> None:
    """Take every picture and write it into a folder of the docs."""
    for picture in asyncio.run(taken(folder)):
        (into / picture.name).write_bytes(picture.png)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        write_screenshots(Path(sys.argv[1]), Path(scratch))
