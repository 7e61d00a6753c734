"""kill -9 at random moments under load: acknowledged is delivered and graded, and no verdict is another.

`CHAOS_KILLS` kills (10 by default; `make chaos` does 50) while some 5,000 spans a second come.
"""

import asyncio
import os
import random
import signal
import time
from pathlib import Path

import pytest

from collector.receivers.otlp_grpc import GrpcServerConfig, OtlpGrpcReceiver
from collector.telemetry.metrics import Metrics
from processors.model.json_values import JsonObject
from tests.support.backend_server import free_port
from tests.support.chaos_load import CRITERIA, Load, Sink
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.end_to_end

KILLS = int(os.environ.get("CHAOS_KILLS", "10"))
SPANS_PER_SECOND = 5_000


async def test_kills_under_load_lose_nothing_and_change_no_verdict(tmp_path: Path) -> None:
    sink = Sink()
    receiver = OtlpGrpcReceiver(GrpcServerConfig(endpoint="127.0.0.1:0"), sink, Metrics())
    await receiver.start()
    try:
        await _kill_under_load(tmp_path, sink, receiver.endpoint)
    finally:
        await receiver.shutdown(time.monotonic())


async def _kill_under_load(folder: Path, sink: Sink, backend: str) -> None:
    target = f"127.0.0.1:{free_port()}"
    settings: JsonObject = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": target}}}},
        "exporters": {"otlp": {"endpoint": backend, "tls": {"insecure": True}}},
        "journal": {"directory": "journal"},
        # A sender that waits for a busy service between its two requests must not find the trace finished.
        "processors": {"group_by_trace": {"idle_timeout": "5m"}},
    }
    load = Load(target, SPANS_PER_SECOND)
    moments = random.Random(KILLS)
    sending: asyncio.Task[None] | None = None
    recovered = again = 0.0
    for kill in range(KILLS):
        async with ServiceProcess(folder, settings, CRITERIA) as service:
            sending = sending or asyncio.create_task(load.run())
            metrics = await service.metrics()
            recovered += metrics['tracegrade_spans_recovered_total{exporter=""}']
            again += metrics.get('tracegrade_spans_sent_again_total{exporter="otlp"}', 0.0)
            # After a restart no trace finishes before senders had time to come back; some kills wait.
            await asyncio.sleep(moments.uniform(0.0, 2.0) + (10.5 if kill % 5 == 1 else 0.0))
            service.signal(signal.SIGKILL)
            await service.wait()
    async with ServiceProcess(folder, settings, CRITERIA) as service:
        load.is_over.set()
        assert sending is not None
        await sending
        sent = load.sent
        await service.until(lambda: len(sink.spans) >= len(sent.acknowledged))
        metrics = await service.metrics()
        again += metrics.get('tracegrade_spans_sent_again_total{exporter="otlp"}', 0.0)
        assert 0 == await service.stop()
    sent.require_delivered(sink)
    outcomes = sent.outcomes(sink)
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="otlp"}']
    assert recovered
    assert sink.deliveries - len(sink.spans) <= again  # no repeat that is not counted
    print(
        f"{KILLS} kills, {len(sent.acknowledged)} spans acknowledged, {sink.deliveries} delivered, "
        f"{recovered:g} recovered, {again:g} sent again, outcomes {outcomes}, "
        f"{len(sent.unanswered)} traces unanswered at a kill"
    )
