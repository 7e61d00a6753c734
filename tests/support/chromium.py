"""A real Chromium without a window, driven over its DevTools protocol."""

import asyncio
import itertools
import json
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

_PATIENCE_SECONDS = 30.0
_ANSWER_BYTES = 64 * 1024 * 1024


class Chromium:
    """A browser with one page; `problems` are the errors and refused requests that its console told of."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self._size = width, height
        self._numbers = itertools.count(1)
        self._folder = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        self._process: asyncio.subprocess.Process | None = None
        self._session: aiohttp.ClientSession
        self._socket: aiohttp.ClientWebSocketResponse
        self._reading: asyncio.Task[None]
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self.problems: list[str] = []
        self.requested: list[str] = []
        """Every address that a page asked for."""

    async def __aenter__(self) -> Self:
        program = shutil.which("chromium")
        assert program is not None, "Debian's package chromium is needed"
        folder = self._folder.name
        self._process = await asyncio.create_subprocess_exec(
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            "--hide-scrollbars",
            f"--user-data-dir={folder}",
            f"--window-size={self._size[0]},{self._size[1]}",
            "--remote-debugging-port=0",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        port_file = Path(folder, "DevToolsActivePort")
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not port_file.exists() or "\n" not in port_file.read_text():
                await asyncio.sleep(0.05)
        port = port_file.read_text().splitlines()[0]
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json/list") as response:
            pages = [page for page in await response.json() if page["type"] == "page"]
        self._socket = await self._session.ws_connect(
            pages[0]["webSocketDebuggerUrl"], max_msg_size=_ANSWER_BYTES
        )
        self._reading = asyncio.create_task(self._read())
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.resize(*self._size)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._socket.close()
        await self._session.close()
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
        self._folder.cleanup()

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """The answer to one command of the protocol."""
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        await self._socket.send_str(json.dumps({"id": number, "method": method, "params": parameters}))
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await answer

    async def resize(self, width: int, height: int, scheme: str = "light") -> None:
        """Give the page a size, and the colours that a person prefers: light or dark."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def open(self, address: str) -> None:
        """Load a page and wait until it is there."""
        self._loaded.clear()
        await self.call("Page.navigate", url=address)
        await self.loaded()

    async def loaded(self) -> None:
        """Wait for the page that is under way."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await self._loaded.wait()

    async def evaluate(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def text(self) -> str:
        """What a person reads in the page."""
        return str(await self.evaluate("document.querySelector('main').innerText"))

    async def until(self, script: str) -> None:
        """Wait until an expression in the page holds."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not await self.evaluate(script):
                await asyncio.sleep(0.05)

    async def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)

    async def _read(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                if "error" in told:
                    self._answers.pop(told["id"]).set_exception(AssertionError(told["error"]))
                else:
                    self._answers.pop(told["id"]).set_result(told["result"])
                continue
            parameters = told["params"]
            if told["method"] == "Page.loadEventFired":
                self._loaded.set()
            elif told["method"] == "Page.frameStartedLoading":
                self._loaded.clear()
            elif told["method"] == "Runtime.exceptionThrown":
                self.problems.append(parameters["exceptionDetails"]["text"])
            elif told["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                self.problems.append(parameters["entry"]["text"])
            elif told["method"] == "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])
