"""What spans share, such as their resource, counts against the memory limit once, and while it is held."""

import time
from pathlib import Path

import pytest

from collector.otlp import join_spans
from processors.spans import Envelope, RawSpan
from tests.support.agent_spans import envelope
from tests.support.deliveries import make_spans
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop

pytestmark = pytest.mark.end_to_end

_CONFIGURATION = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:0"}}}}}}}}
processors:
  memory_limiter: {{limit_mib: 2}}
  group_by_trace: {{max_lateness: 1000000h, root_grace: 1h}}
exporters:
  file: {{path: "{path}"}}
service: {{telemetry: {{endpoint: "127.0.0.1:0", self_check: {{enabled: false}}}}, shutdown_timeout: 5s}}
"""
_LARGE = 800_000


def with_resource_of(size: int, spans: list[RawSpan]) -> bytes:
    """A request with `spans`, whose resource is as large and like no other."""
    name = str(int.from_bytes(spans[0][0], "big"))
    around: Envelope = envelope(service=name.ljust(size, "x"))
    return join_spans((span_id, payload, around) for span_id, payload, _ in spans)


async def test_large_resources_fill_the_memory_limit_and_are_given_back(tmp_path: Path) -> None:
    configuration = _CONFIGURATION.format(path=tmp_path / "spans.jsonl")
    async with (
        ServiceInLoop(configuration, time.time_ns()) as service,
        GrpcSender(service.endpoints["grpc"]) as sender,
    ):
        codes = [
            (await sender.send(with_resource_of(_LARGE, make_spans(trace, 1)))).code for trace in range(1, 4)
        ]
        held = (await service.metrics())["tracegrade_held_bytes"]
        await service.until(lambda samples: samples["tracegrade_held_bytes"] < held)
        again = (await sender.send(with_resource_of(_LARGE, make_spans(3, 1)))).code
        too_large = (await sender.send(with_resource_of(3 * _LARGE, make_spans(5, 1)))).code
        metrics = await service.metrics()
        await service.pass_time(4000)
        await service.until(lambda samples: not samples["tracegrade_held_bytes"])
        shared_by_many = (await sender.send(with_resource_of(_LARGE, make_spans(4, 1000)))).code

    assert ["OK", "OK", "UNAVAILABLE"] == codes
    assert 2 * _LARGE < held < 2 * _LARGE + 10_000
    assert "OK" == again
    assert 1 <= metrics['tracegrade_traces_finished_total{reason="pressure"}']
    assert "RESOURCE_EXHAUSTED" == too_large
    assert "OK" == shared_by_many
