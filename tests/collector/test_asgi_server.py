"""The HTTP server that receivers and the telemetry endpoint share: real sockets, no sleeping."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
import pytest
from starlette.types import Receive, Scope, Send

from collector import asgi_server
from collector.asgi_server import AsgiServer
from collector.clock import ManualClock, SystemClock
from collector.errors import StartupError

_LARGE = 8_000_000


class _Application:
    """Answers with the size of the body, on /large with many bytes; waits for `release` on /wait."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.disconnected = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.entered.set()
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected.set()
                return
            size += len(message["body"])
            if not message["more_body"]:
                break
        if scope["path"] == "/wait":
            await self.release.wait()
        body = f"{scope['method']} {scope['path']} {size}".encode()
        if scope["path"] == "/large":
            body = b"x" * _LARGE
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def _soon(seconds: float = 10.0) -> float:
    return SystemClock().monotonic() + seconds


async def test_a_request_is_answered_on_the_free_port_taken_at_start(client: aiohttp.ClientSession) -> None:
    server = AsgiServer(_Application(), "127.0.0.1", 0)
    await server.start()

    async with client.post(f"http://{server.endpoint}/echo", data=b"x" * 300_000) as response:
        body = await response.text()

    assert "POST /echo 300000" == body
    assert 0 != server.port
    assert f"127.0.0.1:{server.port}" == server.endpoint
    await server.shutdown(_soon())


async def test_a_port_in_use_is_one_readable_line() -> None:
    first = AsgiServer(_Application(), "127.0.0.1", 0)
    await first.start()
    second = AsgiServer(_Application(), "127.0.0.1", first.port)

    with pytest.raises(StartupError) as raised:
        await second.start()

    line = str(raised.value)
    assert line.startswith(f"127.0.0.1:{first.port}: cannot listen: ")
    assert "in use" in line
    assert "\n" not in line
    await first.shutdown(_soon())


async def test_a_host_that_does_not_exist_is_a_startup_error() -> None:
    with pytest.raises(StartupError, match=r"name\.invalid:0: cannot listen: "):
        await AsgiServer(_Application(), "name.invalid", 0).start()


async def test_ipv6_addresses_stand_in_brackets() -> None:
    assert "[::1]:4318" == AsgiServer(_Application(), "::1", 4318).endpoint


async def test_shutdown_is_safe_before_start_and_twice() -> None:
    server = AsgiServer(_Application(), "127.0.0.1", 0)

    await server.shutdown(_soon())
    await server.start()
    await server.shutdown(_soon())
    await server.shutdown(_soon())

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", server.port)


async def test_shutdown_lets_a_running_request_finish_and_closes_idle_connections(
    client: aiohttp.ClientSession,
) -> None:
    application = _Application()
    server = AsgiServer(application, "127.0.0.1", 0)
    await server.start()
    idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", server.port)
    running = asyncio.ensure_future(client.get(f"http://{server.endpoint}/wait"))
    await application.entered.wait()

    stopping = asyncio.ensure_future(server.shutdown(_soon()))
    assert b"" == await idle_reader.read()
    application.release.set()
    response = await running

    assert "GET /wait 0" == await response.text()
    await stopping
    idle_writer.close()


async def test_what_is_not_done_at_the_deadline_is_cut_off(client: aiohttp.ClientSession) -> None:
    application = _Application()
    clock = ManualClock()
    server = AsgiServer(application, "127.0.0.1", 0, clock=clock)
    await server.start()
    running = asyncio.ensure_future(client.get(f"http://{server.endpoint}/wait"))
    await application.entered.wait()

    stopping = asyncio.ensure_future(server.shutdown(clock.monotonic() + 30))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not stopping.done()
    clock.advance(30)
    await stopping

    with pytest.raises(aiohttp.ClientError):
        await running


async def test_a_request_that_never_arrives_whole_is_cut() -> None:
    application = _Application()
    server = AsgiServer(application, "127.0.0.1", 0, request_timeout_seconds=0.05)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)

    writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf")
    answer = await reader.read()

    assert b"" == answer
    await asyncio.wait_for(application.disconnected.wait(), 10)
    writer.close()
    await server.shutdown(_soon())


