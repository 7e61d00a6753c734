"""A long request keeps the event loop from nothing else."""

import asyncio
import gc
import gzip
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from collector.otlp import join_spans
from processors.spans import RawSpan
from tests.support.deliveries import make_spans
from tests.support.otlp_senders import GrpcSender, HttpSender
from tests.support.service_in_loop import ServiceInLoop

TRACES, SPANS_PER_TRACE, PADDING = 1800, 15, 2100
LONGEST_SECONDS = 0.25
"""What the loop may do at once: whoever else asks waits as long."""

CONFIGURATION = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}, http: {endpoint: "127.0.0.1:0"}}}}
exporters: {debug: {}}
service: {telemetry: {endpoint: "127.0.0.1:0"}}
"""


class Steps:
    """What the loop's thread did between two turns of the loop, at most: CPU time, whoever else is busy."""

    longest = 0.0

    async def watch(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            self.longest = max(self.longest, now - before)
            before = now


@asynccontextmanager
async def _steps() -> AsyncIterator[Steps]:
    gc.collect()
    gc.freeze()  # what tests before left in this process is no work of the service
    steps = Steps()
    watching = asyncio.create_task(steps.watch())
    try:
        yield steps
    finally:
        watching.cancel()
        gc.unfreeze()


def _spans() -> Iterator[RawSpan]:
    for trace in range(1, TRACES + 1):
        yield from make_spans(trace, SPANS_PER_TRACE, padding=PADDING)


@pytest.mark.parametrize("transport", ["grpc", "http", "http, gzip"])
async def test_the_loop_goes_on_while_a_request_of_nearly_64_mib_is_taken(transport: str) -> None:
    body = join_spans(_spans())
    assert 55 * 2**20 < len(body) < 64 * 2**20
    sent = gzip.compress(body, 1) if transport == "http, gzip" else body
    async with ServiceInLoop(CONFIGURATION, time.time_ns()) as service:
        if transport == "grpc":
            async with GrpcSender(service.endpoints["grpc"]) as grpc_sender, _steps() as steps:
                answer = await grpc_sender.send(sent)
        else:
            async with HttpSender(service.endpoints["http"]) as http_sender, _steps() as steps:
                answer = await http_sender.send_raw(sent, is_gzip=transport == "http, gzip")
        metrics = await service.metrics()

    assert "OK" == answer.code
    assert TRACES * SPANS_PER_TRACE <= metrics["tracegrade_spans_received_total"]  # beside the self check
    assert steps.longest < LONGEST_SECONDS
