"""What a backend refuses for good is kept in a file, and reaches a backend that takes it."""

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from collector.cli import run_command
from collector.exporters.dead_letters import read_header
from collector.otlp import join_spans, split_request
from processors.spans import RawSpan
from tests.support.agent_spans import MILLISECOND, agent, tool
from tests.support.backends import Answer, GrpcBackend, HttpBackend, log_records, spans_and_verdicts
from tests.support.held_spans import START_UNIX_NANO
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop

pytestmark = pytest.mark.end_to_end

_START = START_UNIX_NANO // MILLISECOND
_SPANS = [tool(2, 1, "search", (_START + 1, _START + 2)), agent(1, None, "helper", (_START, _START + 5))]


def _configuration(folder: Path, backend: GrpcBackend, **dead_letters: Any) -> dict[str, Any]:
    return {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
        "exporters": {
            "otlp": {
                "endpoint": backend.endpoint,
                "tls": {"insecure": True},
                "sending_queue": {"batch": {"flush_timeout": "0s"}},
            }
        },
        "results": {"emit": ["log", "span", "span_event"]},
        "service": {
            "telemetry": {"endpoint": "127.0.0.1:0", "self_check": {"enabled": False}},
            "dead_letters": {"path": str(folder / "dead.jsonl"), **dead_letters},
        },
    }


async def _refused(
    folder: Path, answer: Answer, spans: list[RawSpan] = _SPANS, **dead_letters: Any
) -> dict[str, float]:
    """Send `spans` through a service whose backend answers so; the metrics when nothing is held any more."""
    backend = GrpcBackend(lambda _: answer)
    await backend.start()
    try:
        configuration = _configuration(folder, backend, **dead_letters)
        async with ServiceInLoop(json.dumps(configuration), START_UNIX_NANO) as service:
            async with GrpcSender(service.endpoints["grpc"]) as sender:
                assert "OK" == (await sender.send(join_spans(spans))).code
            samples = await service.until(
                lambda samples: (
                    samples['tracegrade_spans_dropped_total{exporter="otlp",reason="rejected"}'] == len(spans)
                    and samples['tracegrade_results_held{exporter="otlp",form="log"}'] == 0
                    and samples['tracegrade_results_held{exporter="otlp",form="span"}'] == 0
                    and samples['tracegrade_results_dropped_total{exporter="otlp",reason="rejected"}'] > 1
                )
            )
            assert 0 == samples['tracegrade_accounting_error_spans{exporter="otlp"}']
            return samples
    finally:
        await backend.stop()


async def _redrive(folder: Path, backend: GrpcBackend | HttpBackend, *more: str) -> int:
    if isinstance(backend, GrpcBackend):
        exporter = f'otlp: {{endpoint: "{backend.endpoint}", tls: {{insecure: true}}}}'
    else:
        exporter = f'otlp_http: {{endpoint: "{backend.endpoint}"}}'
    config = folder / "tracegrade.yaml"
    config.write_text(f"exporters: {{{exporter}}}")
    to = exporter.partition(":")[0]
    path = str(folder / "dead.jsonl")
    return await asyncio.to_thread(run_command, ["redrive", path, "--to", to, "--config", str(config), *more])


@pytest.mark.parametrize("kind", [GrpcBackend, HttpBackend])
async def test_what_was_refused_reaches_another_backend_with_its_verdicts(
    tmp_path: Path, kind: type[GrpcBackend] | type[HttpBackend], capsys: pytest.CaptureFixture[str]
) -> None:
    samples = await _refused(tmp_path, Answer("refuse", message="no such tenant"))
    file = tmp_path / "dead.jsonl"
    lines = file.read_bytes().splitlines()

    assert {"spans", "results", "log_records"} == {read_header(line)["kind"] for line in lines}
    assert all("PERMISSION_DENIED: no such tenant" in str(read_header(line)["reason"]) for line in lines)
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    kept = samples['tracegrade_dead_letters_total{exporter="otlp",outcome="kept"}']
    assert kept == sum(int(str(read_header(line)["count"])) for line in lines)

    other = kind()
    await other.start()
    try:
        assert 0 == await _redrive(tmp_path, other)
    finally:
        await other.stop()

    spans, verdicts = spans_and_verdicts(other.requests)
    assert {span[0] for span in _SPANS} == {*spans}
    assert 1 == len(verdicts)
    assert len(log_records(other.log_requests)) + len(spans) + len(verdicts) == kept
    sent = {span[0]: span[1] for span in _SPANS}
    for request in other.requests:
        for span_id, payload, _ in next(iter(split_request(request).traces.values())):
            assert payload.startswith(sent.get(span_id, b""))
    assert f"{len(lines)} requests sent, 0 remain in" in capsys.readouterr().out
    assert not file.exists()


