"""Verdicts as scores: what is sent, that a repeat overwrites, and what becomes of what is not taken."""

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from collector.clock import ManualClock, SystemClock
from collector.errors import ContentRefusedError, ExportError, PermanentExportError, RetryableExportError
from collector.exporters import FanOut, build_fan_out, exporter_types, redrive_file
from collector.exporters.exporter import ACCEPTED, ExporterContext, ExportResponse, SpanExporter
from collector.exporters.score_exporter import Score, ScoreExporterConfig, read_scores
from collector.memory_limiter import MemoryLimiter
from collector.otlp import join_spans, logs_request_to_json
from collector.results_config import ResultsConfig
from collector.telemetry import Metrics
from collector.trace import GradedTrace
from processors.annotation import result_records
from processors.model import AgentIdentity, AgentRun, EvaluationResult, JsonObject
from tests.support.backends import eventually
from tests.support.graded_spans import BROKEN, FAILED_CALL, NOT_EVALUATED, PASSED, RUN, SPANS
from tests.support.json_schema import mismatches
from tests.support.score_backend import Call, ScoreBackend, takes_all

LANGFUSE = json.loads((Path(__file__).parents[2] / "data" / "langfuse" / "ingestion.schema.json").read_text())
KEYS = {"public_key": "pk-1", "secret_key": "sk-1"}
TYPES = [("phoenix_annotations", {}), ("mlflow_assessments", {}), ("langfuse_scores", KEYS)]
KNOWN_RUN = replace(
    RUN, agent=AgentIdentity(name="planner", id="a1", version="7"), session="s1", tenant="north"
)
ALL = [PASSED, FAILED_CALL, BROKEN, NOT_EVALUATED]


def request_of(
    results: Sequence[EvaluationResult] = ALL, run: AgentRun = KNOWN_RUN, instance: str = "i", at: int = 7
) -> bytes:
    return join_spans(result_records(SPANS, [(run, results)], time_unix_nano=at, instance=instance))


def scores_of(**given: Any) -> list[Score]:
    return read_scores(request_of(**given))


def exporter_of(kind: str, endpoint: str, clock: ManualClock, **settings: object) -> SpanExporter:
    component = exporter_types()[kind]
    assert component.kind == "scores"
    config = component.config_model.model_validate({"endpoint": endpoint, **settings})
    return component.create(kind, config, ExporterContext(clock=clock, metrics=Metrics(), console=StringIO()))


async def export(exporter: SpanExporter, request: bytes) -> ExportResponse:
    await exporter.start()
    try:
        return await exporter.export(request, 4)
    finally:
        await exporter.shutdown(0)


def test_a_score_says_what_the_verdict_says_and_whose_it_is() -> None:
    of_run = next(score for score in scores_of() if score.name == "order")

    assert (RUN.trace_id.hex(), "0000000000000001", 1.0, "pass", "lcs: a, b", 7) == (
        of_run.trace_id,
        of_run.span_id,
        of_run.value,
        of_run.label,
        of_run.explanation,
        of_run.time_unix_nano,
    )
    expected = {
        "gen_ai.agent.name": "planner",
        "gen_ai.agent.id": "a1",
        "gen_ai.agent.version": "7",
        "gen_ai.conversation.id": "s1",
        "tracegrade.tenant": "north",
        "tracegrade.severity": "page",
        "tracegrade.finish_reason": "root_incomplete",
        "resource": {"service.name": "demo"},
    }
    assert expected.items() <= dict(of_run.facts).items()


def test_a_verdict_on_a_call_is_of_the_calls_span_and_one_without_a_score_has_no_value() -> None:
    told = {score.name: (score.span_id[-1], score.value, score.label) for score in scores_of()}

    assert {
        "order": ("1", 1.0, "pass"),
        "args": ("2", 0.25, "fail"),
        "own": ("1", None, "error"),
        "output": ("1", None, "not_evaluated"),
    } == told


def test_the_id_is_that_of_the_verdict_whoever_tells_it_and_however_it_ends() -> None:
    (once,) = scores_of(results=[PASSED])
    (again,) = scores_of(
        results=[structs.replace(PASSED, score=0.0, explanation="other", criteria_hash="x")],
        instance="j",
        at=99,
    )

    assert once.id == again.id


@pytest.mark.parametrize(
    "other",
    [
        {"results": [structs.replace(PASSED, name="other")]},
        {"results": [structs.replace(PASSED, tool_call_id="c2")]},
        {"run": replace(KNOWN_RUN, agent=AgentIdentity(name="other"))},
        {"run": replace(KNOWN_RUN, tenant="south")},
        {"run": replace(KNOWN_RUN, trace_id=bytes(16))},
    ],
    ids=["evaluation", "call", "agent", "tenant", "trace"],
)
def test_verdicts_on_different_things_have_different_ids(other: dict[str, Any]) -> None:
    (one,) = scores_of(results=[PASSED])
    (two,) = scores_of(**{"results": [PASSED], **other})

    assert one.id != two.id


