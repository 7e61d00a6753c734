"""A real name server, over UDP and TCP, whose answer a test changes while it runs."""

import asyncio
import socket
import struct
from types import TracebackType
from typing import Literal, Self, cast

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

Behaviour = Literal["answer", "fail", "silent", "truncate", "deny"]


class NameServer:
    """Answers every question for `name` with `addresses`; other names do not exist.

    Attributes:
        addresses: IPv4 and IPv6 addresses.
        ttl: seconds for which an answer may be kept.
        behaviour: `fail` (SERVFAIL), `silent` (no answer), `truncate` (what does not fit into a datagram,
            and TCP is refused), `deny` (no name exists).
        questions: how many were asked.
    """

    def __init__(self, name: str, addresses: list[str], host: str = "127.0.0.1", port: int = 0) -> None:
        self.name = name
        self.addresses = addresses
        self.ttl = 0
        self.behaviour: Behaviour = "answer"
        self.questions = 0
        self.host = host
        self.port = port
        self._datagrams: asyncio.DatagramTransport | None = None
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve_stream, self.host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self._datagrams, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Datagrams(self), (self.host, self.port)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        assert self._datagrams is not None
        self._datagrams.close()
        self._server.close()
        await self._server.wait_closed()

    def response(self, wire: bytes, *, is_datagram: bool) -> bytes | None:
        """The answer to the question `wire`; None: silence."""
        self.questions += 1
        question = dns.message.from_wire(wire)
        response = dns.message.make_response(question)
        response.flags |= dns.flags.RA
        asked = question.question[0]
        if self.behaviour == "silent":
            return None
        if self.behaviour == "fail":
            response.set_rcode(dns.rcode.SERVFAIL)
        elif self.behaviour == "truncate":
            response.flags |= dns.flags.TC
        elif self.behaviour == "deny" or asked.name.to_text(omit_final_dot=True) != self.name:
            response.set_rcode(dns.rcode.NXDOMAIN)
        else:
            family = {dns.rdatatype.A: socket.AF_INET, dns.rdatatype.AAAA: socket.AF_INET6}.get(asked.rdtype)
            of_kind = [text for text in self.addresses if (":" in text) == (family == socket.AF_INET6)]
            if family is not None and of_kind:
                records = dns.rrset.from_text_list(asked.name, self.ttl, "IN", asked.rdtype, of_kind)
                response.answer.append(records)
        answer = response.to_wire()
        if is_datagram and len(answer) > 512:
            response.answer.clear()
            response.flags |= dns.flags.TC
            answer = response.to_wire()
        return answer

    async def _serve_stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.behaviour != "truncate":
                (length,) = struct.unpack("!H", await reader.readexactly(2))
                answer = self.response(await reader.readexactly(length), is_datagram=False)
                if answer is not None:
                    writer.write(struct.pack("!H", len(answer)) + answer)
                    await writer.drain()
        finally:
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, server: NameServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        answer = self._server.response(data, is_datagram=True)
        if answer is not None:
            self._transport.sendto(answer, addr)
