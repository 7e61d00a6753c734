"""Recordings of real frameworks: a run's tokens are what its own model spans say, added up by other means.

The sums here are made from the decoded requests alone: which span is a request to a model, and which one is
an agent's, is told by the names that each framework gives them, and whose a request is by the nearest agent
above it.
"""

from typing import NamedTuple

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.otlp.codec import split_request
from processors.model import AgentRun, FinishReason
from processors.reconstruction.passes import reconstruct
from processors.spans import RawSpan
from tests.support.corpus import CORPUS


class RunReport(NamedTuple):
    """How one framework tells usage."""

    request: tuple[str, ...]
    """What the names of spans of model requests begin with."""
    agent: tuple[str, ...]
    tokens: tuple[str, str]
    model: str
    totals: tuple[str, str] | None = None
    """The attributes of an agent's span with its totals."""


_GENAI = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
_AGGREGATED = ("gen_ai.aggregated_usage.input_tokens", "gen_ai.aggregated_usage.output_tokens")
_OPENINFERENCE = ("llm.token_count.prompt", "llm.token_count.completion")
_AI = ("ai.usage.inputTokens", "ai.usage.outputTokens")
_AI_SDK = RunReport(
    ("ai.generateText.do", "ai.streamText.do"),
    ("ai.generateText", "ai.streamText"),
    _AI,
    "ai.response.model",
    _AI,
)
TELLING = {
    "agent-framework": RunReport(("chat ",), ("invoke_agent ",), _GENAI, "gen_ai.response.model", _GENAI),
    "ai-sdk-6": _AI_SDK,
    "ai-sdk-7": RunReport(("chat ",), ("invoke_agent ",), _GENAI, "gen_ai.response.model", _GENAI),
    "ai-sdk-7-legacy": _AI_SDK,
    "openinference_langchain": RunReport(
        ("ChatOpenAI",), ("weather_agent",), _OPENINFERENCE, "llm.model_name"
    ),
    "openinference_openai_agents": RunReport(
        ("response",), ("weather_agent",), _OPENINFERENCE, "llm.model_name"
    ),
    "pydantic_ai": RunReport(("chat ",), ("invoke_agent ",), _GENAI, "gen_ai.response.model", _AGGREGATED),
}
SILENT = ("agentscope", "autogen", "uipath_style")
"""Frameworks whose recordings hold no tokens."""


class Sum(NamedTuple):
    """What one agent's requests used."""

    requests: int
    input_tokens: int
    output_tokens: int
    models: tuple[str, ...]


def _scenarios(frameworks: tuple[str, ...]) -> list[str]:
    return [f"{name}/{folder.name}" for name in frameworks for folder in sorted((CORPUS / name).iterdir())]


def _runs(scenario: str) -> list[AgentRun]:
    traces: dict[bytes, list[RawSpan]] = {}
    for path in sorted((CORPUS / scenario).glob("*.binpb")):
        for trace_id, spans in split_request(path.read_bytes()).traces.items():
            traces.setdefault(trace_id, []).extend(spans)
    return [
        run
        for trace_id, spans in traces.items()
        for run in reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)
    ]


def _spans(scenario: str) -> dict[bytes, Span]:
    found: dict[bytes, Span] = {}
    for path in sorted((CORPUS / scenario).glob("*.binpb")):
        for resource in ExportTraceServiceRequest.FromString(path.read_bytes()).resource_spans:
            for scope in resource.scope_spans:
                found |= {span.span_id: span for span in scope.spans}
    return found


def _number(span: Span, key: str) -> int | None:
    return next((one.value.int_value for one in span.attributes if one.key == key), None)


def _text(span: Span, key: str) -> str:
    return next((one.value.string_value for one in span.attributes if one.key == key), "")


def _is_agent(span: Span, told: RunReport) -> bool:
    return span.name.startswith(told.agent) and not span.name.startswith(told.request)


def _sums(scenario: str) -> dict[bytes, Sum]:
    """For the id of every agent's span with requests: what they used."""
    told = TELLING[scenario.partition("/")[0]]
    spans = _spans(scenario)
    sums: dict[bytes, Sum] = {}
    for span in sorted(spans.values(), key=lambda span: span.start_time_unix_nano):
        if not span.name.startswith(told.request):
            continue
        above = span
        while not _is_agent(above, told):
            above = spans[above.parent_span_id]
        known = sums.get(above.span_id, Sum(0, 0, 0, ()))
        model = _text(span, told.model)
        sums[above.span_id] = Sum(
            known.requests + 1,
            known.input_tokens + (_number(span, told.tokens[0]) or 0),
            known.output_tokens + (_number(span, told.tokens[1]) or 0),
            known.models if model in known.models else (*known.models, model),
        )
    return sums


@pytest.mark.parametrize("scenario", _scenarios(tuple(TELLING)))
def test_tokens_of_a_run_are_the_sum_of_its_model_spans(scenario: str) -> None:
    runs = [run for run in _runs(scenario) if run.model_calls]

    found = sorted(
        Sum(len(run.model_calls), run.usage.input_tokens, run.usage.output_tokens, tuple(run.models))
        for run in runs
        if run.usage is not None
    )
    assert sorted(_sums(scenario).values()) == found
    assert len(runs) == len(found)


@pytest.mark.parametrize(
    "scenario", _scenarios(tuple(name for name, told in TELLING.items() if told.totals is not None))
)
def test_agents_that_tell_a_total_tell_the_same(scenario: str) -> None:
    told = TELLING[scenario.partition("/")[0]]
    assert told.totals is not None
    spans = _spans(scenario)
    compared = 0
    for span_id, found in _sums(scenario).items():
        total = _number(spans[span_id], told.totals[0]), _number(spans[span_id], told.totals[1])
        if total != (None, None):
            compared += 1
            assert (found.input_tokens, found.output_tokens) == total
    assert compared


@pytest.mark.parametrize("scenario", _scenarios(SILENT))
def test_where_no_span_tells_tokens_none_are_known(scenario: str) -> None:
    runs = _runs(scenario)

    assert runs
    for run in runs:
        assert run.usage is None
        assert run.cost is None
        assert all(call.usage is None for call in run.model_calls)


@pytest.mark.parametrize("scenario", _scenarios((*TELLING, *SILENT)))
def test_a_run_takes_as_long_as_its_span_and_no_call_takes_longer(scenario: str) -> None:
    spans = _spans(scenario)
    for run in _runs(scenario):
        assert run.span_id is not None
        span = spans[run.span_id]
        assert (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9 == run.duration_seconds
        durations = [call.duration_seconds for call in run.tool_calls]
        durations += [call.duration_seconds for call in run.model_calls]
        assert all(seconds is None or 0 <= seconds <= run.duration_seconds for seconds in durations)
