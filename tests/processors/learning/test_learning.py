"""What is learned from scripted agents, and how it does on runs that it was not learned from."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

from processors.annotation.run_reader import run_from_json
from processors.criteria import Evaluation, read_criteria, write_criteria
from processors.evaluate import evaluate_run
from processors.learning import STEPS, Learned, TooFewRunsError, learn, upper_bound
from processors.learning.rule import trials_needed
from processors.model import AgentRun, Outcome, ToolCall
from tests.support.agent_population import AGENTS, Line, population

REQUIRED = {
    "refund_agent": ("get_order", "check_policy", "send_email"),
    "travel_agent": ("search_flights", "search_hotels", "hold_flight", "book_flight"),
    "research_agent": ("web_search", "fetch_page", "write_summary"),
    "deploy_agent": ("acquire_lock", "run_tests", "deploy", "check_health", "release_lock"),
    "records_agent": ("verify_identity", "read_record", "update_field", "write_audit"),
}
"""What every good run of a scripted agent calls, in this order but for what runs side by side."""
UNORDERED = frozenset({("search_flights", "search_hotels")})


def runs_of(lines: Sequence[Line], where: str = "runs") -> list[AgentRun]:
    return [run_from_json(line, f"{where}:{number}") for number, line in enumerate(lines)]


def ready(learned: Learned) -> Sequence[Evaluation]:
    text = write_criteria(learned.agent, [evaluation.entry for evaluation in learned.evaluations])
    (agent,) = read_criteria(text, "learned.yaml", {}).agents
    return agent.evaluations


def fails(run: AgentRun, evaluations: Sequence[Evaluation]) -> bool:
    outcomes = [result.outcome for result in evaluate_run(run, evaluations)]
    return Outcome.FAIL in outcomes or Outcome.ERROR in outcomes


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(agent, id=agent.__name__, marks=pytest.mark.slow if number else ())
        for number, agent in enumerate(AGENTS)
    ],
)
def learned(request: pytest.FixtureRequest) -> tuple[Callable[[random.Random], Line], Learned]:
    return request.param, learn(request.param.__name__, runs_of(population(request.param, 500)))


def test_good_runs_that_took_no_part_pass(learned: tuple[Any, Learned]) -> None:
    agent, found = learned
    evaluations = ready(found)
    fresh = runs_of(population(agent, 500, seed=2))

    assert found.false_alarms <= 0.02 * found.held_out
    assert found.chosen_bound <= 0.02
    assert sum(fails(run, evaluations) for run in fresh) <= 0.02 * len(fresh)


def test_broken_runs_are_caught(learned: tuple[Any, Learned]) -> None:
    _, found = learned

    assert len(found.caught) == 7
    assert found.caught_over_all.caught >= 0.8 * found.caught_over_all.broken
    assert found.caught_structural.caught >= 0.95 * found.caught_structural.broken


def broken_by_hand(run: AgentRun, rng: random.Random) -> Iterator[AgentRun]:
    """The run without a call that it needs, with one it must not make, and with two in the wrong order."""
    calls = list(run.tool_calls)
    names = REQUIRED[run.agent.name]
    missing = rng.choice(names)
    yield replace(run, tool_calls=[call for call in calls if call.name != missing])
    at = rng.randrange(len(calls) + 1)
    yield replace(run, tool_calls=[*calls[:at], ToolCall(name="delete_everything"), *calls[at:]])
    one, other = rng.choice([pair for pair in pairwise(names) if pair not in UNORDERED])
    # All calls of the later tool go before the first one of the earlier.
    moved = [structs.replace(call, parallel_group=None) for call in calls if call.name == other]
    rest = [call for call in calls if call.name != other]
    first = next(index for index, call in enumerate(rest) if call.name == one)
    while first and rest[first].parallel_group is not None and rest[first - 1].parallel_group is not None:
        first -= 1
    yield replace(run, tool_calls=[*rest[:first], *moved, *rest[first:]])


def test_missing_forbidden_and_reordered_calls_of_fresh_runs_are_caught(learned: tuple[Any, Learned]) -> None:
    agent, found = learned
    evaluations, rng = ready(found), random.Random(7)
    broken = [run for good in runs_of(population(agent, 60, seed=3)) for run in broken_by_hand(good, rng)]

    assert sum(fails(run, evaluations) for run in broken) >= 0.95 * len(broken)


def test_the_order_of_the_runs_does_not_matter() -> None:
    lines = population(AGENTS[0], 120)
    shuffled = random.Random(5).sample(lines, len(lines))
    one, other = (learn("refund_agent", runs_of(some)) for some in (lines, shuffled))

    assert {e.name: e.entry.keys() for e in one.evaluations} == {
        e.name: e.entry.keys() for e in other.evaluations
    }
    assert [one.false_alarms, one.caught] == [other.false_alarms, other.caught]


def simple_run(number: int, *calls: Any, **more: Any) -> Line:
    tool_calls = [
        call if isinstance(call, dict) else {"name": call, "arguments": {}, "result": "ok"} for call in calls
    ]
    return {
        "agent": {"name": "simple"},
        "trace_id": f"{number + 1:032x}",
        "input": f"run {number}",
        "tool_calls": tool_calls,
        **more,
    }  # fmt: skip


def statements(found: Learned) -> set[str]:
    return {
        f"{rule.subject}: {rule.statement}" if rule.subject else rule.statement
        for evaluation in found.evaluations
        for rule in evaluation.rules
    }


def test_tools_order_and_numbers_are_learned() -> None:
    lines = [
        simple_run(number, "open", *["work"] * (number % 3), "left" if number % 2 else "right", "close")
        for number in range(200)
    ]
    told = statements(learn("simple", runs_of(lines)))

    assert {
        "no tool but these is called: close, left, open, right, work",
        "open is called, and succeeds",
        "close is called, and succeeds",
        "open succeeds before left",
        "after right close succeeds",
        "either left or right is called, never both",
        "work at most 2 times",
        "left at most once",
    } <= told
    assert not any("work is called, and" in statement for statement in told)


def booking(number: int) -> Line:
    identifier = f"AX-{number * 37 % 1000:03d}"
    search = {
        "name": "search",
        "arguments": {"city": ("Oslo", "Rome", "Lima")[number % 3], "limit": 1 + number % 5},
        "result": {"items": [{"id": identifier}, {"id": "AX-none"}]},
    }
    book = {
        "name": "book",
        "arguments": {"id": identifier, "currency": "EUR", "note": f"note {number}"},
        "result": 1,
    }
    return simple_run(number, search, book)


def test_arguments_are_learned_with_where_they_come_from() -> None:
    told = statements(learn("simple", runs_of([booking(number) for number in range(200)])))

    assert {
        'search: city is one of "Lima", "Oslo", "Rome"',
        "search: limit is from 1 to 5",
        "search: has city, limit",
        "search: has nothing else",
        'book: currency is "EUR"',
        "book.id is what search.items[*].id returned before",
    } <= told
    assert not any("note" in statement and "told" in statement for statement in told)
    assert any(statement.startswith("book: id is written as AX-") for statement in told)


def test_a_rule_that_raises_false_alarms_is_given_up() -> None:
    """Every fortieth run skips a step that all others make: nothing may be demanded of it."""
    lines = [simple_run(n, "open", *(["check"] if n % 40 else []), "close") for n in range(400)]
    found = learn("simple", runs_of(lines))

    assert "check is called, and succeeds" not in statements(found)
    assert "open is called, and succeeds" in statements(found)


def test_one_bad_run_among_the_good_ones_does_not_take_a_rule_away() -> None:
    lines = [
        simple_run(n, *(["open", "check", "close"] if n != 77 else ["close", "open"])) for n in range(400)
    ]
    found = learn("simple", runs_of(lines))
    (order,) = [evaluation for evaluation in found.evaluations if evaluation.name == "learned-order"]

    assert {"check is called, and succeeds", "open succeeds before check", "after check close succeeds"} <= (
        statements(found)
    )
    assert any(rule.evidence == "300 of 300 runs, but for 1; 98.4 % sure" for rule in order.rules)
    assert fails(run_from_json(simple_run(5000, "close", "open"), ""), ready(found))


def test_what_every_answer_says_is_learned() -> None:
    lines = [
        simple_run(number, "look", output=f"Order {number} is on its way. Thank you for your patience!")
        for number in range(100)
    ]
    found = learn("simple", runs_of(lines))

    answers = [statement for statement in statements(found) if "the answer" in statement]
    assert answers == ['the answer says "Thank you for your patience!"']
    assert fails(run_from_json({**lines[0], "output": "It is on its way."}, ""), ready(found))


def test_rare_deviations_do_not_bring_the_set_above_the_bound() -> None:
    """Each of many runs is odd in a way of its own; what they break is in the end not demanded."""
    rng = random.Random(3)
    lines = []
    for number in range(400):
        calls = ["open", "read", "write", "close"]
        if rng.random() < 0.06:
            calls.insert(rng.randrange(5), f"extra_{rng.randrange(1000)}")
        lines.append(simple_run(number, *calls))
    found = learn("simple", runs_of(lines))
    evaluations = ready(found)
    names = {evaluation.name for evaluation in found.evaluations}
    odd = runs_of([simple_run(9000 + n, "open", f"other_{n}", "read", "write", "close") for n in range(100)])

    assert found.chosen_bound <= 0.02
    assert "learned-tools" not in names
    assert not any(fails(run, evaluations) for run in odd)


def test_too_few_runs_to_show_the_rate_are_told() -> None:
    found = learn("refund_agent", runs_of(population(AGENTS[0], 60)))

    assert found.runs_needed == 199
    assert found.chosen_alarms == 0


def test_fewer_runs_than_anything_can_be_learned_from_are_refused() -> None:
    with pytest.raises(TooFewRunsError, match="19 complete runs of refund_agent: at least 20"):
        learn("refund_agent", runs_of(population(AGENTS[0], 19)))


def test_incomplete_runs_are_left_out() -> None:
    lines = [simple_run(number, "open", "close") for number in range(40)]
    lines += [simple_run(1000 + number, "open", complete=False) for number in range(40)]
    found = learn("simple", runs_of(lines))

    assert found.runs + found.held_out == 40
    assert "close is called, and succeeds" in statements(found)


def test_arguments_that_criteria_cannot_name_cost_only_their_rules() -> None:
    """Names like matchers, names with both quotes, and dollar signs that no criteria file can say."""
    lines = [
        simple_run(
            number,
            {
                "name": "find",
                "arguments": {"where": {"$in": number}, "a\"b'[c": f"x{number:04d}y"},
                "result": 1,
            },
            {"name": "tell", "arguments": {"to": ("$${boss}", "me")[number % 2]}, "result": "ok"},
        )
        for number in range(100)
    ]
    told = statements(learn("simple", runs_of(lines)))

    assert {"find is called, and succeeds", "tell: has to", "find succeeds before tell"} <= told
    assert not any("boss" in statement for statement in told)


def test_progress_is_told_for_each_run() -> None:
    steps: list[None] = []
    learn("simple", runs_of([simple_run(n, "open") for n in range(40)]), advance=lambda: steps.append(None))

    assert len(steps) == STEPS * 40


def test_runs_without_calls_and_content_are_learned_from() -> None:
    found = learn("simple", runs_of([simple_run(number) for number in range(40)]))

    assert "no tool but these is called: none" in statements(found)
    assert found.caught == {}


@pytest.mark.parametrize(
    ("hits", "trials", "bound"),
    [(0, 149, 0.0199), (0, 375, 0.00796), (3, 100, 0.0757), (5, 5, 1.0), (0, 0, 1.0)],
)
def test_the_upper_bound_is_that_of_clopper_and_pearson(hits: int, trials: int, bound: float) -> None:
    assert upper_bound(hits, trials) == pytest.approx(bound, rel=0.005)


def test_as_many_trials_are_needed_as_show_the_rate() -> None:
    assert trials_needed(0.02) == 149
    assert upper_bound(0, 148) > 0.02 >= upper_bound(0, 149)
