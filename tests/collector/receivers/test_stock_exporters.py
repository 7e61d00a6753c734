"""The OTLP/gRPC exporters that agents are built with, in four languages, against both listeners.

`make exporters-install` builds those of other languages than Python.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from collector.errors import Overloaded
from collector.receivers import ExportOutcome, ServerAuthConfig, ServerTlsConfig
from collector.receivers.otlp_grpc import GrpcServerConfig, OtlpGrpcReceiver
from collector.receivers.otlp_grpc_uvicorn import UvicornGrpcReceiver
from collector.telemetry import Metrics
from tests.support.otlp_senders import TLS, SpanSink

_ROOT = Path(__file__).parents[3]
_SOURCES = _ROOT / "tests" / "stock_exporters"
_BUILT = _ROOT / ".exporters"
_COMMANDS = {
    "python": [sys.executable, str(_SOURCES / "python" / "send.py")],
    "go": [str(_BUILT / "send-go")],
    "node": ["node", str(_SOURCES / "node" / "send.js")],
    "java": ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{_BUILT / 'java'}:{_BUILT / 'jars'}/*", "Send"],
}
_SPANS = 400
"""Each of a kilobyte: several windows of HTTP/2."""


class _FullAtFirst(SpanSink):
    """Refuses the first request for want of memory."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0

    def consume_traces(self, body: bytes) -> ExportOutcome:
        if not self.refused:
            self.refused += 1
            raise Overloaded("No room now.")
        return super().consume_traces(body)


class Served:
    """Starts the listener of one library."""

    def __init__(self, server: str, stack: AsyncExitStack) -> None:
        self._type = UvicornGrpcReceiver if server == "uvicorn" else OtlpGrpcReceiver
        self._stack = stack

    async def start(
        self, sink: SpanSink, tls: ServerTlsConfig | None = None, auth: ServerAuthConfig | None = None
    ) -> str:
        """The port that it listens on."""
        config = GrpcServerConfig(endpoint="127.0.0.1:0", tls=tls, auth=auth)
        receiver = self._type(config, sink, Metrics(), random=lambda: 0.0)
        await receiver.start()
        self._stack.push_async_callback(receiver.shutdown, 0.0)
        return receiver.endpoint.rpartition(":")[2]


@pytest.fixture(params=["grpcio", "uvicorn"])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    async with AsyncExitStack() as stack:
        yield Served(request.param, stack)


async def _send(language: str, endpoint: str, **settings: str) -> None:
    """Let the exporter of `language` send spans to `endpoint`, and fail if it does."""
    if language != "python" and not (_BUILT / f".{language}").exists():
        pytest.skip("make exporters-install was not run")
    environment = {
        **os.environ,
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint,
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": str(_SPANS),
        **{f"OTEL_EXPORTER_OTLP_TRACES_{name.upper()}": value for name, value in settings.items()},
    }
    sender = await asyncio.create_subprocess_exec(*_COMMANDS[language], str(_SPANS), env=environment)
    async with asyncio.timeout(60):
        assert await sender.wait() == 0


@pytest.mark.parametrize("language", _COMMANDS)
async def test_a_refusal_for_want_of_memory_makes_exporters_come_back(served: Served, language: str) -> None:
    sink = _FullAtFirst()
    port = await served.start(sink)

    await _send(language, f"http://127.0.0.1:{port}")

    delivered = 0 if language == "node" else _SPANS  # the exporter for Node sends nothing again over gRPC
    assert delivered == sink.spans
    assert sink.refused == 1


@pytest.mark.parametrize("language", _COMMANDS)
async def test_spans_arrive_over_tls_compressed_and_with_a_token(
    served: Served, language: str, tmp_path: Path
) -> None:
    sink = SpanSink()
    tokens = tmp_path / "tokens"
    tokens.write_text("secret\n")
    tls = ServerTlsConfig(cert_file=TLS / "server.pem", key_file=TLS / "server.key")
    port = await served.start(sink, tls, ServerAuthConfig(bearer_token_file=tokens))

    await _send(
        language,
        f"https://localhost:{port}",
        certificate=str(TLS / "ca.pem"),
        compression="gzip",
        headers="authorization=Bearer%20secret",
    )

    assert _SPANS == sink.spans
