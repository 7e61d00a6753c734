"""`tracegrade doctor` names what is broken, on the running service, real backends and a real Prometheus."""

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from collector.cli import run_command
from collector.otlp import join_spans
from collector.tools.doctor import Hop, Sender, State
from processors.model import JsonObject
from tests.support import both_signals
from tests.support.agent_spans import agent
from tests.support.alertmanager_server import AlertmanagerServer
from tests.support.backend_server import PROJECT, free_port
from tests.support.backends import Answer, GrpcBackend, HttpBackend
from tests.support.deliveries import make_spans
from tests.support.doctor import SetUp, broken
from tests.support.otlp_senders import TLS, GrpcSender
from tests.support.prometheus_server import PrometheusServer, scrape_config
from tests.support.service_in_loop import read_samples

pytestmark = pytest.mark.end_to_end

RUNS = 'tracegrade_agent_runs_total{gen_ai_agent_name="refund-agent"'
RULES = PROJECT / "deploy" / "prometheus" / "rules" / "tracegrade.yaml"


async def samples(setup: SetUp) -> dict[str, float]:
    url = f"http://{setup.config.telemetry_endpoint()}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return read_samples(await response.text())


def listener(setup: SetUp, name: str = "grpc") -> str:
    return f"receivers.otlp.protocols.{name} (127.0.0.1:{setup.ports[name]})"


def tls(name: str) -> JsonObject:
    return {"tls": {"cert_file": str(TLS / f"{name}.pem"), "key_file": str(TLS / f"{name}.key")}}


def says(hop: Hop, found: str, advice: str) -> bool:
    return hop.state is State.BROKEN and found in hop.observed and advice in hop.advice and bool(hop.expected)