@pytest.mark.parametrize(("kind", "settings"), TYPES)
@pytest.mark.parametrize(
    ("status", "expected"),
    [(status, RetryableExportError) for status in (429, 500, 502, 503, 504)]
    + [(status, PermanentExportError) for status in (301, 401, 403, 404)],
)
async def test_an_answer_is_final_or_not_and_told_without_credentials(
    kind: str, settings: dict[str, object], status: int, expected: type[ExportError]
) -> None:
    async with ScoreBackend(lambda call: (status, {"error": "because"})) as backend:
        exporter = exporter_of(kind, backend.endpoint, ManualClock(), **settings)

        with pytest.raises(expected, match=f"HTTP {status}: .*because") as raised:
            await export(exporter, request_of())

    assert "sk-1" not in str(raised.value)
    assert isinstance(raised.value, RetryableExportError) == (expected is RetryableExportError)


@pytest.mark.parametrize(("kind", "settings"), TYPES)
async def test_headers_are_sent_and_a_server_that_is_down_is_asked_again(
    kind: str, settings: dict[str, object]
) -> None:
    async with ScoreBackend(takes_all) as backend:
        endpoint = f"{backend.endpoint}/behind/a/proxy"
        exporter = exporter_of(kind, endpoint, ManualClock(), headers={"x-team": "weather"}, **settings)
        assert ACCEPTED == await export(exporter, request_of())

    assert {"weather"} == {call.headers["x-team"] for call in backend.calls}
    assert all(call.path.startswith("/behind/a/proxy/") for call in backend.calls)
    with pytest.raises(RetryableExportError):
        await export(exporter, request_of())


@pytest.mark.parametrize("kind", ["phoenix_annotations", "mlflow_assessments"])
async def test_scores_of_unknown_spans_are_sent_again_alone_and_given_up_after_the_wait(kind: str) -> None:
    known: set[str] = set()

    def answer(call: Call) -> tuple[int, JsonObject]:
        if kind == "mlflow_assessments":
            is_there = RUN.trace_id.hex() in known
            return (200, {}) if is_there else (404, {"error_code": "RESOURCE_DOES_NOT_EXIST"})
        data = call.body["data"]
        assert isinstance(data, list)
        asked = {str(item["span_id"]) for item in data if isinstance(item, dict)}
        missing = ", ".join(sorted(asked - known))
        return (404, {"detail": f"Spans with IDs {missing} do not exist."}) if missing else (200, {})

    clock = ManualClock()
    async with ScoreBackend(answer) as backend:
        exporter = exporter_of(kind, backend.endpoint, clock, span_wait="10s")
        await exporter.start()
        with pytest.raises(RetryableExportError, match="4 scores are of spans") as raised:
            await exporter.export(request_of(), 4)
        assert raised.value.retry_after_seconds is not None

        known.update({"0000000000000001", RUN.trace_id.hex()})
        if kind == "mlflow_assessments":
            assert ACCEPTED == await exporter.export(request_of(), 4)
        else:
            with pytest.raises(RetryableExportError, match="1 scores"):
                await exporter.export(request_of(), 4)
            backend.calls.clear()
            clock.advance(11)
            given_up = await exporter.export(request_of(), 4)
            assert (1, "1 scores are of spans that never arrived.") == (
                given_up.rejected_spans,
                given_up.message,
            )
            (call,) = backend.calls
            data = call.body["data"]
            assert isinstance(data, list)
            assert ["args"] == [item["name"] for item in data if isinstance(item, dict)]

        known.add("0000000000000002")
        assert ACCEPTED == await exporter.export(request_of(), 4)  # nothing is remembered of the first
        await exporter.shutdown(0)


async def test_phoenix_gets_one_request_with_an_identifier_for_each_verdict() -> None:
    async with ScoreBackend(takes_all) as backend:
        await export(exporter_of("phoenix_annotations", backend.endpoint, ManualClock()), request_of())

    (call,) = backend.calls
    data = call.body["data"]
    assert isinstance(data, list)
    assert ("POST", "/v1/span_annotations?sync=true") == (call.method, call.path)
    identifiers = {item["identifier"] for item in data if isinstance(item, dict)}
    assert {f"tracegrade:{score.id}" for score in scores_of()} == identifiers


async def test_content_that_phoenix_refuses_is_told_to_be_such() -> None:
    async with ScoreBackend(lambda call: (422, {"detail": "invalid"})) as backend:
        with pytest.raises(ContentRefusedError):
            await export(exporter_of("phoenix_annotations", backend.endpoint, ManualClock()), request_of())


