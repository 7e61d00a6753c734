"""Nothing of what `results.content` and `results.redact` hide leaves in any form of a verdict.

Spans whose every text holds a marker go through the real service, with every form of a verdict switched on
and evaluations that quote what they see. Spans that are forwarded keep every byte.
"""

import json
import re
import sqlite3
import zlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import yaml

from collector.cli import run_command
from collector.otlp import join_spans, split_request
from processors.annotation.evaluation_span import SCOPE_NAME
from processors.model import JsonObject, JsonValue
from processors.spans import RawSpan
from tests.support.agent_spans import MILLISECOND, envelope, span
from tests.support.backends import GrpcBackend, eventually
from tests.support.held_spans import START_UNIX_NANO
from tests.support.otlp_senders import GrpcSender
from tests.support.service_in_loop import ServiceInLoop

pytestmark = pytest.mark.end_to_end

_EMAIL = "mark.{}@secret-corp.example"
_START = START_UNIX_NANO // MILLISECOND
_CARD = 4111_1111_1111_1111
_REDACT: list[JsonValue] = [
    r"[\w.+-]+@[\w-]+\.[\w.-]+",
    r"\b4111[ -]?(?:\d{4}[ -]?){3}\b",
    r'"password":\s*"[^"]*"',
]


def _email(place: str) -> str:
    return _EMAIL.format(place)


def _spans(service: str = "shop") -> list[RawSpan]:
    """A run with a marker in each place that can hold content; those like `_EMAIL` are to be redacted."""
    of = envelope(service)
    # A long text lets whoever quotes it cut it off, in the middle of a marker.
    long = "".join(f"plainmarker{number} {_email(f'long{number}')}, " for number in range(200))

    def message(role: str, place: str, more: str = "") -> str:
        parts: JsonValue = [{"type": "text", "content": f"plainmarker {place} {_email(place)}{more}"}]
        return json.dumps([{"role": role, "parts": parts}])

    agent: JsonObject = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "planner",
        "gen_ai.conversation.id": f"session-{_email('session')}",
        "gen_ai.input.messages": message("user", "input", long),
        "gen_ai.output.messages": message("assistant", "output"),
        "gen_ai.system_instructions": json.dumps(
            [{"type": "text", "content": f"plainmarker {_email('sys')}"}]
        ),
        "gen_ai.tool.definitions": json.dumps(
            [{"type": "function", "name": "send_mail",
              "parameters": {"type": "object", "description": f"plainmarker {_email('schema')}"}}]
        ),
        "customer.note": f"plainmarker {_email('attribute')}",
        "customer.card": _CARD,
    }  # fmt: skip

    raised: JsonObject = {
        "exception.type": "plainmarkerError",
        "exception.message": f"plainmarker {_email('exception')}",
    }

    def tool(number: int, name: str, arguments: JsonValue, result: JsonValue, **more: JsonValue) -> RawSpan:
        return span(
            number, 1, f"execute_tool {name}",
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name,
             "gen_ai.tool.call.id": f"call_{number}", "gen_ai.tool.call.arguments": arguments,
             "gen_ai.tool.call.result": result, **more},
            at=(_START + 10 * number, _START + 10 * number + 5),
            status=(2, f"plainmarker {_email('status')}") if more else (0, ""),
            events=[("exception", raised)] if more else (),
            of=of,
        )  # fmt: skip

    return [
        tool(2, "send_mail",
             json.dumps({"to": _email("argument"), "text": f"plainmarker {long}", "card": _CARD,
                         "password": "plainmarkerhunter2", _email("key"): 1}),
             json.dumps({"sent": [_email("result")], "note": "plainmarker"})),
        # What the text does not show, since it is escaped, is hidden as well.
        tool(3, "send_mail", '{"to": "mark.escaped\\u0040secret-corp.example"}',
             f"plainmarker {_email('text')}"),
        tool(4, "charge", f"plainmarker no json {_email('raw')} 4111 1111 1111 1111", "",
             **{"error.type": f"plainmarker_{_email('error')}"}),
        span(1, None, "invoke_agent planner", agent, at=(_START, _START + 100), of=of),
    ]  # fmt: skip


