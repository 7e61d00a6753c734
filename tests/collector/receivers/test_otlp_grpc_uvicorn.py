"""gRPC's framing as uvicorn's HTTP/2 brings it: what grpcio's client would never send."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import zttp

from collector.receivers import GrpcServerConfig
from collector.receivers.otlp_grpc_uvicorn import UvicornGrpcReceiver
from collector.telemetry import Metrics
from tests.support.backends import eventually
from tests.support.otlp_senders import EXPORT_METHOD, GrpcSender, SpanSink, export_request

_LIMIT = 1 << 20


class Served:
    """A started receiver and a connection to it."""

    def __init__(self) -> None:
        self.sink = SpanSink()
        self.metrics = Metrics()
        config = GrpcServerConfig(endpoint="127.0.0.1:0", server="uvicorn", max_request_bytes=_LIMIT)
        self.receiver = UvicornGrpcReceiver(config, self.sink, self.metrics, random=lambda: 0.5)
        self.connection: zttp.H2Connection = zttp.Connection(zttp.CLIENT, protocol=zttp.HTTP2)
        self.connection.initiate_connection()
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def connect(self) -> None:
        host, _, port = self.receiver.endpoint.rpartition(":")
        self.reader, self.writer = await asyncio.open_connection(host, int(port))

    async def call(
        self,
        pieces: list[bytes],
        *,
        method: bytes = b"POST",
        path: str = EXPORT_METHOD,
        encoding: bytes = b"identity",
        content_type: bytes = b"application/grpc",
    ) -> tuple[int, dict[bytes, bytes]]:
        """HTTP status and trailers of one call, whose body is sent piece by piece."""
        headers = [
            (b"host", b"test"),
            (b"te", b"trailers"),
            (b"content-type", content_type),
            (b"grpc-encoding", encoding),
        ]
        stream = self.connection.send_request(method, path.encode(), b"2", headers)
        for piece in pieces:
            stream.send_data(piece)
            self.writer.write(self.connection.data_to_send())
            await asyncio.sleep(0.01)  # so that pieces arrive apart
        stream.end_message()
        self.writer.write(self.connection.data_to_send())
        status = 0
        async with asyncio.timeout(10):
            while True:
                received = await self.reader.read(65536)
                if not received:
                    raise ConnectionResetError
                self.connection.receive_data(received)
                while (event := self.connection.next_event()) is not zttp.NEED_DATA:
                    if isinstance(event, zttp.Response):
                        status = event.status_code
                    elif isinstance(event, zttp.RstStream):
                        return status, {}
                    elif isinstance(event, zttp.EndOfMessage):
                        return status, dict(event.trailers)
                self.writer.write(self.connection.data_to_send())


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    await served.receiver.start()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(served.receiver.shutdown, 0.0)
        await served.connect()
        yield served
        served.writer.close()


def _frame(message: bytes, *, compressed: bool = False) -> bytes:
    return bytes([compressed]) + len(message).to_bytes(4) + message


async def test_a_message_that_comes_byte_by_byte_is_taken(served: Served) -> None:
    body = export_request(1)
    frame = _frame(body)

    status, trailers = await served.call([frame[:2], frame[2:4], frame[4:9], frame[9:]])

    assert (200, b"0") == (status, trailers[b"grpc-status"])
    assert [body] == served.sink.bodies


async def test_what_is_compressed_twice_is_inflated_once(served: Served) -> None:
    inner = gzip.compress(export_request(1))

    status, trailers = await served.call([_frame(gzip.compress(inner), compressed=True)], encoding=b"gzip")

    assert (200, b"3") == (status, trailers[b"grpc-status"])
    assert [] == served.sink.bodies


@pytest.mark.parametrize(
    ("pieces", "code", "message"),
    [
        ([], b"3", b"The call carries no message."),
        ([b"\0\0\0"], b"3", b"The call carries no message."),
        ([_frame(b"abc")[:-1]], b"3", b"The call carries something other than one message."),
        ([_frame(b"") * 2], b"3", b"The call carries something other than one message."),
        (
            [b"\0" + (_LIMIT + 1).to_bytes(4)],
            b"8",
            b"The request has 1048577 bytes, more than the allowed 1048576.",
        ),
        ([_frame(b"abc", compressed=True)], b"12", b"grpc-encoding must be gzip or deflate, not identity."),
    ],
    ids=["nothing", "half a prefix", "half a message", "two messages", "too large", "compressed how"],
)
async def test_frames_that_are_none_are_refused(
    served: Served, pieces: list[bytes], code: bytes, message: bytes
) -> None:
    status, trailers = await served.call(pieces)

    assert (200, code) == (status, trailers[b"grpc-status"])
    assert message == trailers[b"grpc-message"]
    assert b"=" not in trailers[b"grpc-status-details-bin"]
    assert [] == served.sink.bodies


async def test_messages_of_errors_are_percent_encoded(served: Served) -> None:
    _, trailers = await served.call([], path="/a%25b/%C3%BC")

    assert b"/a%25b/%C3%BC is not supported; traces and logs are." == trailers[b"grpc-message"]


async def test_what_is_no_grpc_is_told_so_by_http(served: Served) -> None:
    other_type = await served.call([b"x"], content_type=b"application/json")
    other_method = await served.call([], method=b"GET")

    assert (415, {}) == other_type
    assert (405, {}) == other_method


async def test_a_path_outside_ascii_is_reset_and_the_connection_lives_on(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    reset = await served.call([_frame(b"")], path="/ü")
    status, trailers = await served.call([_frame(b"")])

    assert (0, {}) == reset
    assert (200, b"0") == (status, trailers[b"grpc-status"])
    assert [] == caplog.records


async def test_large_messages_beyond_what_may_be_received_at_once_come_back_later(served: Served) -> None:
    class Held:
        def __init__(self, sender: GrpcSender) -> None:
            self.release = asyncio.Event()
            self.answer = asyncio.ensure_future(sender.stream(self.messages()))

        async def messages(self) -> AsyncIterator[bytes]:
            yield export_request(1, padding=_LIMIT // 2 - 1000)
            await self.release.wait()

    async with GrpcSender(served.receiver.endpoint) as sender:
        calls = [Held(sender) for _ in range(12)]
        budget = served.receiver._budget
        await eventually(lambda: any(call.answer.done() for call in calls), "some are refused")
        used = budget.used_bytes
        for call in calls:
            call.release.set()
        async with asyncio.timeout(20):
            answers = await asyncio.gather(*(call.answer for call in calls))

    refused = [answer for answer in answers if answer.code != "OK"]
    assert used <= budget.max_bytes == 4 * _LIMIT
    assert {("UNAVAILABLE", (2.0, 2.0))} == {(answer.code, answer.delays) for answer in refused}
    assert 6 <= len(answers) - len(refused) <= 8
    assert 0 == budget.used_bytes
