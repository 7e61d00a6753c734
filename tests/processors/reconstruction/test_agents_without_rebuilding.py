"""The agents of traces that must not be rebuilt, beside those that rebuilding finds."""

from pathlib import Path

import pytest

from collector.otlp.codec import split_request
from processors.model.finish_reason import FinishReason
from processors.reconstruction.agents_without_rebuilding import reported_agents
from processors.reconstruction.passes import reconstruct, span_reader
from processors.spans.span import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, tool
from tests.support.corpus import CORPUS

RECORDINGS = sorted({path.parent for path in CORPUS.parent.rglob("*.binpb")})
NAMED_BY_THEIR_PLACE = {
    "claude_agent_sdk_sub_agent",  # by the call that started it
    "claude_code_sub_agent",  # the same
    "crewai_coworker",  # by the step below another agent's call
    "gemini_cli",  # whose model's turns are traces without a run
    "llama_index_observability",
    "langsmith_sdk",  # by its outermost chain
    "llama_index_mcp_failed",  # by a step of its workflow
    "llama_index_openinference",  # by a step of its workflow
    "spring_ai_java_agent",  # by its service, as calls without an agent are
}


def traces_in(folder: Path) -> dict[bytes, list[RawSpan]]:
    traces: dict[bytes, list[RawSpan]] = {}
    for path in sorted(folder.glob("*.binpb")):
        for trace_id, spans in split_request(path.read_bytes()).traces.items():
            traces.setdefault(trace_id, []).extend(spans)
    return traces


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_recorded_agents_are_known_by_what_their_spans_say(folder: Path) -> None:
    differ = False
    for trace_id, spans in traces_in(folder).items():
        rebuilt = reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)
        told = reported_agents(spans, trace_id=trace_id, reason=FinishReason.ROOT, reader=span_reader())

        names = [run.agent.name for run in told]
        assert len(set(names)) == len(names)
        differ |= {run.agent.name for run in rebuilt} != set(names)
    assert (folder.name in NAMED_BY_THEIR_PLACE) is differ


def test_an_agent_is_told_once_by_its_first_span_and_nothing_else_of_it() -> None:
    shop = agent(1, None, "shop", (0, 500))
    spans = [
        agent(4, 1, "clerk", (300, 400)),
        tool(5, 4, "refund"),
        agent(2, 1, "clerk", (100, 200)),
        shop,
        (bytes(8), b"\xff", shop[2]),  # no span at all
    ]

    runs = reported_agents(
        spans, trace_id=TRACE_ID, reason=FinishReason.IDLE, tenant="acme", reader=span_reader()
    )

    assert [("shop", 1), ("clerk", 2)] == [
        (run.agent.name, int.from_bytes(run.carrier_span_id or b"")) for run in runs
    ]
    for run in runs:
        assert (FinishReason.IDLE, "acme", False) == (run.finish_reason, run.tenant, run.complete)
        assert not run.tool_calls
