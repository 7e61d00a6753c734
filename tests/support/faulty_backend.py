"""A trace backend over gRPC that fails as it is told: down, answering errors, hanging, resetting, slow."""

import asyncio
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Self

import grpc

from tests.support.backend_server import free_port
from tests.support.chaos_load import Sink
from tests.support.otlp_senders import EXPORT_METHOD

ANSWER_SECONDS = 0.02
"""How long it takes for a request when nothing is wrong."""


class Fault(Enum):
    """What is wrong with the backend."""

    NONE = "none"
    DOWN = "down"
    """Nobody listens, and connections are gone."""
    ERRORS = "errors"
    """Every request is answered with UNAVAILABLE."""
    HANGING = "hanging"
    """No request is answered."""
    RESETTING = "resetting"
    """Requests are taken; the connection ends in the middle of the answer."""
    SLOW = "slow"
    """Every answer takes ten times as long."""


class FaultyBackend:
    """A server of grpcio behind a relay on a port that stays the same; `fault` may change at any time."""

    def __init__(self) -> None:
        self.sink = Sink()
        self.endpoint = f"127.0.0.1:{free_port()}"
        self.fault = Fault.NONE
        self._server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
        self._inner_port = 0
        self._relay: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._is_answering = False

    async def __aenter__(self) -> Self:
        service, method = EXPORT_METHOD[1:].split("/")
        handlers = {method: grpc.unary_unary_rpc_method_handler(self._export)}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        self._inner_port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        await self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end_connections()
        await self._server.stop(0)

    async def become(self, fault: Fault) -> None:
        """Fail in that way from now on, or in none."""
        was, self.fault = self.fault, fault
        if fault is Fault.DOWN:
            await self._end_connections()
        elif was is Fault.DOWN:
            await self._listen()

    async def _export(self, request: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
        match self.fault:
            case Fault.ERRORS:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the backend is told to fail")
            case Fault.HANGING:
                await asyncio.sleep(3600)
        await asyncio.sleep(ANSWER_SECONDS * (10 if self.fault is Fault.SLOW else 1))
        self.sink.consume_traces(request)
        self._is_answering = True
        return b""

    async def _listen(self) -> None:
        host, port = self.endpoint.split(":")
        self._relay = await asyncio.start_server(self._relay_connection, host, int(port))

    async def _end_connections(self) -> None:
        if self._relay is not None:
            self._relay.close()
            self._relay = None
        for writer in list(self._connections):
            writer.transport.abort()

    async def _relay_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._inner_port)
        try:
            await asyncio.wait(
                (
                    asyncio.create_task(self._pump(reader, inner_writer, are_answers=False)),
                    asyncio.create_task(self._pump(inner_reader, writer, are_answers=True)),
                ),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._connections.discard(writer)
            for each in (writer, inner_writer):
                each.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, are_answers: bool
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if are_answers and self.fault is Fault.RESETTING and self._is_answering:
                    self._is_answering = False
                    writer.write(data[: len(data) // 2])
                    await asyncio.sleep(0)
                    return
                writer.write(data)
                await writer.drain()
