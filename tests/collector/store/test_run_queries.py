"""What is asked of the store finds just what is in it."""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.store import InvalidSearch, RunFilter, RunQueries
from processors.annotation import format_run, run_to_json
from processors.model import EvaluationResult, GradedRun, NotEvaluatedReason, Outcome, Severity, decode_json
from tests.support.graded_runs import result
from tests.support.stored_runs import MINUTE, NOW, filled, graded_run, hundred_thousand_runs


@pytest.fixture(scope="module")
def queries() -> RunQueries:
    return filled([graded_run(number) for number in range(1, 101)] + [graded_run(101, agent="billing")])


def test_a_run_comes_back_as_its_line(queries: RunQueries) -> None:
    run = graded_run(42)

    ((summary, line),) = queries.runs_of_trace(run.run.trace_id.hex())

    assert decode_json(format_run(run)) == line == run_to_json(run)
    assert "weather_agent" == summary.agent
    assert (NOW + 42 * MINUTE) // 1_000_000 == summary.milliseconds
    assert (3, 1, 2.500000001) == (summary.calls, summary.failed_calls, summary.seconds)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (RunFilter(agent="billing"), [101]),
        (RunFilter(agent="nobody"), []),
        (RunFilter(evaluation="args", outcome="fail"), [*range(100, 0, -10)]),
        (RunFilter(evaluation="order", outcome="fail"), []),
        (RunFilter(outcome="fail", before=50), [40, 30, 20, 10]),
        (RunFilter(after=99), [101, 100]),
        (RunFilter(text="number77"), [77]),
        (RunFilter(text="question NUMBER9"), [*range(99, 89, -1), 9]),
        (RunFilter(text="oslo number12"), [12]),
        (RunFilter(text="DROP TABLE runs; -- number12"), []),
        (RunFilter(text='number12 "question number12" -- \0'), [12]),
        (RunFilter(text='"number12 question"'), []),
        (RunFilter(text="input:number77"), [77]),
        (RunFilter(text="answer:number77"), []),
        (RunFilter(text='input:"number77" answer:"is warm" call:oslo tool:get_forecast'), [77]),
        (RunFilter(text="input:number7 outcome:fail evaluation:args"), [70]),
        (RunFilter(text="agent:billing", agent="billing"), [101]),
        (RunFilter(text="trace:0000 version:1.0", after=48), [49]),
        (RunFilter(text=f"{42:032x}"), [42]),
        (RunFilter(text=f"trace:{42:032X}"), [42]),
        (RunFilter(tool="get_forecast", since=(NOW + 100 * MINUTE) // 1_000_000), [101, 100]),
        (RunFilter(tool="no_tool"), []),
        (RunFilter(version="1.0", since=(NOW + 48 * MINUTE) // 1_000_000), [49, 48]),
        (RunFilter(tool="send_mail", evaluation="args", outcome="fail", before=30), [20, 10]),
        (RunFilter(tool="send_mail", outcome="fail", agent="weather_agent", before=30), [20, 10]),
        (RunFilter(tool="send_mail", evaluation="args", text="number40"), [40]),
        (RunFilter(until=(NOW + 3 * MINUTE) // 1_000_000), [2, 1]),
    ],
    ids=str,
)
def test_a_search_finds_what_it_describes(
    queries: RunQueries, wanted: RunFilter, expected: list[int]
) -> None:
    found = queries.find(wanted, 100)

    assert expected == [int(run.trace_id, 16) for run in found]
    assert all(("args",) * (run.outcome == "fail") == run.failed for run in found)
    assert all((0, len(graded_run(1).results)) == (run.not_evaluated, run.evaluations) for run in found)

    assert (found[:3], len(expected)) == queries.find_and_count(wanted, 3)
    assert found[::-1] == queries.find(wanted, 100, oldest_first=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"open', 'text: expected a closing quote after "open'),
        ("%%%", "text: expected a word, got '%%%'"),
        ("answer:", 'text: expected a word or a "phrase" right after answer:'),
        ('answer:"--"', 'text: expected a word or a "phrase" right after answer:'),
        ("anser:A-18", 'text: unknown field anser:; did you mean "answer"?; known: answer, reason, input, '),
        ("agent:a agent:b", "agent: expected one value, got 'a' and 'b'"),
        ("outcome:failed", "outcome: expected one of pass, fail, error, not_evaluated, got 'failed'"),
        ("x" * 301, "text: expected at most 300 characters, got 301"),
    ],
)
def test_a_search_that_cannot_be_read_is_refused(queries: RunQueries, text: str, problem: str) -> None:
    with pytest.raises(InvalidSearch) as raised:
        queries.find(RunFilter(text=text))

    assert str(raised.value).startswith(problem)


def test_words_are_looked_for_where_their_field_says() -> None:
    """An order's number in an answer, in an argument, in an explanation, and in pieces."""
    answered = graded_run(1, output="Order A-18 is refunded, see https://shop.example/a")
    called = graded_run(2, text="TimeoutError: upstream 18 of a")
    failed = result("args", Outcome.FAIL, explanation="A-18: refunded twice")
    missing = result("args", Outcome.NOT_EVALUATED, reason=NotEvaluatedReason.CONTENT_NOT_CAPTURED)
    runs = [answered, called, dataclasses.replace(graded_run(3), results=[failed])]
    queries = filled([*runs, dataclasses.replace(graded_run(4, session="talk-7"), results=[missing])])

    for text, expected in {
        "A-18": [3, 1],
        "answer:A-18": [1],
        "reason:A-18": [3],
        'reason:"refunded twice"': [3],
        'reason:"twice refunded"': [],
        "reason:content_not_captured": [4],
        "talk-7": [4],
        "TimeoutError: upstream": [2],
        "https://shop.example/a": [1],
    }.items():
        assert expected == [int(run.trace_id, 16) for run in queries.find(RunFilter(text=text))], text


@given(st.text(max_size=40) | st.text('ab:"*() {}^-+NEARndotrs', max_size=40))
def test_any_text_is_a_search_or_refused(text: str) -> None:
    queries = filled([graded_run(1)])
    with contextlib.suppress(InvalidSearch):
        queries.find(RunFilter(text=text))


def test_counts_by_the_hour_add_up_to_the_runs(queries: RunQueries) -> None:
    billing, weather = queries.agents()

    assert ("billing", "weather_agent") == (billing.name, weather.name)
    assert {"pass": 90, "fail": 10} == weather.runs.outcomes
    assert 0.9 == weather.runs.pass_rate
    assert 100 == sum(hour.count for hour in weather.hours.values())
    assert 2 <= len(weather.hours)
    args, order = queries.evaluations("weather_agent")
    assert ("args", 0.95, 1.0) == (args.name, args.counts.mean_score, order.counts.mean_score)
    assert {"1.0": 49, "1.1": 50, "1.2": 1} == {
        version: counts.count for version, counts in queries.versions("weather_agent").items()
    }
    assert [("get_forecast", 100, 100), ("get_temperature", 100, 0), ("send_mail", 100, 0)] == [
        (tool.name, tool.calls, tool.errors) for tool in queries.tools(agent="weather_agent")
    ]


def _failing(number: int, explanation: str, version: str, **fields: Any) -> GradedRun:
    run = graded_run(number)
    agent = replace(run.run.agent, version=version)
    failed = result("args", Outcome.FAIL, explanation=explanation, **fields)
    return dataclasses.replace(run, run=dataclasses.replace(run.run, agent=agent), results=[failed])


def test_failures_with_one_cause_are_counted_together_from_their_first_release_on() -> None:
    days = 'RH1.2: {} is not in the results; nearest: "{}" of call_{}'
    queries = filled(
        [
            _failing(1, days.format("47", "a first sentence", "x1"), "1.4"),
            _failing(2, days.format("-18.5", "another one", "y2"), "1.5"),
            _failing(3, "missing: get_forecast", "1.5"),
            _failing(4, "missing: get_forecast", "1.5", severity=Severity.ADVISORY),
        ]
    )

    often, missing, advisory = queries.causes("weather_agent")

    assert 'RH1.2: … is not in the results; nearest: "…" of …' == often.cause
    assert ("1.4", {"1.4": 1, "1.5": 1}, 2) == (often.began, often.versions, often.count)
    assert ("missing: get_forecast", 1, "") == (missing.cause, missing.count, missing.exemption)
    assert ("missing: get_forecast", 1, "advisory") == (advisory.cause, advisory.count, advisory.exemption)
    of_cause = RunFilter(evaluation="args", outcome="fail", cause=often.cause)
    assert [2, 1] == [int(run.trace_id, 16) for run in queries.find(of_cause)]
    assert {"args": often.cause} == queries.find(of_cause)[0].causes
    assert [] == queries.causes("billing") == queries.of_tenant("blue").causes()


def test_runs_are_found_by_why_a_check_gave_no_verdict() -> None:
    def unevaluated(name: str, *reasons: NotEvaluatedReason) -> list[EvaluationResult]:
        return [result(name, Outcome.NOT_EVALUATED, reason=reason) for reason in reasons]

    lacks, inapplicable = NotEvaluatedReason.CONTENT_NOT_CAPTURED, NotEvaluatedReason.NOT_APPLICABLE
    results = [unevaluated("args", lacks), unevaluated("args", inapplicable), unevaluated("order", lacks), []]
    of_calls = unevaluated("args", inapplicable, lacks)  # one for each call: either may be looked for
    runs = [
        dataclasses.replace(graded_run(number), results=some)
        for number, some in enumerate([*results, of_calls], 1)
    ]
    queries = filled(runs)

    def numbers(run_filter: RunFilter) -> list[int]:
        return [int(run.trace_id, 16) for run in queries.find(run_filter)]

    assert [5, 3, 1] == numbers(RunFilter(not_evaluated="content_not_captured"))
    assert [5, 1] == numbers(RunFilter(not_evaluated="content_not_captured", evaluation="args"))
    assert [5, 2] == numbers(RunFilter(text="not_evaluated:not_applicable"))
    with pytest.raises(InvalidSearch, match="not_evaluated: expected one of no_criteria, "):
        queries.find(RunFilter(not_evaluated="late"))


def test_releases_of_one_hour_are_in_the_order_in_which_they_began() -> None:
    queries = filled([_failing(number, "", f"1.{number}") for number in (5, 4, 9, 7, 5)])

    assert ["1.7", "1.9", "1.4", "1.5"] == list(queries.versions("weather_agent"))


def test_what_is_read_for_one_tenant_tells_nothing_of_another() -> None:
    every = filled(
        [
            *(graded_run(number, tenant="blue", dialect="openinference") for number in range(1, 21)),
            *(graded_run(number, tenant="green", agent="billing") for number in range(21, 31)),
            graded_run(31, tenant="green"),
        ]
    )
    blue, green = every.of_tenant("blue"), every.of_tenant("green")
    of_green = every.find(RunFilter(tenant="green"))[0]

    assert (20, 31, 31) == (blue.newest(), green.newest(), every.newest())
    assert [("weather_agent", 20, {"blue"})] == _told(blue)
    assert [("weather_agent", 1, {"green"}), ("billing", 10, {"green"})] == _told(green)
    assert [("weather_agent", 21, {"blue", "green"}), ("billing", 10, {"green"})] == _told(every)
    assert {"agents": ["weather_agent"]}.items() <= blue.names().items()
    assert [] == blue.find(RunFilter(agent="billing"))
    assert [] == blue.find(RunFilter(tenant="green"))
    assert [] == blue.find(RunFilter(text="number31"))
    assert 20 == len(blue.find(RunFilter(dialect="openinference"), 100))
    assert [] == blue.runs_of_trace(of_green.trace_id)
    assert blue.line(of_green.id) is None
    assert green.line(of_green.id) is not None
    assert [20] == [counts.count for counts in blue.versions("weather_agent").values()]
    assert [] == blue.tools(agent="billing")
    assert {20} == {criterion.counts.count for criterion in blue.evaluations()}
    assert {("blue", "weather_agent")} == {key[:2] for key in blue.evaluation_counts()}
    assert [] == every.of_tenant("' OR 1 --").find(RunFilter())


def _told(queries: RunQueries) -> list[tuple[str, int, set[str]]]:
    return [(agent.name, agent.runs.count, agent.tenants) for agent in queries.agents()]


def test_text_that_no_database_holds_is_kept_all_the_same() -> None:
    queries = filled([graded_run(1, agent="lone \ud800 half", text="nul \0 and \ud800 <script>")])

    (found,) = queries.find(RunFilter(text="script"))

    assert "lone ? half" == found.agent
    line = queries.line(found.id)
    assert line is not None
    assert "nul \0 and \ud800 <script>" == line["input"]


@pytest.mark.slow
def test_a_hundred_thousand_runs_are_searched_in_less_than_a_fifth_of_a_second(tmp_path: Path) -> None:
    queries = hundred_thousand_runs(tmp_path / "runs.db")
    asked: dict[str, Callable[[], object]] = {
        "agents": queries.agents,
        "names": queries.names,
        "evaluations": queries.evaluations,
        "causes": queries.causes,
        "versions": lambda: queries.versions("agent_10"),
        "tools": queries.tools,
        "tools by release": lambda: queries.tools(by_release=True),
        "releases": queries.releases,
        "agent": lambda: queries.find(RunFilter(agent="agent_10", outcome="fail")),
        "tool": lambda: queries.find(RunFilter(tool="get_forecast")),
        "evaluation": lambda: queries.find(RunFilter(evaluation="args", outcome="fail")),
        "every run": lambda: queries.find(RunFilter(text="question oslo")),
        "count": lambda: queries.find_and_count(RunFilter(text='"checked number" agent:agent_10'), 51),
        "count of many": lambda: queries.find_and_count(RunFilter(text="question"), 51),
        "phrase": lambda: queries.find(RunFilter(text='"checked number" answer:warm call:oslo')),
        "no phrase": lambda: queries.find(RunFilter(text='"number checked"')),
        "no run": lambda: queries.find(RunFilter(text="question nowhere")),
        "nobody": lambda: queries.find(RunFilter(agent="agent_1", evaluation="third-party")),
        "one run": lambda: queries.runs_of_trace(graded_run(50).run.trace_id.hex()),
    }
    seconds = {}
    for name, ask in asked.items():
        times = []
        for _ in range(3):
            started = time.perf_counter()
            ask()
            times.append(time.perf_counter() - started)
        seconds[name] = min(times)

    assert {} == {name: taken for name, taken in seconds.items() if taken > 0.2}
