"""Reviews: which verdict they are about, which of them count, how precise that shows an evaluation to be."""

from dataclasses import replace
from pathlib import Path

import pytest

from collector.store import InvalidReview, NewReview, Precision, Reviewed, Reviews, RunQueries
from collector.telemetry import Metrics
from processors.criteria import read_criteria
from processors.evaluate import evaluate_run
from tests.support import agent_responses as responses
from tests.support.graded_runs import result
from tests.support.stored_runs import NOW, add_runs, filled, graded_run, run_store

LATER = NOW // 1_000_000 + 1_000


def answered(reviews: Reviews, number: int, answer: str, evaluation: str = "args", **fields: str) -> None:
    reviews.add(NewReview(f"{number:032x}", evaluation, answer, **fields), "token 1", LATER)


def test_the_newest_review_of_a_verdict_counts_and_all_are_retained() -> None:
    reviews = Reviews(filled([graded_run(number) for number in range(1, 41)]))
    for number, answer in ((10, "right"), (20, "wrong"), (30, "unclear"), (20, "right")):
        answered(reviews, number, answer, reviewer="anna", comment=" because\ud800 ")
    answered(reviews, 11, "wrong")
    answered(reviews, 12, "right")

    assert ["right", "wrong", "right", "unclear", "wrong", "right"] == [one.answer for one in reviews.each()]
    assert {Reviewed("", "weather_agent", "args"): Precision(2, 0, 1, 1)} == reviews.precision()
    (first,) = reviews.each(trace=f"{10:032x}")
    assert ("anna", "because?", "token 1", LATER, "fail") == (
        first.reviewer,
        first.comment,
        first.credential,
        first.milliseconds,
        first.outcome,
    )
    assert 1 == len(list(reviews.each(answer="unclear")))
    assert [] == list(reviews.each(since=LATER + 1))


def test_rules_that_decided_are_counted_apart() -> None:
    criteria = (
        "agents: {weather: {evaluations: [{evaluator: tool-response-handling, config: {gating: [RH4]}}]}}"
    )
    (agent,) = read_criteria(criteria, "criteria.yaml", {}).agents
    run = responses.answered(
        "Done: https://shop.example.com/r/77", responses.call(name="refund", error="TimeoutError")
    )
    (verdict,) = evaluate_run(run, agent.evaluations)
    found = {violation["check"]: violation["gating"] for violation in verdict.details["violations"]}  # type: ignore[index,union-attr,call-overload]  # JSON
    reviews = Reviews(filled([replace(graded_run(1), results=[verdict])]))
    answered(reviews, 1, "wrong", verdict.name)

    assert {"RH4": True, "RH3.1": False, "RH9.a": False} == found
    assert {"": 1, "RH4": 1} == {of.rule: precision.wrong for of, precision in reviews.precision().items()}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"answer": "maybe"}, "expected right, wrong or unclear"),
        ({"comment": "x" * 1_001}, "comment: expected at most 1000 characters"),
        ({"reviewer": "x" * 101}, "reviewer: expected at most 100 characters"),
        ({"evaluation": "order of things"}, "no stored run has this verdict"),
        ({"span_id": "00" * 8}, "no stored run has this verdict"),
        ({"evaluation": "calls"}, "several verdicts of this trace match"),
    ],
)
def test_reviews_of_nothing_are_refused(fields: dict[str, str], message: str) -> None:
    calls = [result("calls", tool_call_id=str(number)) for number in range(2)]
    reviews = Reviews(filled([replace(graded_run(1), results=[result("args"), *calls])]))
    new = NewReview(**{"trace_id": f"{1:032x}", "evaluation": "args", "answer": "right"} | fields)

    with pytest.raises(InvalidReview, match=message):
        reviews.add(new, "", LATER)
    assert [] == list(reviews.each())
    answered(reviews, 1, "right", "calls", tool_call_id="1")


def test_a_tenant_has_reviews_of_its_own_alone() -> None:
    queries = filled([graded_run(number, tenant=name) for number, name in ((10, "blue"), (20, "green"))])
    blue = Reviews(queries.of_tenant("blue"))
    answered(blue, 10, "right")

    with pytest.raises(InvalidReview):
        answered(blue, 20, "right")
    answered(Reviews(queries), 20, "wrong")
    assert ["right"] == [review.answer for review in blue.each()]
    assert ["blue"] == [of.tenant for of in blue.precision()]


def test_reviews_outlive_their_run_but_neither_their_age_nor_their_room() -> None:
    queries = filled([replace(graded_run(10), graded_unix_nano=NOW)], limit_mib=8)
    reviews = Reviews(queries)
    answered(reviews, 10, "right")

    newer = replace(graded_run(11), graded_unix_nano=2 * NOW)
    add_runs(queries.database, [newer], LATER)
    assert [] == queries.runs_of_trace(f"{10:032x}")
    assert 1 == len(list(reviews.each()))
    for _ in range(300):
        answered(reviews, 11, "right")
    assert 256 == len(list(reviews.each()))
    add_runs(queries.database, [], LATER + 1)
    assert [] == list(reviews.each())


async def test_answers_to_failures_are_metrics_also_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    answered(Reviews(_writable(path)), 10, "wrong")
    metrics = Metrics()
    store = run_store(metrics, path=str(path))
    await store.start()

    assert 1 == metrics.reviewed_failures.value("weather_agent", "args", "wrong")
    answered(Reviews(store.queries), 10, "right")
    assert 0 == metrics.reviewed_failures.value("weather_agent", "args", "wrong")
    assert 1 == metrics.reviewed_failures.value("weather_agent", "args", "right")
    await store.shutdown(store.clock.monotonic() + 5)


def _writable(path: Path) -> RunQueries:
    return filled([graded_run(10)], path)


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(0, 0, 0, 1), (8, 10, 0.4901625, 0.9433178), (0, 5, 0, 0.4344825), (20, 20, 0.8388748, 1)],
)
def test_the_interval_is_that_of_wilson(hits: int, trials: int, low: float, high: float) -> None:
    assert pytest.approx((low, high), abs=1e-6) == Precision(hits, trials - hits).interval
