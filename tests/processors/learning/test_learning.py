"""What is learned from scripted agents, and how it does on runs that it was not learned from."""

import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from msgspec import structs

from processors.annotation import run_from_json
from processors.criteria import Evaluation, read_criteria, write_criteria
from processors.evaluate import evaluate_run
from processors.learning import STEPS, Learned, TooFewRunsError, learn, upper_bound
from processors.learning.rule import trials_needed
from processors.model import AgentRun, Outcome, ToolCall
from tests.support.agent_population import AGENTS, Line, expense_agent, population

REQUIRED = {
    "refund_agent": ("get_order", "check_policy", "send_email"),
    "travel_agent": ("search_flights", "search_hotels", "hold_flight", "book_flight"),
    "research_agent": ("web_search", "fetch_page", "write_summary"),
    "deploy_agent": ("acquire_lock", "run_tests", "deploy", "check_health", "release_lock"),
    "records_agent": ("verify_identity", "read_record", "update_field", "write_audit"),
    "expense_agent": ("list_receipts", "read_receipt", "add_claim", "request_approval"),
}
"""What every good run of a scripted agent calls, in this order but for what runs side by side."""
KINDS = {
    "a call left out", "a call doubled", "two calls swapped", "another tool", "a forbidden tool",
    "changed arguments", "an error ignored",
}  # fmt: skip
"""The ways in which every scripted agent can be broken."""
OF_VALUES = (
    "a changed result", "an argument of another run", "a number above its limit", "a sum too large",
)  # fmt: skip
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


@cache
def learned_of(agent: Callable[[random.Random], Line], runs: int = 500) -> Learned:
    return learn(agent.__name__, runs_of(population(agent, runs)))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(agent, id=agent.__name__, marks=pytest.mark.slow if number else ())
        for number, agent in enumerate(AGENTS)
    ],
)
def learned(request: pytest.FixtureRequest) -> tuple[Callable[[random.Random], Line], Learned]:
    return request.param, learned_of(request.param)


def test_good_runs_that_took_no_part_pass(learned: tuple[Any, Learned]) -> None:
    agent, found = learned
    evaluations = ready(found)
    fresh = runs_of(population(agent, 500, seed=2))

    assert found.false_alarms <= 0.02 * found.held_out
    assert found.chosen_bound <= 0.02
    assert sum(fails(run, evaluations) for run in fresh) <= 0.02 * len(fresh)


def test_broken_runs_are_caught(learned: tuple[Any, Learned]) -> None:
    _, found = learned

    of_values = [found.caught[kind] for kind in OF_VALUES if kind in found.caught]

    assert found.caught.keys() >= KINDS
    assert found.caught_over_all.caught >= 0.85 * found.caught_over_all.broken
    assert sum(kind.caught for kind in of_values) >= 0.95 * sum(kind.broken for kind in of_values)
    assert found.caught_structural.caught >= 0.95 * found.caught_structural.broken


@pytest.mark.slow
def test_over_all_agents_nearly_all_broken_runs_are_caught() -> None:
    every = [learned_of(agent) for agent in AGENTS]
    caught = [found.caught_over_all for found in every]

    assert sum(kinds.caught for kinds in caught) >= 0.94 * sum(kinds.broken for kinds in caught)
    assert {kind for found in every for kind in found.caught} == {*KINDS, *OF_VALUES}
    assert sum(found.false_alarms for found in every) <= 0.02 * sum(found.held_out for found in every)


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


def _claims(line: Line) -> list[Line]:
    return [call for call in line["tool_calls"] if call["name"] == "add_claim"]


def _claims_more_than_the_receipt(line: Line) -> None:
    claim = _claims(line)[0]
    receipts = [call for call in line["tool_calls"] if call["name"] == "read_receipt"]
    claim["arguments"]["amount"] = max(call["result"]["total"] for call in receipts if "result" in call) + 10


def _claims_too_much_in_all(line: Line) -> None:
    """Four receipts in full, each of them within what one claim may be."""
    at = line["tool_calls"].index(_claims(line)[0])
    employee = _claims(line)[0]["arguments"]["employee_id"]
    calls: list[Line] = []
    for number in range(4):
        receipt = f"RC1000{number}"
        calls += [
            {"name": "read_receipt", "arguments": {"receipt_id": receipt},
             "result": {"total": 480.0, "currency": "EUR"}},
            {"name": "add_claim", "result": {"claim": 10001},
             "arguments": {"employee_id": employee, "receipt": receipt, "amount": 480.0}},
        ]  # fmt: skip
    rest = [call for call in line["tool_calls"][at:] if call["name"] not in ("read_receipt", "add_claim")]
    line["tool_calls"][at:] = calls[1:] + rest


def _is_for_somebody_else(line: Line) -> None:
    _claims(line)[-1]["arguments"]["employee_id"] = "E0007"


def _was_not_approved(line: Line) -> None:
    for call in line["tool_calls"]:
        if call["name"] == "request_approval":
            decision = call["result"]["review"]["decision"]
            call["result"]["review"]["decision"] = "declined" if decision == "approved" else "approved"


@pytest.mark.parametrize(
    ("break_run", "evaluation"),
    [
        (_claims_more_than_the_receipt, "learned-relations"),
        (_claims_too_much_in_all, "learned-relations"),
        (_is_for_somebody_else, "learned-relations"),
        (_was_not_approved, "learned-results"),
    ],
)
def test_values_that_do_not_go_together_fail(break_run: Callable[[Line], None], evaluation: str) -> None:
    evaluations = [item for item in ready(learned_of(expense_agent, 220)) if item.name == evaluation]
    lines = population(expense_agent, 40, seed=4)
    broken = deepcopy(lines)
    for line in broken:
        break_run(line)

    assert not any(fails(run, evaluations) for run in runs_of(lines))
    assert all(fails(run, evaluations) for run in runs_of(broken))


def test_what_results_decide_and_what_agrees_is_learned() -> None:
    assert {
        'after request_approval returned review.decision: "approved" pay_out is called',
        'after request_approval returned review.decision: "declined" pay_out is never called',
        "employee_id is the same in all calls of a run",
        "add_claim.receipt is read_receipt.receipt_id before it, and the other way round",
        "add_claim.amount is at most read_receipt.total before it",
        "amount of all add_claim adds up to at most 900",
    } <= statements(learned_of(expense_agent, 220))


def test_values_that_have_nothing_to_do_with_each_other_give_no_rule() -> None:
    rng = random.Random(11)
    lines = []
    for number in range(300):
        calls = [
            {"name": "look", "arguments": {"code": rng.randint(100, 130), "size": rng.randint(11, 500)},
             "result": {"open": rng.random() < 0.5, "level": rng.randint(11, 900)}}
        ]  # fmt: skip
        for _ in range(rng.randint(0, 4)):
            arguments = {"code": rng.randint(100, 130), "amount": rng.randint(11, 900)}
            calls.append({"name": "note", "arguments": arguments, "result": "ok"})
        lines.append(simple_run(number, *calls))
    found = learn("simple", runs_of(lines))

    assert not {"learned-results", "learned-relations"} & {item.name for item in found.evaluations}


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