async def test_what_is_refused_again_stays_and_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _refused(tmp_path, Answer("refuse", message="first"))
    file = tmp_path / "dead.jsonl"
    before = file.read_bytes()
    other = GrpcBackend(lambda _: Answer("refuse_content", message="still bad"))
    await other.start()
    try:
        assert 1 == await _redrive(tmp_path, other)
    finally:
        await other.stop()

    assert before == file.read_bytes()
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    assert f"{file}: line 1: INVALID_ARGUMENT: still bad" in capsys.readouterr().err


async def test_a_backend_that_is_down_costs_one_timeout_and_no_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _refused(tmp_path, Answer("refuse"))
    before = (tmp_path / "dead.jsonl").read_bytes()
    other = GrpcBackend(lambda _: Answer("unavailable"))
    await other.start()
    try:
        assert 1 == await _redrive(tmp_path, other, "--timeout", "200ms")
    finally:
        await other.stop()

    assert before == (tmp_path / "dead.jsonl").read_bytes()
    assert "nothing more was tried" in capsys.readouterr().err


async def test_a_full_file_takes_no_more_and_the_books_still_hold(tmp_path: Path) -> None:
    (tmp_path / "dead.jsonl").write_bytes(b"{}" + b" " * (1024 * 1024 - 3) + b"\n")
    samples = await _refused(tmp_path, Answer("refuse"), max_mib=1)

    assert 0 == samples['tracegrade_dead_letters_total{exporter="otlp",outcome="kept"}']
    assert 2 < samples['tracegrade_dead_letters_total{exporter="otlp",outcome="full"}']


async def test_old_lines_are_removed_at_the_start_and_counted(tmp_path: Path) -> None:
    await _refused(tmp_path, Answer("refuse"))
    file = tmp_path / "dead.jsonl"
    kept = sum(int(str(read_header(line)["count"])) for line in file.read_bytes().splitlines())
    foreign = b'{"resourceSpans":[]}\n'
    with file.open("ab") as opened:
        opened.write(foreign)
    backend = GrpcBackend()
    await backend.start()
    configuration = _configuration(tmp_path, backend, max_age="1h")
    try:
        async with ServiceInLoop(json.dumps(configuration), START_UNIX_NANO + 7200 * 10**9) as service:
            name = 'tracegrade_dead_letters_total{exporter="otlp",outcome="expired"}'
            await service.until(lambda samples: samples[name] == kept)
    finally:
        await backend.stop()

    assert foreign == file.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl", "--to", "debug"], '"debug" accepts neither spans nor log records'),
        (["missing.jsonl", "--to", "otlp"], 'no exporter "otlp"; configured: debug'),
    ],
)
def test_what_cannot_be_done_is_told(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == run_command(["redrive", *arguments])
    assert message in capsys.readouterr().err


def test_a_missing_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.yaml"
    config.write_text('exporters: {file: {path: "out.jsonl"}}')

    assert 2 == run_command(["redrive", str(tmp_path / "no.jsonl"), "--to", "file", "--config", str(config)])
    assert "no.jsonl: no such file" in capsys.readouterr().err


async def test_what_stopped_in_the_middle_goes_on_and_a_new_file_is_left_alone(tmp_path: Path) -> None:
    await _refused(tmp_path, Answer("refuse"))
    file = tmp_path / "dead.jsonl"
    file.rename(tmp_path / "dead.jsonl.redriving")
    file.write_bytes(b"written since\n")
    other = GrpcBackend()
    await other.start()
    try:
        assert 0 == await _redrive(tmp_path, other)
    finally:
        await other.stop()

    assert {span[0] for span in _SPANS} == {*spans_and_verdicts(other.requests)[0]}
    assert b"written since\n" == file.read_bytes()
