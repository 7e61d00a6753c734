"""A small OTLP logs backend: the protocol's own gRPC service, which keeps the records that it gets."""

import asyncio
from types import TracebackType
from typing import Self

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from processors.annotation import EVENT_NAME
from processors.model import JsonValue
from tests.support.stored_span import Verdicts

_PATIENCE_SECONDS = 60.0


class LogsBackend(LogsServiceServicer):
    """Listens on a free port of 127.0.0.1 between `async with` and its end."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.endpoint = ""
        self._changed = asyncio.Condition()
        self._server: grpc.aio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = grpc.aio.server()
        add_LogsServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call] # generated
        self.endpoint = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        await self._server.stop(None)

    async def Export(self, request: ExportLogsServiceRequest, context: object) -> ExportLogsServiceResponse:
        """Keep the records of a request."""
        async with self._changed:
            for resource_logs in request.resource_logs:
                for scope_logs in resource_logs.scope_logs:
                    self.records.extend(scope_logs.log_records)
            self._changed.notify_all()
        return ExportLogsServiceResponse()

    async def until_records(self, count: int) -> None:
        """Return when `count` records have come."""
        async with asyncio.timeout(_PATIENCE_SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.records) >= count)

    def verdicts(self) -> Verdicts:
        """The evaluation results among the records, on the spans that they name."""
        found = {}
        for record in self.records:
            assert record.event_name == EVENT_NAME
            told = {pair.key: _value(pair.value) for pair in record.attributes}
            key = (record.trace_id.hex(), record.span_id.hex(), str(told["gen_ai.evaluation.name"]))
            assert key not in found, f"two records for {key}"
            found[key] = (
                told["gen_ai.evaluation.score.label"],
                told.get("gen_ai.evaluation.score.value"),
                told.get("gen_ai.evaluation.explanation", ""),
            )
        return found


def _value(value: AnyValue) -> JsonValue:
    kind = value.WhichOneof("value")
    content: JsonValue = getattr(value, kind) if kind else None
    return content
