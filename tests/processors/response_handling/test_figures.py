"""What the rules catch and flag on labelled cases, and on sound answers made wrong."""

import re
import sys
import timeit
from collections import Counter
from pathlib import Path
from random import Random
from time import process_time
from types import ModuleType

import pytest

from processors.evaluators.tool_response_handling import ToolResponseHandling, ToolResponseHandlingConfig
from processors.model.evaluation_result import NotEvaluated, NotEvaluatedReason
from processors.model.evaluator import RunFacts
from processors.response_handling import (
    completeness,
    counts,
    dates,
    disclosure,
    errors,
    failures,
    ledger,
    lexicon,
    numbers,
    reading,
    reckoning,
    rows,
    rules,
    states,
)
from processors.response_handling import response as response_module
from processors.response_handling.lexicon import LANGUAGES
from processors.response_handling.lexicons import patterns
from tests.support.agent_responses import answered, call
from tests.support.response_handling import figures_of, read_cases, rules_found
from tests.support.response_mutations import additions, mutations

DATA = Path(__file__).parents[2] / "data"
DEVELOPMENT = read_cases(DATA / "response_handling" / "dev.jsonl")
HELD = read_cases(DATA / "response_handling" / "held.jsonl")
FRESH = read_cases(DATA / "response_handling" / "fresh.jsonl")
FRESH2 = read_cases(DATA / "response_handling" / "fresh2.jsonl")
FRESH3 = read_cases(DATA / "response_handling" / "fresh3.jsonl")
FRESH4 = read_cases(DATA / "response_handling" / "fresh4.jsonl")
FRESH5 = read_cases(DATA / "response_handling" / "fresh5.jsonl")
FRESH6 = read_cases(DATA / "response_handling" / "fresh6.jsonl")
FRESH7 = read_cases(DATA / "response_handling" / "fresh7.jsonl")
FRESH8 = read_cases(DATA / "response_handling" / "fresh8.jsonl")
FRESH9 = read_cases(DATA / "response_handling" / "fresh9.jsonl")
FRESH10 = read_cases(DATA / "response_handling" / "fresh10.jsonl")
FRESH11 = read_cases(DATA / "response_handling" / "fresh11.jsonl")
FRESH19 = read_cases(DATA / "response_handling" / "fresh19.jsonl")
FRESH18 = read_cases(DATA / "response_handling" / "fresh18.jsonl")
FRESH17 = read_cases(DATA / "response_handling" / "fresh17.jsonl")
FRESH16 = read_cases(DATA / "response_handling" / "fresh16.jsonl")
FRESH15 = read_cases(DATA / "response_handling" / "fresh15.jsonl")
FRESH14 = read_cases(DATA / "response_handling" / "fresh14.jsonl")
FRESH13 = read_cases(DATA / "response_handling" / "fresh13.jsonl")
FRESH12 = read_cases(DATA / "response_handling" / "fresh12.jsonl")
SOUND = read_cases(DATA / "response_handling" / "sound.jsonl")
HARD = read_cases(DATA / "parity" / "response_handling_hard.jsonl")
LABELLED = read_cases(DATA / "parity" / "response_handling_labelled.jsonl")
MODULES = (
    completeness,
    counts,
    dates,
    disclosure,
    errors,
    failures,
    ledger,
    lexicon,
    numbers,
    patterns,
    reading,
    reckoning,
    response_module,
    rows,
    rules,
    states,
)