@pytest.mark.parametrize("mode", ["hold", "stream"])
async def test_every_hop_works_and_the_probe_is_in_no_series_and_no_file(tmp_path: Path, mode: str) -> None:
    backend = GrpcBackend()
    await backend.start()
    (tmp_path / "tokens").write_text("first\nsecond\n")
    settings: JsonObject = {
        "exporters": {"otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}}},
        "results": {"mode": mode, "emit": ["log"]},
        "journal": {"directory": "journal"},
        "store": {"path": "runs.db"},
    }
    auth: JsonObject = {"auth": {"bearer_token_file": str(tmp_path / "tokens")}}
    setup = SetUp(tmp_path, settings, grpc={**auth, **tls("wildcard")}, http={**auth, **tls("server")})
    async with setup.running():
        hops = await setup.diagnose()
        found = await samples(setup)
    await backend.stop()

    assert [] == [hop for hop in hops.values() if hop.state is not State.WORKS]
    assert {listener(setup), listener(setup, "http"), "journal.directory", "store.path"} < hops.keys()
    assert {"exporters.otlp (spans)", "exporters.otlp (log records)"} < hops.keys()
    # What reached the backend is the one span of no agent; nothing of the traces left the service.
    assert (1, 1) == (len(backend.requests), len(backend.log_requests))
    assert b"tracegrade doctor" in backend.requests[0]
    assert [] == [name for name in found if "gen_ai_agent_name" in name]
    assert 0 == found['tracegrade_spans_forwarded_total{exporter="otlp"}']
    assert 16 == found['tracegrade_spans_dropped_total{exporter="",reason="self_check"}']
    assert 4 == found['tracegrade_log_records_dropped_total{exporter="",reason="self_check"}']
    assert 0 == found['tracegrade_accounting_error_spans{exporter="otlp"}']
    assert 0 == (tmp_path / "verdicts.runs.jsonl").stat().st_size


async def test_a_service_that_does_not_run_is_named_and_all_that_is_not_behind_it_is_checked(
    tmp_path: Path,
) -> None:
    setup = SetUp(tmp_path)

    hops = await setup.diagnose()

    telemetry = f"service.telemetry ({setup.config.telemetry_endpoint()})"
    assert [telemetry, listener(setup)] == broken(hops)
    assert says(hops[telemetry], "no answer from", "tracegrade run")
    assert says(hops[listener(setup)], "nothing listens at", "Start it, or correct")
    assert State.UNKNOWN is hops["processors.evaluation"].state
    assert State.WORKS is hops["exporters.results_file"].state


async def test_what_is_wrong_between_a_sender_and_the_listener_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("right\n")
    (tmp_path / "other").write_text("wrong\n")
    auth: JsonObject = {"auth": {"bearer_token_file": str(tmp_path / "tokens")}}
    setup = SetUp(tmp_path, grpc=tls("server"), http=auth)
    secure, plain = f"127.0.0.1:{setup.ports['grpc']}", f"127.0.0.1:{setup.ports['http']}"
    closed = f"127.0.0.1:{free_port()}"
    async with setup.running():
        cases = [
            # wrong port
            (Sender(closed), f"endpoint {closed}", "nothing listens at", "correct the host and the port"),
            # plain text to TLS, and the other way round
            (Sender(f"http://{secure}"), listener(setup), "speaks TLS and was sent plain text", "https://"),
            (Sender(f"https://{plain}"), listener(setup, "http"), "speaks no TLS", "http://"),
            # an authority that did not issue the certificate
            (Sender(secure, TLS / "client.pem"), listener(setup), "not trusted: unable to get", "ca_file"),
            # wrong token
            (Sender(plain, None, tmp_path / "other"), listener(setup, "http"), "HTTP 401", "Bearer TOKEN"),
            (Sender(plain, None, tmp_path / "none"), listener(setup, "http"), "no token to send", "token"),
        ]
        for sender, where, found, advice in cases:
            hops = await setup.diagnose(sender)
            assert [where] == broken(hops)
            assert says(hops[where], found, advice), hops[where]
        assert [] == broken(await setup.diagnose(Sender(plain)))


async def test_a_way_that_takes_traces_alone_is_named(tmp_path: Path) -> None:
    """Such as a proxy that knows one path."""
    setup = SetUp(tmp_path, http={})
    app, port = web.Application(), free_port()

    async def accept(_: web.Request) -> web.Response:
        return web.Response(content_type="application/x-protobuf")

    app.router.add_post("/v1/traces", accept)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    async with setup.running():
        hops = await setup.diagnose(Sender(endpoint=f"http://127.0.0.1:{port}"))
    await runner.cleanup()

    assert State.WORKS is hops[f"endpoint 127.0.0.1:{port}"].state
    assert says(hops[f"endpoint 127.0.0.1:{port} (log records)"], "404", "/v1/logs")


async def test_an_expired_certificate_and_a_clock_that_is_wrong_are_named(tmp_path: Path) -> None:
    setup = SetUp(tmp_path, grpc=tls("expired"))
    async with setup.running():
        hops = await setup.diagnose(ahead_seconds=90)

    assert ["clock", listener(setup)] == broken(hops)
    assert says(hops["clock"], "90 s ahead of that of the service", "NTP")
    assert says(hops[listener(setup)], "certificate has expired", "Renew")


async def test_what_is_wrong_with_a_backend_is_told_apart(tmp_path: Path) -> None:
    grpc_backend, busy = GrpcBackend(), GrpcBackend(lambda _: Answer("unavailable", message="not now"))
    partial = HttpBackend(lambda _: Answer("partial", rejected=1, message="too old"))
    refusing = HttpBackend()
    refusing.override = lambda request: web.Response(status=int(request.path.split("/")[1]))
    secure = HttpBackend(tls=True)
    backends = (grpc_backend, busy, partial, refusing, secure)
    for backend in backends:
        await backend.start()
    plain: JsonObject = {"insecure": True}
    exporters: JsonObject = {
        "otlp/down": {"endpoint": f"127.0.0.1:{free_port()}", "tls": plain},
        "kafka": {"brokers": [f"127.0.0.1:{free_port()}"]},
        "otlp/busy": {"endpoint": busy.endpoint, "tls": plain},
        "otlp/http": {"endpoint": partial.endpoint.removeprefix("http://"), "tls": plain},
        "otlp/name": {"endpoint": "backend.invalid:4317", "tls": plain},
        "otlp_http/grpc": {"endpoint": f"http://{grpc_backend.endpoint}"},
        "otlp_http/partial": {"endpoint": partial.endpoint},
        "otlp_http/401": {"endpoint": f"{refusing.endpoint}/401"},
        "otlp_http/404": {"endpoint": f"{refusing.endpoint}/404"},
        "otlp_http/415": {"endpoint": f"{refusing.endpoint}/415"},
        "otlp_http/plain": {"endpoint": secure.endpoint.replace("https", "http")},
        "otlp_http/unknown_ca": {"endpoint": secure.endpoint},
        "otlp_http/good": {
            "endpoint": secure.endpoint.replace("127.0.0.1", "localhost"),
            "tls": {"ca_file": str(TLS / "ca.pem")},
        },
        "langfuse_scores": {
            "endpoint": f"{refusing.endpoint}/403", "public_key": "public", "secret_key": "secret",
        },
    }  # fmt: skip
    expected = {
        "otlp/down": ("nothing listens at", "Start it"),
        "kafka": ("no answer from 127.0.0.1:", "brokers"),
        "otlp/busy": ("UNAVAILABLE: not now", "sent again"),
        "otlp/http": ("speaks HTTP/1.1, not gRPC", "otlp_http"),
        "otlp/name": ("is not known here", "spelling"),
        "otlp_http/grpc": ("speaks gRPC (HTTP/2)", "type otlp "),
        "otlp_http/partial": ("rejected 1 spans: too old", "limits"),
        "otlp_http/401": ("HTTP 401", "headers"),
        "otlp_http/404": ("HTTP 404", "traces_endpoint"),
        "otlp_http/415": ("HTTP 415", "OTLP endpoint"),
        "otlp_http/plain": ("speaks TLS and was sent plain text", "https://"),
        "otlp_http/unknown_ca": ("not trusted", "ca_file"),
        "langfuse_scores": ("HTTP 403", "right to write"),
    }
    hops = await SetUp(tmp_path, {"exporters": exporters}).diagnose()
    for backend in backends:
        await backend.stop()

    found = {where.split()[0].removeprefix("exporters."): hop for where, hop in hops.items()}
    for name, (text, advice) in expected.items():
        assert says(found[name], text, advice), found[name]
    assert State.WORKS is found["otlp_http/good"].state, found["otlp_http/good"]


async def test_agents_without_criteria_are_named(tmp_path: Path) -> None:
    check = "evaluations: [{evaluator: tool-call-count, criteria: {tool_calls_count: {look: ['==', 1]}}}]"
    (tmp_path / "good.yaml").write_text(f"agents: {{refund-agnet: {{{check}}}}}")
    settings: JsonObject = {"processors": {"evaluation": {"criteria": ["good.yaml"]}}}
    setup = SetUp(tmp_path, settings)
    async with setup.running():
        before = await setup.diagnose()
        async with GrpcSender(f"127.0.0.1:{setup.ports['grpc']}") as sender:
            await sender.send(join_spans([agent(1, None, "refund-agent")]))
        while not any(RUNS in name and value for name, value in (await samples(setup)).items()):
            await asyncio.sleep(0.05)
        after = await setup.diagnose()

    assert [] == broken(before)
    assert ["agents"] == broken(after), after
    assert says(after["agents"], 'applies to "refund-agent"', "Name them in a criteria file")


async def test_agents_without_content_are_named_with_the_setting_that_sends_it(tmp_path: Path) -> None:
    """Claude Code, whose log records do not come here."""
    setup = SetUp(tmp_path, {"processors": {"evaluation": {"criteria": ["builtin"]}}}, http={})
    url = f"http://127.0.0.1:{setup.ports['http']}/v1/traces"
    async with (
        setup.running(),
        aiohttp.ClientSession(headers={"content-type": "application/x-protobuf"}) as session,
    ):
        for body in both_signals.requests("claude_code", "traces"):
            async with session.post(url, data=body) as response:
                assert 200 == response.status
        while "tracegrade_agent_runs_total" not in " ".join(await samples(setup)):
            await asyncio.sleep(0.05)
        hops = await setup.diagnose()

    assert ["content (claude_code)"] == broken(hops)
    assert says(hops["content (claude_code)"], '"claude-code"', "OTEL_LOGS_EXPORTER=otlp")


async def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings: JsonObject = {
        "exporters": {
            "results_file": {"path": str(tmp_path / "missing" / "verdicts.runs.jsonl")},
            "file": {"path": "/proc/spans.jsonl"},
        },
        "journal": {"directory": str(tmp_path / "file" / "journal")},
        "store": {"path": str(tmp_path)},
    }

    hops = await SetUp(tmp_path, settings).diagnose()

    assert says(hops["exporters.results_file"], "No such file", "Create the folder")
    assert says(hops["exporters.file"], "nothing can be written in /proc", "mount it for writing")
    assert says(hops["journal.directory"], "Not a directory", "correct the path")
    assert says(hops["store.path"], "is a folder", "Correct its name")


async def test_a_service_that_holds_all_that_it_may_is_named(tmp_path: Path) -> None:
    settings: JsonObject = {
        "processors": {"memory_limiter": {"limit_mib": 1}},
        "exporters": {"otlp": {"endpoint": f"127.0.0.1:{free_port()}", "tls": {"insecure": True}}},
    }
    setup = SetUp(tmp_path, settings)
    async with setup.running():
        async with GrpcSender(f"127.0.0.1:{setup.ports['grpc']}") as sender:
            trace = 0
            for padding in (100_000, 10_000, 1000, 100):
                code = "OK"
                while code == "OK":
                    trace += 1
                    code = (await sender.send(join_spans(make_spans(trace, 1, padding=padding)))).code
        hops = await setup.diagnose()

    assert says(hops[listener(setup)], "memory", "memory_limiter"), hops[listener(setup)]
    assert says(hops["processors.memory_limiter"], "is held", "exporter that does not deliver")
    assert says(hops["exporters.otlp (spans)"], "nothing listens at", "Start it")


@pytest.mark.requires_program("prometheus")
@pytest.mark.requires_program("prometheus-alertmanager")
async def test_a_prometheus_that_does_not_scrape_has_no_rules_or_alerts_nobody_is_named(
    tmp_path: Path,
) -> None:
    setup = SetUp(tmp_path)
    names = ["prometheus scraping", "prometheus rules", "prometheus alerting"]
    async with setup.running():
        nobody = await setup.diagnose(prometheus=f"http://127.0.0.1:{free_port()}")
        other = scrape_config("other", f"127.0.0.1:{free_port()}")
        async with PrometheusServer(tmp_path / "bare", {"scrape_configs": [other]}) as bare:
            await bare.until("up == 0")
            without = await setup.diagnose(prometheus=bare.url)
        alertmanager = AlertmanagerServer(
            tmp_path, {"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}
        )
        async with alertmanager:
            config: JsonObject = {
                "scrape_configs": [scrape_config("tracegrade", setup.config.telemetry_endpoint())],
                "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.address]}]}]},
            }
            async with PrometheusServer(tmp_path, config, rule_files=[RULES]) as prometheus:
                await prometheus.until("up == 1")
                good = await setup.diagnose(prometheus=prometheus.url)

    assert says(nobody["prometheus"], "no answer", "address of Prometheus")
    assert names == broken(without)
    assert says(without[names[0]], "none of the 1 targets", "scrape_configs")
    assert says(without[names[1]], "tracegrade-service", "rule_files")
    assert says(without[names[2]], "knows no Alertmanager", "alerting.alertmanagers")
    assert [] == broken(good)
    assert set(names) < good.keys()


def test_the_command_prints_json_and_tells_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup = SetUp(tmp_path)
    (tmp_path / "broken.yaml").write_text("receivers: {otlpp: {}}")

    assert 1 == run_command(["doctor", "--config", str(setup.path), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert 1 == run_command(["doctor", "--config", str(setup.path)])
    text = capsys.readouterr().out
    assert 2 == run_command(["doctor", "--config", str(tmp_path / "broken.yaml")])

    assert answer["works"] is False
    assert {"hop", "state", "found", "expected", "do"} == set(answer["hops"][0])
    assert "BROKEN  service.telemetry" in text
    assert "        do: Start it" in text
    assert "hops, 3 of them do not work" in text
