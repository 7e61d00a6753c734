"""A trace that is judged settled gives the verdicts that it gives when every span has come."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.otlp.codec import split_request
from processors.evaluate import evaluate_run
from processors.model.finish_reason import FinishReason
from processors.model.json_values import JsonValue
from processors.reconstruction.passes import reconstruct, span_reader
from processors.reconstruction.settled import settled_scopes
from processors.spans.span import RawSpan
from processors.spans.span_tree import SpanTree
from tests.processors.reconstruction.test_lost_spans import _criteria
from tests.support.agent_spans import TRACE_ID, agent, model, tool
from tests.support.corpus import CORPUS, recorded_requests

SETTLED = {
    "agent-framework": (10, 16),  # some keep the history at the provider
    "agentscope": (2, 2),
    "ai-sdk-6": (6, 8),
    "ai-sdk-7": (6, 8),
    "ai-sdk-7-legacy": (5, 5),
    "autogen": (0, 7),  # no messages
    "openinference_langchain": (4, 4),
    "openinference_openai_agents": (4, 4),
    "pydantic_ai": (4, 4),
    "uipath_style": (0, 4),  # no model turns
}
"""Of the recorded traces with agents: how many are settled when they are whole, and how many there are."""

REQUESTS_PAY = json.dumps(
    [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "pay", "arguments": {}}]}]
)
HISTORY = json.dumps(
    [
        {"role": "user", "parts": [{"type": "text", "content": "Pay."}]},
        *json.loads(REQUESTS_PAY),
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "paid"}]},
    ]
)
ANSWERS = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}])

AGENT = agent(1, None, "shop")
REQUESTING = model(2, 1, (1, 10), **{"gen_ai.output.messages": REQUESTS_PAY})
PAY = tool(3, 1, "pay", (11, 20), call_id="c1")
ANSWERING = model(4, 1, (21, 30), **{"gen_ai.input.messages": HISTORY, "gen_ai.output.messages": ANSWERS})


def is_settled(spans: Sequence[RawSpan]) -> bool:
    return settled_scopes(spans, span_reader()) is not None


@cache
def traces(framework: str) -> list[tuple[bytes, list[RawSpan]]]:
    found: dict[bytes, list[RawSpan]] = {}
    for body in recorded_requests(framework):
        for trace_id, spans in split_request(body).traces.items():
            found.setdefault(trace_id, []).extend(spans)
    return list(found.items())


def verdicts(trace_id: bytes, spans: Sequence[RawSpan]) -> list[object]:
    """The calls of every run by name, and the outcomes of its evaluations."""
    return [
        (
            run.span_id,
            sorted(Counter(call.name for call in run.tool_calls if call.executed).items()),
            [
                (result.name, result.outcome, result.score)
                for result in evaluate_run(run, _criteria().evaluations_for(run.agent.name))
            ],
        )
        for run in reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)
    ]


def without(spans: Sequence[RawSpan], left_out: set[int]) -> list[RawSpan]:
    """The spans without those at these positions of their tree, and what lies below them; roots stay."""
    tree = SpanTree(spans)
    gone: set[int] = set()
    for position in tree.top_down:
        parent = tree.parents[position]
        if parent in gone or (parent >= 0 and position in left_out):
            gone.add(position)
    ids = {tree.span_ids[position] for position in gone}
    return [span for span in spans if span[0] not in ids]


def test_every_framework_of_the_corpus_is_looked_at() -> None:
    assert SETTLED.keys() == {folder.name for folder in CORPUS.iterdir() if folder.is_dir()}


@pytest.mark.parametrize("framework", SETTLED)
def test_so_many_recorded_traces_are_settled_when_they_are_whole(framework: str) -> None:
    with_agents = [
        is_settled(spans)
        for trace_id, spans in traces(framework)
        if reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)
    ]

    assert SETTLED[framework] == (sum(with_agents), len(with_agents))


@pytest.mark.parametrize("framework", SETTLED)
def test_a_settled_trace_that_lacks_a_span_gives_the_verdicts_of_the_whole(framework: str) -> None:
    for trace_id, spans in traces(framework):
        whole = verdicts(trace_id, spans)
        for position in range(len(spans)):
            kept = without(spans, {position})
            if is_settled(kept):
                assert all(run in whole for run in verdicts(trace_id, kept))


@settings(deadline=None)
@given(st.data())
def test_a_settled_trace_that_lacks_spans_gives_the_verdicts_of_the_whole(data: st.DataObject) -> None:
    recorded = traces(data.draw(st.sampled_from(sorted(SETTLED))))
    trace_id, spans = recorded[data.draw(st.integers(0, len(recorded) - 1))]
    kept = without(spans, data.draw(st.sets(st.integers(0, len(spans) - 1), max_size=4)))

    if is_settled(kept):
        whole = verdicts(trace_id, spans)
        assert all(run in whole for run in verdicts(trace_id, kept))


@pytest.mark.parametrize("framework", SETTLED)
def test_the_runs_that_were_read_to_judge_are_those_that_are_graded(framework: str) -> None:
    for trace_id, spans in traces(framework):
        scopes = settled_scopes(spans, span_reader())
        if scopes is not None:
            graded = reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT, scopes=scopes)

            anew = reconstruct(spans, trace_id=trace_id, reason=FinishReason.ROOT)
            assert [(run.span_id, run.tool_calls, run.output) for run in anew] == [
                (run.span_id, run.tool_calls, run.output) for run in graded
            ]


def test_answered_with_every_call_here_is_settled_in_any_order() -> None:
    spans = [AGENT, REQUESTING, PAY, ANSWERING]

    assert is_settled(spans)
    assert is_settled(spans[::-1])
    asked = json.dumps(json.loads(HISTORY)[:1])
    only = {"gen_ai.input.messages": asked, "gen_ai.output.messages": ANSWERS}
    assert is_settled([AGENT, model(2, 1, (1, 10), **only)])


def test_a_turn_that_shows_no_history_may_have_others_before_it() -> None:
    assert not is_settled([AGENT, model(2, 1, (1, 10), **{"gen_ai.output.messages": ANSWERS})])


def _answer(*parts: JsonValue) -> str:
    return json.dumps([{"role": "assistant", "parts": list(parts)}])


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([], id="nothing"),
        pytest.param([AGENT], id="neither turns nor calls"),
        pytest.param([AGENT, PAY], id="no turns"),
        pytest.param([AGENT, REQUESTING], id="the call has not come"),
        pytest.param([AGENT, REQUESTING, PAY], id="the answer has not come"),
        pytest.param([AGENT, REQUESTING, ANSWERING], id="the call has a result and no span"),
        pytest.param([AGENT, PAY, ANSWERING], id="the turn that requested has not come"),
        pytest.param([AGENT, ANSWERING], id="neither the turn nor its call has come"),
        pytest.param([AGENT, REQUESTING, PAY, model(4, 1, (21, 30))], id="the last answer is not captured"),
        pytest.param([AGENT, model(2, 1, (1, 10)), PAY, ANSWERING], id="the first answer is not captured"),
        pytest.param(
            [AGENT, REQUESTING, PAY, ANSWERING, tool(5, 1, "log", (22, 23))], id="a call nobody requested"
        ),
        pytest.param(
            [
                AGENT,
                REQUESTING,
                PAY,
                model(4, 1, (21, 30), **{"gen_ai.output.messages": _answer({"type": "text", "content": ""})}),
            ],
            id="the last answer is empty",
        ),
        pytest.param(
            [
                AGENT,
                REQUESTING,
                PAY,
                model(4, 1, (21, 30), **{"gen_ai.output.messages": '[{"role": "assistant", "par'}),
            ],
            id="the last answer is cut off",
        ),
        pytest.param(
            [AGENT, REQUESTING, PAY, ANSWERING, agent(5, 1, "other", (12, 13))],
            id="another run shows nothing",
        ),
        pytest.param(
            [REQUESTING, PAY, ANSWERING],
            id="no span stands for the run",
        ),
    ],
)
def test_without_evidence_nothing_is_settled(spans: Sequence[RawSpan]) -> None:
    assert not is_settled(spans)


def test_the_graded_trace_is_the_same_when_it_is_interrupted() -> None:
    spans = [AGENT, REQUESTING, PAY, ANSWERING]
    scopes = settled_scopes(spans, span_reader())

    (run,) = reconstruct(spans, trace_id=TRACE_ID, reason=FinishReason.ROOT, interrupted=True, scopes=scopes)

    assert not run.complete
