"""Everybody who can do harm at once: the service keeps to its memory, and those who behave are served.

A short form of some seconds; `make overload` takes two minutes with each of the gRPC servers
(`OVERLOAD_SECONDS`, `OVERLOAD_SERVERS`).
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from collector.configuration import load_configuration
from collector.memory_plan import plan_memory
from processors.model import JsonObject
from tests.support.chaos_load import CRITERIA, Load
from tests.support.faulty_backend import FaultyBackend
from tests.support.process_resources import open_files, peak_mib, resident_mib
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

OVERLOAD_SECONDS = float(os.environ.get("OVERLOAD_SECONDS", "6"))
LIMIT_MIB, IN_FLIGHT_MIB, CONTAINER_MIB = 1024, 256, 2048
"""As in the manifests in `deploy/kubernetes`."""
SPANS_PER_SECOND = 300
PATIENCE_SECONDS = 10.0
"""How long the exporters of the OTel SDKs wait for an answer, unless they are told otherwise."""


@pytest.mark.timeout(OVERLOAD_SECONDS + 120)
@pytest.mark.parametrize("server", os.environ.get("OVERLOAD_SERVERS", "grpcio").split())
async def test_overload_costs_those_who_behave_little_and_the_process_no_memory(
    tmp_path: Path, server: str
) -> None:
    async with FaultyBackend() as backend:
        settings: JsonObject = {
            "receivers": {
                "otlp": {
                    "max_bytes_in_flight": IN_FLIGHT_MIB << 20,
                    "protocols": {"grpc": {"server": server}},
                }
            },
            "processors": {
                "memory_limiter": {"limit_mib": LIMIT_MIB},
                "group_by_trace": {"idle_timeout": "5m"},
            },
            "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
        }
        async with ServiceProcess(tmp_path, settings, CRITERIA) as service:
            configuration = load_configuration(service.config_path, os.environ)
            plan_memory(configuration, CONTAINER_MIB << 20)  # accepts it
            process = service.process.pid
            load = Load(service.endpoints["grpc"], SPANS_PER_SECOND, senders=4, traces_per_request=8)
            sending = asyncio.create_task(load.run())
            await asyncio.sleep(2)
            calm = sorted(load.sent.seconds)
            load.sent.seconds.clear()
            files = open_files(process)
            before = resident_mib(process)
            hostile = await asyncio.create_subprocess_exec(
                *("nice", sys.executable, "-m", "tests.support.hostile_senders"),  # they are other machines
                *(service.endpoints["grpc"], service.endpoints["http"], str(OVERLOAD_SECONDS)),
                *(["--http2-headers"] if server == "uvicorn" else []),  # grpcio keeps some of each
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,  # asyncio tells of every connection that was cut
            )
            done, _ = await hostile.communicate()
            disturbed = sorted(load.sent.seconds)
            load.is_over.set()
            await sending
            await service.until(lambda: load.sent.acknowledged.keys() <= backend.sink.spans.keys())
            await service.until(lambda: open_files(process) < files + 50)
            peak = peak_mib(process)
            metrics = await service.metrics()
    print(
        f"{OVERLOAD_SECONDS:g} s of overload, {server}: at most {peak:.0f} of {CONTAINER_MIB} MiB, "
        f"{before:.0f} before; p99 of {len(disturbed)} acknowledgements {1000 * _p99(disturbed):.0f} ms, "
        f"median {1000 * disturbed[len(disturbed) // 2]:.0f} ms ({1000 * _p99(calm):.0f} and "
        f"{1000 * calm[len(calm) // 2]:.0f} ms before): {json.loads(done)}"
    )
    load.sent.require_delivered(backend.sink)
    cut_short = metrics['tracegrade_traces_finished_total{reason="pressure"}']
    load.sent.outcomes(backend.sink, cut_short=cut_short)
    assert peak < CONTAINER_MIB
    assert _p99(disturbed) < PATIENCE_SECONDS
    assert 0 == metrics['tracegrade_accounting_error_spans{exporter="otlp"}']


def _p99(seconds: list[float]) -> float:
    return seconds[int(len(seconds) * 0.99)]
