"""The requests to models of a run: each counts once, whoever else tells of it, for the run that made it."""

import json

import pytest

from processors.model import AgentRun, FinishReason, JsonValue, ModelPrice, PriceTable, TokenUsage
from processors.reconstruction import reconstruct
from processors.spans import RawSpan
from tests.support.agent_spans import TRACE_ID, agent, envelope, runs_of, span, tool

CLIENT = envelope(scope="client")
FAILED = (2, "overloaded")


def used(given: int, made: int, model: str = "m") -> dict[str, JsonValue]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": model,
        "gen_ai.usage.input_tokens": given,
        "gen_ai.usage.output_tokens": made,
    }


def total(given: int, made: int) -> dict[str, JsonValue]:
    return {"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": made}


SILENT: dict[str, JsonValue] = {"gen_ai.operation.name": "chat"}


def chat(
    number: int,
    parent: int | None,
    at: tuple[int, int],
    fields: dict[str, JsonValue],
    *,
    by_client: bool = False,
    status: tuple[int, str] = (0, ""),
) -> RawSpan:
    of = CLIENT if by_client else envelope()
    return span(number, parent, "chat m", fields, at=at, of=of, status=status)


def only(spans: list[RawSpan]) -> AgentRun:
    (run,) = runs_of(spans)
    return run


def test_all_requests_are_added_up_with_their_parts() -> None:
    cached: dict[str, JsonValue] = {
        "gen_ai.usage.cache_read.input_tokens": 80,
        "gen_ai.usage.reasoning.output_tokens": 4,
    }
    run = only(
        [
            agent(1, None, "a"),
            chat(2, 1, (1, 10), used(100, 10, "small") | cached),
            tool(3, 1, "get", (11, 20)),
            chat(4, 1, (21, 30), used(200, 20, "large")),
        ]
    )

    assert TokenUsage(300, 30, 80, None, 4) == run.usage
    assert ["small", "large"] == list(run.models)
    assert [0.009, 0.009] == [call.duration_seconds for call in run.model_calls]


def test_a_request_that_failed_used_nothing() -> None:
    run = only(
        [
            agent(1, None, "a"),
            chat(2, 1, (1, 10), SILENT, status=FAILED),
            chat(3, 1, (11, 20), used(100, 10)),
        ]
    )

    assert TokenUsage(100, 10) == run.usage
    assert [True, False] == [call.failed for call in run.model_calls]


def test_a_request_that_does_not_tell_its_tokens_leaves_all_of_them_unknown() -> None:
    run = only([agent(1, None, "a"), chat(2, 1, (1, 10), SILENT), chat(3, 1, (11, 20), used(100, 10))])

    assert run.usage is None
    assert [None, TokenUsage(100, 10)] == [call.usage for call in run.model_calls]


def test_a_total_on_the_agents_span_counts_where_requests_do_not_tell_all() -> None:
    total: dict[str, JsonValue] = {"gen_ai.usage.input_tokens": 150, "gen_ai.usage.output_tokens": 15}
    turns = [chat(2, 1, (1, 10), SILENT), chat(3, 1, (11, 20), used(100, 10))]

    assert TokenUsage(150, 15) == only([agent(1, None, "a", (0, 100), **total), *turns]).usage
    assert TokenUsage(150, 15) == only([agent(1, None, "a", (0, 100), **total)]).usage
    too_small = {**total, "gen_ai.usage.input_tokens": 90}
    assert only([agent(1, None, "a", (0, 100), **too_small), *turns]).usage is None


def test_a_total_on_the_agents_span_is_not_added_to_its_parts() -> None:
    total: dict[str, JsonValue] = {"gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 90}

    run = only([agent(1, None, "a", (0, 100), **total), chat(2, 1, (1, 10), used(100, 10))])

    assert TokenUsage(100, 10) == run.usage


@pytest.mark.parametrize("outer", [used(100, 10), SILENT], ids=["both tell", "only the client tells"])
@pytest.mark.parametrize("parent", [2, 1], ids=["below", "beside"])
def test_the_clients_span_of_a_request_is_the_same_request(outer: dict[str, JsonValue], parent: int) -> None:
    spans = [
        agent(1, None, "a"),
        chat(2, 1, (1, 10), outer),
        chat(3, parent, (2, 9), used(100, 10), by_client=True),
    ]

    run = only(spans)

    assert TokenUsage(100, 10) == run.usage
    assert ["m"] == list(run.models)
    assert 1 == len(run.model_calls)


def test_a_frameworks_span_around_the_one_that_bears_the_messages_is_the_same_request() -> None:
    said: dict[str, JsonValue] = {
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": "Hi"}]}]
        )
    }
    run = only(
        [
            agent(1, None, "a"),
            chat(2, 1, (1, 10), used(100, 10)),
            chat(3, 2, (2, 9), SILENT | said, by_client=True),
        ]
    )

    assert TokenUsage(100, 10) == run.usage
    assert 1 == len(run.model_calls)