def _criteria() -> str:
    wanted: list[JsonValue] = [{"name": "send_mail", "args": {"to": "nobody@else.where"}}]
    evaluations: list[JsonObject] = [
        {"evaluator": "tool-call-args", "criteria": {"tool_calls": [*wanted]}},
        {"evaluator": "tool-call-output",
         "criteria": {"tool_outputs": [{"name": "send_mail", "output": "x"}]}},
        {"evaluator": "trajectory-exact", "criteria": {"tool_calls": [*wanted]}},
        {"evaluator": "exact-match", "criteria": {"expected_output": "something else"}},
        {"evaluator": "contains", "criteria": {"search_text": "nowhere"}},
        {"evaluator": "json-similarity", "criteria": {"expected_output": {"a": "b"}}},
        {"evaluator": "binary-classification", "config": {"positive_class": "x"},
         "criteria": {"expected_class": "x"}},
        {"evaluator": "tool-args-grounded"},
        {"evaluator": "tool-response-handling", "config": {"gating": ["RH1", "RH3", "RH4", "RH7"]}},
        {"evaluator": "tool-error-recovery"},
        {"evaluator": "duplicate-side-effect", "criteria": {"tools": ["send_mail"]}},
    ]  # fmt: skip
    return yaml.safe_dump({"agents": {"*": {"evaluations": evaluations}}})


@dataclass
class _Outputs:
    """All that left the service, by form; `forwarded` are the spans with what was appended to each."""

    forms: dict[str, bytes]
    forwarded: list[tuple[bytes, bytes]]
    lines: list[JsonObject]


async def _outputs(folder: Path, results: JsonObject) -> _Outputs:
    (folder / "criteria.yaml").write_text(_criteria())
    backend = GrpcBackend()
    await backend.start()
    try:
        return await _served(folder, results, backend)
    finally:
        await backend.stop()


async def _served(folder: Path, results: JsonObject, backend: GrpcBackend) -> _Outputs:
    configuration = {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
        "processors": {"evaluation": {"criteria": [str(folder / "criteria.yaml")]}},
        "exporters": {
            "otlp": {"endpoint": backend.endpoint, "tls": {"insecure": True}},
            "file": {"path": str(folder / "spans.jsonl"), "logs_path": str(folder / "logs.jsonl")},
            "results_file": {"path": str(folder / "verdicts.runs.jsonl")},
            "debug": {},
        },
        "store": {"path": str(folder / "runs.db")},
        "results": {"emit": ["span_event", "log", "span"], "annotations": ["openinference"], **results},
        "service": {"telemetry": {"endpoint": "127.0.0.1:0", "self_check": {"enabled": False}}},
    }
    spans = _spans()
    service = ServiceInLoop(json.dumps(configuration), START_UNIX_NANO)
    async with service:
        async with GrpcSender(service.endpoints["grpc"]) as sender:
            assert "OK" == (await sender.send(join_spans(spans))).code
        await service.until(lambda samples: 4 == samples['tracegrade_spans_forwarded_total{exporter="otlp"}'])
        await eventually(lambda: bool(backend.log_requests), "log records")
        await _exposition(service.endpoints["telemetry"])
        await service.pass_time(20)  # series of classes are shown at 0 first
        metrics = await _exposition(service.endpoints["telemetry"])
    console = service.console.getvalue()
    sent = {span_id: payload for span_id, payload, _ in spans}
    forwarded: list[tuple[bytes, bytes]] = []
    verdict_spans = b""
    for request in backend.requests:
        for received in split_request(request).traces.values():
            for span_id, payload, of in received:
                if of.scope_name == SCOPE_NAME:
                    verdict_spans += payload + of.resource + of.scope
                else:
                    assert payload.startswith(sent.pop(span_id))
                    original = next(bytes_ for id_, bytes_, _ in spans if id_ == span_id)
                    forwarded.append((span_id, payload[len(original) :]))
    assert not sent, "every span is forwarded, byte for byte"
    lines = (folder / "verdicts.runs.jsonl").read_bytes()
    return _Outputs(
        {
            "appended to spans": b"".join(appended for _, appended in forwarded),
            "spans of verdicts": verdict_spans,
            "log records": b"".join(backend.log_requests) + (folder / "logs.jsonl").read_bytes(),
            "runs file": lines,
            "console": console.encode(),
            "store": _stored(folder / "runs.db"),
            "metrics": metrics.encode(),
        },
        forwarded,
        [json.loads(line) for line in lines.splitlines()],
    )