async def test_mlflow_writes_over_what_is_there_and_takes_away_what_holds_no_longer() -> None:
    (known,) = scores_of(results=[PASSED])
    there: JsonObject = {
        "assessment_id": "a-1",
        "metadata": {"tracegrade.verdict.id": known.id, "tracegrade.muted": "true"},
    }

    def answer(call: Call) -> tuple[int, JsonObject]:
        return 200, {"trace": {"trace_info": {"assessments": [there, {"assessment_id": "of people"}]}}}

    async with ScoreBackend(answer) as backend:
        exporter = exporter_of("mlflow_assessments", backend.endpoint, ManualClock())
        await export(exporter, request_of(results=[PASSED, NOT_EVALUATED]))

    read, changed, added = sorted(backend.calls, key=lambda call: ["GET", "PATCH", "POST"].index(call.method))
    trace = f"/api/3.0/mlflow/traces/tr-{RUN.trace_id.hex()}"
    assert [trace, f"{trace}/assessments/a-1", f"{trace}/assessments"] == [
        read.path,
        changed.path,
        added.path,
    ]
    assessment, new = changed.body["assessment"], added.body["assessment"]
    assert isinstance(assessment, dict)
    assert isinstance(new, dict)
    metadata = assessment["metadata"]
    assert isinstance(metadata, dict)
    assert ("", "pass") == (metadata["tracegrade.muted"], metadata["tracegrade.outcome"])
    assert {"value": 1.0} == assessment["feedback"]
    assert {"error": {"error_code": "NOT_EVALUATED", "error_message": ""}} == new["feedback"]


async def test_mlflow_drops_the_one_assessment_that_it_refuses() -> None:
    def answer(call: Call) -> tuple[int, JsonObject]:
        assessment = call.body.get("assessment")
        is_bad = isinstance(assessment, dict) and assessment["assessment_name"] == "args"
        return (400, {"message": "no"}) if is_bad else (200, {})

    async with ScoreBackend(answer) as backend:
        answered = await export(
            exporter_of("mlflow_assessments", backend.endpoint, ManualClock()), request_of()
        )

    assert 1 == answered.rejected_spans
    assert "HTTP 400" in answered.message


async def test_langfuse_gets_a_batch_as_its_definition_says() -> None:
    async with ScoreBackend(takes_all) as backend:
        exporter = exporter_of("langfuse_scores", backend.endpoint, ManualClock(), **KEYS)
        assert ACCEPTED == await export(exporter, request_of())

    (call,) = backend.calls
    assert ("POST", "/api/public/ingestion") == (call.method, call.path)
    assert f"Basic {base64.b64encode(b'pk-1:sk-1').decode()}" == call.headers["Authorization"]
    assert [] == mismatches(call.body, LANGFUSE, LANGFUSE)
    assert {
        "order": (1.0, "NUMERIC"),
        "args": (0.25, "NUMERIC"),
        "own": ("error", "CATEGORICAL"),
        "output": ("not_evaluated", "CATEGORICAL"),
    } == {body["name"]: (body["value"], body["dataType"]) for body in bodies_of(call)}
    assert {score.id for score in scores_of()} == {body["id"] for body in bodies_of(call)}


def bodies_of(call: Call) -> list[JsonObject]:
    batch = call.body["batch"]
    assert isinstance(batch, list)
    return [event["body"] for event in batch if isinstance(event, dict) and isinstance(event["body"], dict)]


async def test_a_score_in_langfuse_keeps_its_id_in_events_of_their_own() -> None:
    async with ScoreBackend(takes_all) as backend:
        for at in (7, 7, 8):
            exporter = exporter_of("langfuse_scores", backend.endpoint, ManualClock(), **KEYS)
            await export(exporter, request_of(results=[PASSED], at=at))

    events = [event for call in backend.calls for event in _events(call)]
    assert 1 == len({body["id"] for call in backend.calls for body in bodies_of(call)})
    assert events[0]["id"] == events[1]["id"] != events[2]["id"]
    assert {"1970-01-01T00:00:00.100Z"} == {event["timestamp"] for event in events}  # when the run ended


def _events(call: Call) -> list[Mapping[str, Any]]:
    batch = call.body["batch"]
    assert isinstance(batch, list)
    return [event for event in batch if isinstance(event, dict)]


