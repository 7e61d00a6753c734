"""kill -9 at random moments under load: acknowledged is delivered and graded, and no verdict is another.

`CHAOS_KILLS` kills (10 by default; `make chaos` does 50) while some 5,000 spans a second come, a quarter of
them from the exporters of the OpenTelemetry SDK: at any moment, while the service recovers from the kill
before, while it reads its criteria anew, while the backend is down.
"""

import asyncio
import os
import random
import signal
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import pytest

from processors.model import JsonObject
from tests.support.backend_server import free_port
from tests.support.chaos_load import CRITERIA, Load
from tests.support.faulty_backend import Fault, FaultyBackend
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

KILLS = int(os.environ.get("CHAOS_KILLS", "10"))
SPANS_PER_SECOND = 5_000
CRITERIA_FOLLOW_SECONDS = 2.2
"""A changed file is read within that time."""
GRADED_SECONDS = 10.5
"""After a restart no trace finishes before senders had time to come back."""


class Moment(Enum):
    """When the process is killed."""

    ANY = "any"
    GRADING = "grading"
    """Traces of the process before are graded again."""
    RECOVERY = "recovery"
    RELOAD = "reload"
    BACKEND_DOWN = "backend down"


MOMENTS = (Moment.ANY, Moment.GRADING, Moment.RECOVERY, Moment.BACKEND_DOWN, Moment.RELOAD)


@pytest.mark.timeout(90 + 30 * KILLS)
async def test_kills_under_load_lose_nothing_and_change_no_verdict(tmp_path: Path) -> None:
    target, http = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    load = Load(target, SPANS_PER_SECOND, http=http)
    async with FaultyBackend() as backend:
        settings: JsonObject = {
            "receivers": {
                "otlp": {"protocols": {"grpc": {"endpoint": target}, "http": {"endpoint": http}}},
            },
            "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
            "journal": {"directory": "journal"},
            # A sender that waits for a busy service between two requests must not find the trace finished.
            "processors": {"group_by_trace": {"idle_timeout": "5m"}},
        }
        await _kill_under_load(lambda: ServiceProcess(tmp_path, settings, CRITERIA), backend, load)


async def _kill_under_load(
    new_service: Callable[[], ServiceProcess], backend: FaultyBackend, load: Load
) -> None:
    sink = backend.sink
    chance = random.Random(KILLS)
    sending: asyncio.Task[None] | None = None
    recovered = again = 0.0
    for kill in range(KILLS):
        moment = MOMENTS[kill % len(MOMENTS)]
        service = new_service()
        if moment is Moment.RECOVERY:
            await service.launch()
            await asyncio.sleep(chance.uniform(0.3, 1.5))
        else:
            await service.start()
            sending = sending or asyncio.create_task(load.run())
            metrics = await service.metrics()
            recovered += metrics['tracegrade_spans_recovered_total{exporter=""}']
            again += metrics.get('tracegrade_spans_sent_again_total{exporter="otlp"}', 0.0)
            await _wait_for(moment, service, backend, chance)
        service.signal(signal.SIGKILL)
        await service.wait()
        await backend.become(Fault.NONE)
    service = new_service()
    await service.start()
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


async def _wait_for(
    moment: Moment, service: ServiceProcess, backend: FaultyBackend, chance: random.Random
) -> None:
    """Return at some moment of that kind."""
    seconds = chance.uniform(0.0, 2.0)
    match moment:
        case Moment.GRADING:
            seconds += GRADED_SECONDS
        case Moment.RELOAD:
            service.criteria_path.write_text(f"{CRITERIA}# {seconds}\n")
            seconds = chance.uniform(0.0, CRITERIA_FOLLOW_SECONDS)
        case Moment.BACKEND_DOWN:
            await backend.become(Fault.DOWN)
    await asyncio.sleep(seconds)