async def test_a_connection_is_closed_when_it_was_idle_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi_server, "_KEEP_ALIVE_SECONDS", 1)
    server = AsgiServer(_Application(), "127.0.0.1", 0)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    began = asyncio.get_running_loop().time()

    writer.write(b"GET /once HTTP/1.1\r\nhost: x\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 10)

    assert answer.startswith(b"HTTP/1.1 200")
    assert asyncio.get_running_loop().time() - began >= 0.9
    writer.close()
    await server.shutdown(_soon())


async def test_garbage_is_refused_and_the_server_lives_on(client: aiohttp.ClientSession) -> None:
    server = AsgiServer(_Application(), "127.0.0.1", 0)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)

    writer.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
    refused = await reader.read()
    async with client.get(f"http://{server.endpoint}/alive") as response:
        alive = await response.text()

    assert refused.startswith(b"HTTP/1.1 400 ")
    assert "GET /alive 0" == alive
    writer.close()
    await server.shutdown(_soon())


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 1_000_000,
        b"GET / HTTP/1.1\r\nhost: " + b"x" * 1_000_000,
        b"GET / HTTP/1.1\r\n" + b"name: value\r\n" * 100_000,
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"name: value\r\n" * 100_000,
    ],
    ids=["path", "header", "headers", "trailers"],
)
async def test_headers_without_end_are_refused(head: bytes, client: aiohttp.ClientSession) -> None:
    server = AsgiServer(_Application(), "127.0.0.1", 0)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)

    writer.write(head)
    try:
        async with asyncio.timeout(20):
            answer = await reader.read()
    except ConnectionResetError:  # cut while the rest was still being written
        answer = b"HTTP/1.1 400"
    writer.close()
    async with client.get(f"http://{server.endpoint}/after") as response:
        after = await response.text()

    assert answer.startswith(b"HTTP/1.1 400")
    assert "GET /after 0" == after
    await server.shutdown(_soon())


async def test_large_headers_and_large_bodies_pass(client: aiohttp.ClientSession) -> None:
    server = AsgiServer(_Application(), "127.0.0.1", 0)
    await server.start()

    for _ in range(3):
        async with client.post(
            f"http://{server.endpoint}/echo", data=b"x" * 900_000, headers={"authorization": "y" * 60_000}
        ) as response:
            assert "POST /echo 900000" == await response.text()

    await server.shutdown(_soon())


async def test_beyond_the_concurrency_limit_the_answer_is_503(client: aiohttp.ClientSession) -> None:
    application = _Application()
    server = AsgiServer(application, "127.0.0.1", 0, limit_concurrency=2)
    await server.start()
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n")
    await application.entered.wait()

    async with client.get(f"http://{server.endpoint}/") as response:
        status = response.status

    assert 503 == status
    writer.close()
    application.release.set()
    await server.shutdown(_soon())


async def test_a_connection_without_a_request_leaves_its_place_to_a_new_one(
    client: aiohttp.ClientSession,
) -> None:
    server = AsgiServer(_Application(), "127.0.0.1", 0, limit_concurrency=8)
    await server.start()
    silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(20)]
    dripping = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(20)]
    for _, writer in dripping:
        writer.write(b"GET / HTTP/1.1\r\nhost: ")
        await asyncio.sleep(0)

    for _ in range(20):
        async with client.get(f"http://{server.endpoint}/") as response:
            assert 200 == response.status
        async with aiohttp.ClientSession() as other, other.get(f"http://{server.endpoint}/") as response:
            assert 200 == response.status

    for _, writer in (*silent, *dripping):
        writer.close()
    await server.shutdown(_soon())


async def test_a_request_may_be_worked_on_for_longer_than_it_may_take_to_arrive() -> None:
    application = _Application()
    server = AsgiServer(application, "127.0.0.1", 0, request_timeout_seconds=0.05)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)

    writer.write(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n")
    await application.entered.wait()
    await asyncio.sleep(0.3)
    application.release.set()
    answer = await reader.readuntil(b"GET /wait 0")
    writer.write(b"GET / HTTP/1.1\r\nhost: ")
    rest = await asyncio.wait_for(reader.read(), 10)

    assert answer.startswith(b"HTTP/1.1 200")
    assert b"" == rest
    writer.close()
    await server.shutdown(_soon())


async def test_a_client_that_does_not_read_its_answer_is_cut() -> None:
    server = AsgiServer(_Application(), "127.0.0.1", 0, request_timeout_seconds=0.2)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)

    writer.write(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
    await asyncio.sleep(1)
    read = 0
    with suppress(ConnectionResetError):
        while piece := await asyncio.wait_for(reader.read(65_536), 10):
            read += len(piece)

    assert 0 < read < _LARGE
    writer.close()
    await server.shutdown(_soon())


async def test_a_client_that_reads_slowly_gets_its_whole_answer() -> None:
    server = AsgiServer(_Application(), "127.0.0.1", 0, request_timeout_seconds=0.5)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=65_536)

    writer.write(b"GET /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    read = 0
    while piece := await asyncio.wait_for(reader.read(65_536), 10):
        read += len(piece)
        await asyncio.sleep(0.01)

    assert read > _LARGE
    writer.close()
    await server.shutdown(_soon())


async def test_signal_handlers_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    server = AsgiServer(_Application(), "127.0.0.1", 0)

    await server.start()

    assert before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    await server.shutdown(_soon())