@pytest.mark.parametrize(("status", "is_final"), [(400, True), (404, True), (429, False), (500, False)])
async def test_langfuse_says_of_each_score_whether_it_was_taken(status: int, is_final: bool) -> None:
    refused: JsonObject = {"successes": [], "errors": [{"id": "x", "status": status, "message": "bad"}]}
    async with ScoreBackend(lambda call: (207, refused)) as backend:
        exporter = exporter_of("langfuse_scores", backend.endpoint, ManualClock(), **KEYS)
        if is_final:
            answered = await export(exporter, request_of())
            assert 1 == answered.rejected_spans
            assert "bad" in answered.message
        else:
            with pytest.raises(RetryableExportError, match="bad"):
                await export(exporter, request_of())


class _Rig:
    """A service's exporters, as its configuration has them."""

    def __init__(self, settings: Mapping[str, dict[str, object]], **results: object) -> None:
        self.metrics = Metrics()
        configs = {
            name: exporter_types()[name].config_model.model_validate(config)
            for name, config in settings.items()
        }
        self.fan_out: FanOut = build_fan_out(
            configs,
            ResultsConfig.model_validate(results),
            ExporterContext(clock=SystemClock(), metrics=self.metrics, console=StringIO()),
            MemoryLimiter(1_000_000),
            end_of_spans="prometheus",
        )

    def grade(self) -> None:
        records = result_records(SPANS, [(KNOWN_RUN, ALL)], time_unix_nano=7, instance="i")
        self.fan_out.export(GradedTrace(trace_id=RUN.trace_id, spans=SPANS, log_records=records), 0)


async def test_scores_leave_whatever_forms_results_have_and_are_counted_as_such() -> None:
    failures = [503]

    def answer(call: Call) -> tuple[int, JsonObject]:
        return (failures.pop(), {}) if failures else takes_all(call)

    async with ScoreBackend(answer) as backend:
        fast = {"batch": {"flush_timeout": "5ms"}}
        rig = _Rig(
            {
                "phoenix_annotations": {
                    "endpoint": backend.endpoint,
                    "sending_queue": fast,
                    "retry_on_failure": {"initial_interval": "10ms"},
                }
            },
            emit=["span_event"],
        )
        await rig.fan_out.start()
        rig.grade()
        await eventually(
            lambda: rig.metrics.results_exported.value("phoenix_annotations", "score") == 4, "scores"
        )
        await rig.fan_out.shutdown(SystemClock().monotonic() + 5)

    assert 2 == len(backend.calls)
    assert 0 == rig.metrics.results_exported.value("phoenix_annotations", "log")


async def test_a_server_that_never_answers_costs_scores_and_nothing_else() -> None:
    async with ScoreBackend(lambda call: (503, {})) as backend:
        rig = _Rig({"phoenix_annotations": {"endpoint": backend.endpoint}})
        await rig.fan_out.start()
        rig.grade()
        await asyncio.sleep(0)
        await rig.fan_out.shutdown(SystemClock().monotonic() + 0.2)

    assert 4 == rig.metrics.results_dropped.value("shutdown", "phoenix_annotations")
    assert len(SPANS) == rig.metrics.spans_forwarded.value("prometheus")


async def test_scores_that_were_refused_can_be_sent_again(tmp_path: Path) -> None:
    letters = tmp_path / "dead.jsonl"
    letters.write_bytes(logs_request_to_json(request_of()) + b"\n")
    async with ScoreBackend(takes_all) as backend:
        config = exporter_types()["phoenix_annotations"].config_model.model_validate(
            {"endpoint": backend.endpoint}
        )
        context = ExporterContext(clock=SystemClock(), metrics=Metrics(), console=StringIO())
        outcome = await redrive_file(letters, "phoenix_annotations", config, context, patience_seconds=1)

    assert (1, 0) == (outcome.sent, outcome.kept)
    (call,) = backend.calls
    data = call.body["data"]
    assert isinstance(data, list)
    assert len(ALL) == len(data)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("phoenix_annotations", {}, "endpoint"),
        ("phoenix_annotations", {"endpoint": "phoenix:6006"}, "expected a URL such as"),
        ("phoenix_annotations", {"endpoint": "http://p", "delivery": "required"}, "delivery"),
        ("mlflow_assessments", {"endpoint": "http://m", "experiment": "x"}, "experiment"),
        ("langfuse_scores", {"endpoint": "http://l"}, "public_key"),
        ("langfuse_scores", {"endpoint": "http://l", "public_key": "", "secret_key": "s"}, "printable"),
    ],
)
def test_a_mistake_in_the_settings_is_named(kind: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exporter_types()[kind].config_model.model_validate(settings)


def test_keys_are_secrets() -> None:
    model = exporter_types()["langfuse_scores"].config_model
    config = model.model_validate({"endpoint": "http://l", **KEYS})

    assert isinstance(config, ScoreExporterConfig)
    assert "sk-1" not in repr(config) + config.model_dump_json()
