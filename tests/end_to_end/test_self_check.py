"""The service's check of itself, on the running service with real listeners."""

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
import yaml

from collector.otlp import join_spans
from processors.criteria import Evaluation
from processors.evaluate import evaluate_run
from processors.model import AgentRun, EvaluationResult, JsonObject, JsonValue, WholeTrace
from tests.support.agent_spans import agent
from tests.support.backends import Answer, GrpcBackend
from tests.support.deliveries import make_spans
from tests.support.otlp_senders import TLS, GrpcSender
from tests.support.service_in_loop import ServiceInLoop
from tests.support.service_process import ServiceProcess, deep_merge

pytestmark = pytest.mark.end_to_end

SPANS, RECORDS = (
    2 * (1 + 1 + 2),
    2,
)  # two traces, each of an agent, its model turn and two calls, and a record
SUCCESS = 'tracegrade_self_checks_total{outcome="success"}'
FAILURE = 'tracegrade_self_checks_total{outcome="failure"}'
DROPPED = 'tracegrade_spans_dropped_total{exporter="",reason="self_check"}'
RECORDS_DROPPED = 'tracegrade_log_records_dropped_total{exporter="",reason="self_check"}'
LAST_SUCCESS = "tracegrade_self_check_last_success_timestamp_seconds"

ENABLED: JsonObject = {"service": {"telemetry": {"self_check": {"enabled": True, "interval": "500ms"}}}}


def configuration(protocols: JsonValue = None, **settings: JsonValue) -> str:
    base: JsonObject = {
        "receivers": {"otlp": {"protocols": protocols or {"grpc": {"endpoint": "127.0.0.1:0"}}}},
        "service": {"telemetry": {"endpoint": "127.0.0.1:0"}, "shutdown_timeout": "5s"},
    }
    return yaml.safe_dump(deep_merge(base, settings))


def running(text: str) -> ServiceInLoop:
    return ServiceInLoop(text, time.time_ns())


async def first_check(service: ServiceInLoop) -> dict[str, float]:
    return await service.until(lambda samples: samples[SUCCESS] + samples[FAILURE] >= 1)


def token_file(folder: Path) -> JsonObject:
    (folder / "tokens").write_text("\nfirst\nsecond\n")
    return {"bearer_token_file": str(folder / "tokens")}


def tls(name: str = "server", client_ca: bool = False) -> JsonObject:
    files: JsonObject = {"cert_file": str(TLS / f"{name}.pem"), "key_file": str(TLS / f"{name}.key")}
    return {**files, "client_ca_file": str(TLS / "ca.pem")} if client_ca else files


@pytest.mark.parametrize("server", ["grpcio", "uvicorn", "http"])
@pytest.mark.parametrize("security", ["none", "token", "tls", "tls and token", "mutual tls", "wildcard"])
async def test_a_check_succeeds_through_the_listener_that_is_there(
    tmp_path: Path, server: str, security: str
) -> None:
    protocol = "http" if server == "http" else "grpc"
    listener: JsonObject = {"endpoint": "127.0.0.1:0"}
    if protocol == "grpc":
        listener["server"] = server
    if "token" in security:
        listener["auth"] = token_file(tmp_path)
    if "tls" in security or security == "wildcard":
        listener["tls"] = tls(
            "wildcard" if security == "wildcard" else "server", client_ca=security == "mutual tls"
        )
    async with running(configuration({protocol: listener})) as service:
        samples = await first_check(service)

    assert (1, 0) == (samples[SUCCESS], samples[FAILURE])
    assert SPANS == samples[DROPPED] == samples["tracegrade_spans_received_total"]
    assert RECORDS == samples[RECORDS_DROPPED] == samples["tracegrade_log_records_received_total"]
    assert time.time() - 60 < samples[LAST_SUCCESS] < time.time() + 3600
    assert 0 == samples['tracegrade_accounting_error_spans{exporter="debug"}']
    code = "OK" if protocol == "grpc" else "200"
    assert 2 == samples[f'tracegrade_requests_total{{code="{code}",transport="{protocol}"}}']


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_a_listener_on_every_address_is_reached(protocol: str) -> None:
    async with running(configuration({protocol: {"endpoint": "0.0.0.0:0"}})) as service:
        samples = await first_check(service)

    assert 1 == samples[SUCCESS]


async def test_checks_go_on_at_the_interval() -> None:
    text = configuration(service={"telemetry": {"self_check": {"interval": "5m"}}})
    async with running(text) as service:
        before = await first_check(service)
        await service.pass_time(290)
        samples = await service.until(lambda samples: samples[SUCCESS] >= 2)

    assert (2, 0) == (samples[SUCCESS], samples[FAILURE])
    assert 290 <= samples[LAST_SUCCESS] - before[LAST_SUCCESS] < 360