@pytest.mark.parametrize(
    ("cases", "caught", "flagged", "caught_by_all", "flagged_by_all"),
    [
        (FRESH19, 0.3, 0.0, 0.32, 0.05),
        (FRESH18, 0.52, 0.0, 0.55, 0.0),
        (FRESH17, 0.62, 0.0, 0.65, 0.0),
        (FRESH16, 0.4, 0.0, 0.45, 0.05),
        (FRESH15, 0.52, 0.0, 0.55, 0.0),
        (FRESH14, 0.5, 0.0, 0.5, 0.0),
        (FRESH13, 0.35, 0.0, 0.4, 0.08),
        (FRESH12, 0.37, 0.03, 0.4, 0.05),
        (FRESH11, 0.32, 0.0, 0.37, 0.0),
        (FRESH10, 0.4, 0.0, 0.4, 0.05),
        (FRESH9, 0.6, 0.0, 0.67, 0.03),
        (FRESH8, 0.67, 0.0, 0.68, 0.03),
        (FRESH7, 0.7, 0.02, 0.73, 0.04),
        (FRESH6, 0.68, 0.0, 0.75, 0.03),
        (FRESH5, 0.74, 0.0, 0.77, 0.0),
        (FRESH4, 0.74, 0.0, 0.81, 0.0),
        (FRESH3, 0.52, 0.0, 0.56, 0.02),
        (FRESH2, 0.65, 0.0, 0.72, 0.02),
        (FRESH, 0.64, 0.0, 0.8, 0.0),
        (HELD, 0.8, 0.0, 0.81, 0.03),
        (DEVELOPMENT, 0.76, 0.0, 0.85, 0.02),
        (HARD, 0.82, 0.0, 0.88, 0.0),
        (LABELLED, 0.66, 0.0, 0.93, 0.0),
    ],
    ids=[
        "fresh19",
        "fresh18",
        "fresh17",
        "fresh16",
        "fresh15",
        "fresh14",
        "fresh13",
        "fresh12",
        "fresh11",
        "fresh10",
        "fresh9",
        "fresh8",
        "fresh7",
        "fresh6",
        "fresh5",
        "fresh4",
        "fresh3",
        "fresh2",
        "fresh",
        "held",
        "development",
        "hard",
        "labelled",
    ],
)
def test_wrong_cases_are_caught_and_sound_ones_left_alone(
    cases: list[dict[str, object]], caught: float, flagged: float, caught_by_all: float, flagged_by_all: float
) -> None:
    figures = figures_of(cases)

    assert figures.caught / figures.wrong >= caught
    assert figures.flagged / figures.sound <= flagged
    assert figures.caught_by_all / figures.wrong >= caught_by_all
    assert figures.flagged_by_all / figures.sound <= flagged_by_all


def test_sound_answers_that_tempt_are_left_alone() -> None:
    figures = figures_of(SOUND)

    assert (200, 0) == (figures.sound, figures.flagged)
    assert figures.flagged_by_all <= 2


def test_of_sound_answers_made_wrong_most_are_caught() -> None:
    tried: Counter[str] = Counter()
    found: Counter[str] = Counter()
    config = ToolResponseHandlingConfig(gating="all")
    for case in (*LABELLED, *HARD, *DEVELOPMENT, *FRESH):
        if case["label"] != "correct" or rules_found(case, config) or not isinstance(case["output"], str):
            continue
        for kind, output in (*mutations(case["output"]), *additions(case["output"])):
            tried[kind] += 1
            found[kind] += bool(rules_found({**case, "output": output}, config))

    assert sum(tried.values()) > 300
    assert sum(found.values()) / sum(tried.values()) >= 0.85, {
        kind: f"{found[kind]}/{tried[kind]}" for kind in tried
    }


def _patterns(module: ModuleType) -> list[re.Pattern[str]]:
    found = []
    for value in vars(module).values():
        values = value if isinstance(value, tuple) else (value,)
        for inner in values:
            pairs = inner if isinstance(inner, tuple) else (inner,)
            found += [entry for entry in pairs if isinstance(entry, re.Pattern)]
    return found


def test_no_pattern_of_the_room_repeats_anything_without_a_bound() -> None:
    """A pattern of bounded length does bounded work at each place, so that a search is linear in the text."""
    patterns = [pattern for module in MODULES for pattern in _patterns(module)]
    patterns += [vars(reading.reader(language))["_dates"] for language in LANGUAGES]

    assert len(patterns) > 40
    for pattern in patterns:
        assert not re.search(r"(?<!\\)(?:[*+]|\{\d*,\})(?![^\[]*\])", _without_classes(pattern.pattern)), (
            pattern.pattern
        )