def _stored(path: Path) -> bytes:
    """All bytes of the store, and the lines that stand compressed in it."""
    with closing(sqlite3.connect(path)) as connection:
        lines = [zlib.decompress(line) for (line,) in connection.execute("SELECT line FROM lines")]
    assert 1 == len(lines)
    return path.read_bytes() + b"".join(lines)


async def _exposition(endpoint: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(f"http://{endpoint}/metrics") as response:
        return await response.text()


def _found(marker: str, outputs: _Outputs) -> dict[str, list[bytes]]:
    """Where a marker is, with what is around it."""
    pattern = re.compile(b".{0,40}(?:" + marker.encode() + b").{0,40}", re.IGNORECASE | re.DOTALL)
    return {form: found for form, data in outputs.forms.items() if (found := pattern.findall(data))}


async def test_full_shows_content_in_every_form(tmp_path: Path) -> None:
    outputs = await _outputs(tmp_path, {})

    assert {*outputs.forms} == {*_found("plainmarker|mark[.]", outputs)}


async def test_under_none_no_content_leaves_in_any_form(tmp_path: Path) -> None:
    outputs = await _outputs(tmp_path, {"content": "none"})

    assert {} == _found("plainmarker|mark[.](?!session)|4111", outputs)
    [run] = outputs.lines
    assert {"fail"} <= {str(result["outcome"]) for result in _members(run["evaluations"])}
    assert ["send_mail", "send_mail", "charge"] == [call["name"] for call in _members(run["tool_calls"])]


async def test_what_patterns_match_leaves_in_no_form_and_the_rest_does(tmp_path: Path) -> None:
    outputs = await _outputs(tmp_path, {"redact": _REDACT})

    # Three characters of a secret that was cut off are too many, two are not told from other words.
    assert {} == _found(r"mar(?=[^k])(?<=[ \"'(]mar)|mark[.]|secret-corp|@secret|4111|hunter2", outputs)
    assert {"appended to spans", "log records", "runs file", "console"} <= {*_found("plainmarker", outputs)}
    [run] = outputs.lines
    assert "[REDACTED]" in json.dumps(run["tool_calls"])
    assert "session-[REDACTED]" == run["session"] or "[REDACTED]" == run["session"]


async def test_redaction_reaches_the_resource_of_records_and_spans_of_verdicts(tmp_path: Path) -> None:
    outputs = await _outputs(tmp_path, {"redact": ["shop"]})

    assert {} == {form: found for form, found in _found("shop", outputs).items() if form != "metrics"}


@pytest.mark.parametrize("results", [{"content": "none"}, {"redact": _REDACT}])
async def test_replaying_a_line_without_its_content_says_fail_of_nothing_that_passed(
    tmp_path: Path, results: JsonObject, capsys: pytest.CaptureFixture[str]
) -> None:
    [served] = (await _outputs(tmp_path, results)).lines
    told = {str(result["name"]): result["outcome"] for result in _members(served["evaluations"])}
    lines = tmp_path / "verdicts.runs.jsonl"

    run_command(["replay", "--format", "json", "--criteria", str(tmp_path / "criteria.yaml"), str(lines)])

    [again] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for result in again["evaluations"]:
        assert result["outcome"] in (told[result["name"]], "not_evaluated"), result


def _members(value: JsonValue) -> list[JsonObject]:
    assert isinstance(value, list)
    return [member for member in value if isinstance(member, dict)]
