"""Real OTLP backends on 127.0.0.1 that record what they get and answer as a test tells them."""

import asyncio
import gzip
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, Protocol

import grpc
from aiohttp import web
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector.otlp import split_request
from processors.annotation.evaluation_span import SCOPE_NAME

TLS_DIRECTORY = Path(__file__).parent.parent / "data" / "tls"


@dataclass(frozen=True)
class Answer:
    """How a backend answers a request; `gate` makes it wait first."""

    kind: Literal["accept", "unavailable", "refuse_content", "refuse", "partial"] = "accept"
    rejected: int = 0
    message: str = ""
    retry_after: int | None = None
    gate: asyncio.Event | None = None


ACCEPT = Answer()


class Backend(Protocol):
    """What tests of any transport can do with a backend."""

    requests: list[bytes]
    log_requests: list[bytes]
    headers: list[dict[str, str]]
    answer: Callable[[bytes], Answer]

    @property
    def endpoint(self) -> str: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


def span_ids(requests: list[bytes]) -> list[bytes]:
    """The ids of all spans in `requests`, in order."""
    return [
        span[0] for request in requests for spans in split_request(request).traces.values() for span in spans
    ]


def spans_and_verdicts(requests: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The ids of the spans that senders made, and of those that are verdicts, in `requests`, in order."""
    spans: list[bytes] = []
    verdicts: list[bytes] = []
    for request in requests:
        for trace in split_request(request).traces.values():
            for span_id, _, envelope in trace:
                (verdicts if envelope.scope_name == SCOPE_NAME else spans).append(span_id)
    return spans, verdicts


def log_records(requests: list[bytes]) -> list[tuple[str, str, LogRecord]]:
    """(service name, scope name, record) of all log records in `requests`, in order."""
    found = []
    for request in requests:
        for resource_logs in ExportLogsServiceRequest.FromString(request).resource_logs:
            names = [
                item.value.string_value
                for item in resource_logs.resource.attributes
                if item.key == "service.name"
            ]
            for scope_logs in resource_logs.scope_logs:
                found += [
                    ("".join(names), scope_logs.scope.name, record) for record in scope_logs.log_records
                ]
    return found


def _response(answer: Answer) -> bytes:
    response = ExportTraceServiceResponse()
    if answer.rejected or answer.message:
        response.partial_success.rejected_spans = answer.rejected
        response.partial_success.error_message = answer.message
    return response.SerializeToString()


class GrpcBackend:
    """A grpcio server; requests count as recorded only when they were accepted."""

    _CODES: ClassVar = {
        "unavailable": grpc.StatusCode.UNAVAILABLE,
        "refuse_content": grpc.StatusCode.INVALID_ARGUMENT,
        "refuse": grpc.StatusCode.PERMISSION_DENIED,
    }

    def __init__(
        self,
        answer: Callable[[bytes], Answer] = lambda _: ACCEPT,
        *,
        tls: bool = False,
        client_tls: bool = False,
    ) -> None:
        self.requests: list[bytes] = []
        self.log_requests: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.attempts = 0
        self.answer = answer
        self._tls, self._client_tls = tls, client_tls
        self._port = 0
        self._server: grpc.aio.Server | None = None

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def start(self) -> None:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        self._server.add_generic_rpc_handlers(
            [
                grpc.method_handlers_generic_handler(
                    f"opentelemetry.proto.collector.{service}",
                    {"Export": grpc.unary_unary_rpc_method_handler(partial(self._export, requests))},
                )
                for service, requests in (
                    ("trace.v1.TraceService", self.requests),
                    ("logs.v1.LogsService", self.log_requests),
                )
            ]
        )
        if self._tls:
            pair = ((TLS_DIRECTORY / "server.key").read_bytes(), (TLS_DIRECTORY / "server.pem").read_bytes())
            authorities = (TLS_DIRECTORY / "ca.pem").read_bytes() if self._client_tls else None
            credentials = grpc.ssl_server_credentials([pair], authorities, self._client_tls)
            self._port = self._server.add_secure_port(self.endpoint, credentials)
        else:
            self._port = self._server.add_insecure_port(self.endpoint)
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def _export(
        self, requests: list[bytes], body: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]"
    ) -> bytes:
        self.attempts += 1
        answer = self.answer(body)
        if answer.gate is not None:
            await answer.gate.wait()
        if answer.kind in self._CODES:
            code = self._CODES[answer.kind]
            status = status_pb2.Status(code=code.value[0], message=answer.message)
            if answer.retry_after is not None:
                delay = Duration(seconds=answer.retry_after)
                status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
            trailers = (("grpc-status-details-bin", status.SerializeToString()),)
            await context.abort(code, answer.message, trailers)
        requests.append(body)
        self.headers.append({str(key): str(value) for key, value in context.invocation_metadata() or ()})
        return _response(answer)


class HttpBackend:
    """An aiohttp server; requests count as recorded only when they were accepted."""

    _CODES: ClassVar = {"unavailable": 503, "refuse_content": 400, "refuse": 403}

    def __init__(self, answer: Callable[[bytes], Answer] = lambda _: ACCEPT, *, tls: bool = False) -> None:
        self.requests: list[bytes] = []
        self.log_requests: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.attempts = 0
        self.answer = answer
        self.override: Callable[[web.Request], web.StreamResponse] | None = None
        """Takes the whole answer over where a test needs something odd."""
        self._tls = tls
        self._port = 0
        self._runner: web.AppRunner | None = None

    @property
    def endpoint(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    async def start(self) -> None:
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{path:.*}", self._export)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        context = None
        if self._tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(TLS_DIRECTORY / "server.pem", TLS_DIRECTORY / "server.key")
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=context)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _export(self, request: web.Request) -> web.StreamResponse:
        self.attempts += 1
        body = await request.read()
        if request.headers.get("Content-Encoding") == "gzip" and body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        if self.override is not None:
            return self.override(request)
        answer = self.answer(body)
        if answer.gate is not None:
            await answer.gate.wait()
        if answer.kind in self._CODES:
            headers = {} if answer.retry_after is None else {"Retry-After": str(answer.retry_after)}
            return web.Response(
                status=self._CODES[answer.kind],
                body=status_pb2.Status(message=answer.message).SerializeToString(),
                content_type="application/x-protobuf",
                headers=headers,
            )
        requests = self.log_requests if request.path.endswith("/v1/logs") else self.requests
        requests.append(body)
        self.headers.append(dict(request.headers))
        self.paths.append(request.path)
        return web.Response(body=_response(answer), content_type="application/x-protobuf")


async def eventually(condition: Callable[[], bool], what: str, *, seconds: float = 20.0) -> None:
    """Let the loop, threads and sockets work until `condition` holds; fails when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not in {seconds:g} s: {what}")
        await asyncio.sleep(0.001)