def _without_classes(pattern: str) -> str:
    return re.sub(r"\[(?:\\.|[^\]\\])+\]", "x", re.sub(r"\\.", "y", pattern))


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (
            "There are 4821 of them. " * 300,
            [{"name": f"row {n}", "value": n * 37 % 9901, "at": "x"} for n in range(1600)],
        ),
        ("1 2 3 4 5 6 7 8 9 " * 400, {"text": "3,417.26 at 10:30 on 2026-03-05, " * 300}),
        ("am 5. März 2026 um 10 Uhr " * 300, ["2026-03-05T10:00:00Z"] * 700),
    ],
    ids=["rows", "text", "dates"],
)
def test_the_work_on_large_runs_is_bounded(answer: str, result: object) -> None:
    evaluator = ToolResponseHandling(ToolResponseHandlingConfig(gating="all"))
    run = answered(answer[:8000], call(result))  # type: ignore[arg-type]  # JSON by hand

    steps = _steps(lambda: evaluator.evaluate(run, RunFacts()))

    assert steps < 300_000


def _steps(work: object) -> int:
    """How many calls of Python functions some work takes."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()  # type: ignore[operator]  # a callable without arguments
    finally:
        sys.setprofile(None)
    return calls


_RANDOM = Random(1)
_MOMENTS = [f"20{n % 31 + 10}-{n % 12 + 1:02d}-{n % 28 + 1:02d}T0{n % 10}:30:00Z" for n in range(450)]
_DENSE = {
    "dates": (" ".join(f"on {n % 28 + 1} May 20{n % 20 + 10} at {n % 23 + 1}:45" for n in range(250)),
              _MOMENTS),
    "digits": (" ".join(str(_RANDOM.randint(1000, 99999)) for _ in range(1300)),
               [{"k": n * 37 % 9901, "v": n * 1.7, "w": n % 99} for n in range(800)]),
    "amounts": (" ".join(f"${_RANDOM.randint(10, 9999)}.{n % 90 + 10}" for n in range(700)),
                [{"sku": f"A-{n}", "price_usd": n * 3.17, "qty": n % 9, "at": "x"} for n in range(380)]),
    "states": ("All done, everything was shipped and completed. " * 160,
               [{"name": f"order {n}", "status": ("pending", "failed", "done")[n % 3]} for n in range(700)]),
    "averages": ("The average is 5123.4 per day. " * 250, [{"n": n, "v": n * 17 % 8191} for n in range(800)]),
    "one word": ("a" * 8000, {"t": "b-" * 20_000}),
    "marks": ("!?.,;:-–" * 1000, {"t": "{[(<|" * 10_000}),
    "table": ("| 1 | 2 |\n" * 700, "| a | b |\n|---|---|\n" + "| 12 | 34 |\n" * 450),
    "cells": ("It costs 5.", "<tr><td>1</td>" * 4000),
    "members": ("is 5 of 7 " * 300, "\n".join(f"key{n} = value {n}" for n in range(900))),
}  # fmt: skip


@pytest.mark.parametrize("kind", _DENSE)
def test_texts_made_to_be_slow_take_bounded_work_and_time(kind: str) -> None:
    answer, result = _DENSE[kind]
    evaluator = ToolResponseHandling(ToolResponseHandlingConfig(gating="all"))
    run = answered(answer[:8000], call(result), user="How many are there, on average?")  # type: ignore[arg-type]  # JSON

    assert _steps(lambda: evaluator.evaluate(run, RunFacts())) < 250_000
    assert (
        min(
            timeit.repeat(lambda: evaluator.evaluate(run, RunFacts()), timer=process_time, number=1, repeat=3)
        )
        < 0.4
    )


def test_more_numbers_in_texts_than_are_read_is_over_limit() -> None:
    evaluator = ToolResponseHandling(ToolResponseHandlingConfig())

    answer = evaluator.evaluate(answered("Fine.", call([f"{n} figs, " * 300 for n in range(9)])), RunFacts())

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.OVER_LIMIT is answer.reason