async def test_without_self_checks_nothing_is_sent_and_nothing_is_shown() -> None:
    text = configuration(service={"telemetry": {"self_check": {"enabled": False}}})
    async with running(text) as service:
        await service.pass_time(120)
        samples = await service.metrics()

    assert 0 == samples["tracegrade_spans_received_total"]
    assert [] == [name for name in samples if "self_check" in name]


@pytest.mark.parametrize("mode", ["hold", "stream", "verdicts_only"])
@pytest.mark.parametrize("has_journal", [False, True])
async def test_nothing_of_a_check_leaves_the_service_or_enters_a_series_of_agents(
    tmp_path: Path, mode: str, has_journal: bool
) -> None:
    emit = "span_event" if mode == "hold" else "span"
    more: JsonObject = {"results": {"mode": mode, "emit": [emit]}}
    if has_journal:
        more["journal"] = {"directory": str(tmp_path / "journal")}
    settings = deep_merge(ENABLED, more)
    assert isinstance(settings, dict)
    async with ServiceProcess(tmp_path, settings) as service:
        samples = await service.metrics()
        while samples[SUCCESS] < 2:
            await asyncio.sleep(0.1)
            samples = await service.metrics()
        assert 0 == await service.stop()

    assert [] == service.results() == service.exported_requests()
    assert [] == [name for name in samples if "gen_ai_agent_name" in name]
    for signal in ("spans", "log_records"):
        left = [f"tracegrade_{signal}_forwarded_total", f"tracegrade_accounting_error_{signal}"]
        assert {0} == {samples[name] for name in samples if name.startswith(tuple(left))}
    assert 0 < samples[RECORDS_DROPPED]
    assert 0 == samples["tracegrade_verdict_delay_seconds_count"]
    assert 0 == samples["tracegrade_late_spans_total"]
    assert 0 == samples[FAILURE]


async def test_a_check_whose_log_records_are_not_joined_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("collector.path.received_records.may_have_content", lambda _: False)
    async with running(configuration()) as service:
        samples = await first_check(service)

    assert (0, 1) == (samples[SUCCESS], samples[FAILURE])
    assert "got not_evaluated from tool-call-args" in _errors(caplog)


async def test_an_agent_of_the_reserved_name_is_like_any_other(tmp_path: Path) -> None:
    text = configuration(
        exporters={"file": {"path": str(tmp_path / "spans.jsonl")}},
        processors={"group_by_trace": {"max_lateness": "1000000h"}},
    )
    reserved = agent(1, None, "tracegrade.self-check")
    async with (
        running(text) as service,
        GrpcSender(service.endpoints["grpc"]) as sender,
    ):
        assert "OK" == (await sender.send(join_spans([reserved]))).code
        forwarded = 'tracegrade_spans_forwarded_total{exporter="file"}'
        samples = await service.until(lambda samples: samples[forwarded] + samples[FAILURE] >= 1)
        samples = await service.until(lambda samples: samples[SUCCESS] + samples[FAILURE] >= 1)

    assert (1, 1, SPANS) == (samples[forwarded], samples[SUCCESS], samples[DROPPED])
    series = 'gen_ai_agent_name="tracegrade.self-check"'
    assert any(series in name for name in samples if name.startswith("gen_ai_evaluation_results_total"))


async def test_an_evaluation_stage_that_breaks_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> list[EvaluationResult]:
        raise RuntimeError("broken")

    monkeypatch.setattr("collector.grading.grader.evaluate_run", broken)
    async with running(configuration()) as service:
        samples = await first_check(service)

    assert (0, 1, 0) == (samples[SUCCESS], samples[FAILURE], samples[LAST_SUCCESS])
    assert SPANS == samples[DROPPED]
    assert "gave 0 agent runs" in _errors(caplog)