def test_tries_below_one_request_are_added_up_if_it_tells_nothing_itself() -> None:
    run = only(
        [
            agent(1, None, "a"),
            chat(2, 1, (1, 30), SILENT),
            chat(3, 2, (2, 9), used(100, 0), by_client=True),
            chat(4, 2, (10, 29), used(100, 10), by_client=True),
            chat(5, 4, (11, 28), used(100, 10), by_client=True),
        ]
    )

    assert TokenUsage(200, 10) == run.usage


def test_requests_of_a_tool_are_those_of_the_run_and_reports_of_one_count_once() -> None:
    run = only(
        [
            agent(1, None, "a"),
            chat(2, 1, (1, 10), used(100, 10)),
            tool(3, 1, "summarize", (11, 40)),
            chat(4, 3, (12, 30), used(1000, 50, "tiny")),
            chat(5, 3, (13, 29), used(1000, 50, "tiny"), by_client=True),
            chat(6, 4, (14, 28), used(1000, 50, "tiny")),
        ]
    )

    assert TokenUsage(1100, 60) == run.usage
    assert ["m", "tiny"] == list(run.models)
    assert 2 == len(run.model_calls)


def test_what_an_agent_within_used_is_its_own() -> None:
    total: dict[str, JsonValue] = {"gen_ai.usage.input_tokens": 1100, "gen_ai.usage.output_tokens": 60}
    spans = [
        agent(1, None, "planner", (0, 100), **total),
        chat(2, 1, (1, 10), used(100, 10)),
        tool(3, 1, "helper", (11, 40)),
        agent(4, 3, "helper", (12, 39)),
        chat(5, 4, (13, 30), used(1000, 50)),
    ]

    assert {"planner": TokenUsage(100, 10), "helper": TokenUsage(1000, 50)} == {
        run.agent.name: run.usage for run in runs_of(spans)
    }


def test_the_first_output_is_that_of_the_request_that_came_to_it_first() -> None:
    first: dict[str, JsonValue] = {"gen_ai.response.time_to_first_chunk": 0.004}
    run = only(
        [
            agent(1, None, "a", (5, 100)),
            chat(2, 1, (10, 20), used(1, 1)),
            chat(3, 1, (25, 40), used(1, 1) | first),
        ]
    )

    assert pytest.approx(0.024) == run.time_to_first_output_seconds
    assert [None, 0.004] == [call.time_to_first_output_seconds for call in run.model_calls]
    first_start, second_start = [call.start_unix_nano for call in run.model_calls]
    assert 15_000_000 == second_start - first_start
    assert 5_000_000 == first_start - run.start_unix_nano


def test_without_requests_nothing_is_known() -> None:
    run = only([agent(1, None, "a"), tool(2, 1, "get")])

    assert run.usage is None
    assert () == tuple(run.model_calls)
    assert () == tuple(run.models)
    assert run.time_to_first_output_seconds is None


def _cost(prices: dict[str, ModelPrice], *spans: RawSpan) -> float | None:
    (run,) = reconstruct(spans, trace_id=TRACE_ID, reason=FinishReason.ROOT, prices=PriceTable(prices))
    return run.cost


def test_each_request_costs_what_its_model_does() -> None:
    spans = [
        agent(1, None, "a"),
        chat(2, 1, (1, 10), used(1_000_000, 500_000, "small-1") | {"gen_ai.usage.cached_tokens": 400_000}),
        chat(3, 1, (11, 20), used(100_000, 0, "large")),
    ]
    prices = {
        "*": ModelPrice(input=99, output=99),
        "large": ModelPrice(input=10, output=30),
        "small-*": ModelPrice(input=1, output=4, cached_input=0.25),
    }

    assert pytest.approx(0.6 + 0.1 + 2 + 1) == _cost(prices, *spans)
    assert _cost({"large": prices["large"]}, *spans) is None


def test_a_total_costs_what_the_only_model_does() -> None:
    total: dict[str, JsonValue] = {"gen_ai.usage.input_tokens": 1_000_000, "gen_ai.usage.output_tokens": 0}
    prices = {"m": ModelPrice(input=2, output=4)}

    named = agent(1, None, "a", (0, 100), **total, **{"gen_ai.request.model": "m"})

    assert 2 == _cost(prices, named)
    assert _cost(prices, agent(1, None, "a", (0, 100), **total)) is None
    assert _cost(prices, named, chat(2, 1, (1, 10), SILENT), chat(3, 1, (11, 20), used(1, 1, "n"))) is None


def test_a_turn_around_several_requests_may_tell_the_last_one_only() -> None:
    spans = [
        agent(1, None, "a", (0, 100), **total(360, 72)),
        chat(2, 1, (2, 90), used(120, 24)),
        tool(3, 1, "get", (20, 30)),
        tool(4, 1, "get", (50, 60)),
    ]
    run = only(spans)

    assert TokenUsage(360, 72) == run.usage
    assert [("m", None)] == [(call.model, call.usage) for call in run.model_calls]


def test_a_turn_that_began_after_the_last_call_is_no_loop() -> None:
    """What agents that it ran used is in its total as well."""
    spans = [
        agent(1, None, "a", (0, 100), **total(999, 99)),
        chat(2, 1, (2, 40), used(120, 24)),
        tool(3, 1, "get", (20, 30)),
        chat(4, 1, (50, 60), used(130, 14)),
    ]

    assert TokenUsage(250, 38) == only(spans).usage