async def test_an_evaluation_that_passes_everything_is_a_failure_until_it_is_mended(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lenient(
        run: AgentRun, evaluations: Sequence[Evaluation], *, unix_nano: int, on_skip: None, trace: WholeTrace
    ) -> list[EvaluationResult]:
        return [
            result
            for evaluation in evaluations
            for result in evaluate_run(run, [replace(evaluation, pass_threshold=0.0)], trace=trace)
        ]

    caplog.set_level(logging.INFO)
    monkeypatch.setattr("collector.grading.grader.evaluate_run", lenient)
    text = configuration(service={"telemetry": {"self_check": {"interval": "5s"}}})
    async with running(text) as service:
        failing = await first_check(service)
        monkeypatch.undo()
        mended = await service.until(lambda samples: samples[SUCCESS] >= 1)

    assert (0, 1) == (failing[SUCCESS], failing[FAILURE])
    assert (1, 1) == (mended[SUCCESS], mended[FAILURE])
    assert "the trace to fail (finish reason root) got pass" in _errors(caplog)
    assert any("succeeds again" in record.message for record in caplog.records)


async def test_a_check_that_is_not_let_in_is_a_failure_that_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listener: JsonObject = {"endpoint": "127.0.0.1:0", "auth": token_file(tmp_path)}
    text = configuration({"grpc": listener}, service={"telemetry": {"self_check": {"interval": "5s"}}})
    async with running(text) as service:
        assert 1 == (await first_check(service))[SUCCESS]
        (tmp_path / "tokens").write_text("\n")
        samples = await service.until(lambda samples: samples[FAILURE] >= 1)

    assert 1 == samples[FAILURE]
    assert "the file is empty" in _errors(caplog)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
async def test_an_expired_certificate_is_a_failure_that_says_so(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    listener: JsonObject = {"endpoint": "127.0.0.1:0", "tls": tls("expired")}
    async with running(configuration({protocol: listener})) as service:
        samples = await first_check(service)

    assert (0, 1) == (samples[SUCCESS], samples[FAILURE])
    assert "certificate has expired" in _errors(caplog)


async def test_a_service_without_room_fails_its_checks_and_stays_ready(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with AsyncExitStack() as stack:
        backend = GrpcBackend(lambda _: Answer("unavailable"))
        await backend.start()
        stack.push_async_callback(backend.stop)
        text = configuration(
            processors={"memory_limiter": {"limit_mib": 1}},
            exporters={"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
            service={"telemetry": {"self_check": {"interval": "30s"}}},
        )
        service = await stack.enter_async_context(running(text))
        sender = await stack.enter_async_context(GrpcSender(service.endpoints["grpc"]))
        await first_check(service)
        for number in range(1, 10):
            assert "OK" == (await sender.send(join_spans(make_spans(number, 1, padding=110_000)))).code
        while (samples := await service.metrics())[FAILURE] < 1:
            number += 1
            await sender.send(join_spans(make_spans(number, 1, padding=1000)))
            await service.pass_time(0.5)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{service.endpoints['telemetry']}/readyz") as response,
        ):
            readiness = response.status

    assert 200 == readiness
    assert (1, 1) == (samples[SUCCESS], samples[FAILURE])
    assert "memory limit for held spans is reached" in _errors(caplog)
    assert 0 == samples['tracegrade_accounting_error_spans{exporter="otlp"}']


async def test_a_verdict_that_is_late_because_the_service_refuses_is_logged_as_that(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with AsyncExitStack() as stack:
        backend = GrpcBackend(lambda _: Answer("unavailable"))
        await backend.start()
        stack.push_async_callback(backend.stop)
        text = configuration(
            processors={"memory_limiter": {"limit_mib": 1}},
            exporters={"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
            service={"telemetry": {"self_check": {"interval": "30s"}}},
        )
        service = await stack.enter_async_context(running(text))
        sender = await stack.enter_async_context(GrpcSender(service.endpoints["grpc"]))
        assert "OK" == (await sender.send(join_spans(make_spans(1, 8, padding=100_000)))).code
        await service.until(lambda samples: samples[SUCCESS] >= 1)
        too_much = join_spans(make_spans(2, 1, padding=300_000))
        while (samples := await service.metrics())[FAILURE] < 1:
            assert "UNAVAILABLE" == (await sender.send(too_much)).code
            await service.pass_time(1)
            await asyncio.sleep(0.005)
        late = await service.until(lambda samples: samples[DROPPED] >= 2 * SPANS)

    assert (1, 1) == (samples[SUCCESS], samples[FAILURE])
    assert "no verdict within 26 s, of which the service could not receive" in _errors(caplog)
    assert (
        late["tracegrade_spans_received_total"]
        == 8 + late[DROPPED] + late['tracegrade_spans_held{exporter=""}']
    )


async def test_sigterm_in_the_middle_of_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    settings = deep_merge(ENABLED, {"processors": {"group_by_trace": {"root_grace": "1h"}}})
    assert isinstance(settings, dict)
    async with ServiceProcess(tmp_path, settings) as service:
        while SPANS != (await service.metrics())['tracegrade_spans_held{exporter=""}']:
            await asyncio.sleep(0.05)
        assert 0 == await service.stop()

    assert [] == service.results() == service.exported_requests()
    said = [line for line in service.log if not line.startswith("tracegrade ready")]
    assert ["Criteria are in force"] == [json.loads(line)["message"].partition(" for ")[0] for line in said]


def _errors(caplog: pytest.LogCaptureFixture) -> str:
    """What was logged as the cause of failed checks."""
    return "\n".join(str(vars(record).get("error", "")) for record in caplog.records)
