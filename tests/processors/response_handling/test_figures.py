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
from processors.model import NotEvaluated, NotEvaluatedReason, RunFacts
from processors.response_handling import (
    disclosure,
    errors,
    failures,
    ledger,
    lexicon,
    numbers,
    reading,
    rules,
)
from processors.response_handling import response as response_module
from processors.response_handling.lexicon import LANGUAGES
from processors.response_handling.lexicons import patterns
from tests.support.agent_responses import answered, call
from tests.support.response_handling import figures_of, read_cases, rules_found
from tests.support.response_mutations import mutations

DATA = Path(__file__).parents[2] / "data"
FILES = sorted((DATA / "response_handling").glob("*.jsonl"))
HARD = read_cases(DATA / "parity" / "response_handling_hard.jsonl")
LABELLED = read_cases(DATA / "parity" / "response_handling_labelled.jsonl")
DEVELOPMENT = read_cases(DATA / "response_handling" / "dev.jsonl")
FRESH = read_cases(DATA / "response_handling" / "fresh.jsonl")
MODULES = (
    disclosure, errors, failures, ledger, lexicon, numbers, patterns, reading, response_module, rules,
)  # fmt: skip
GUARDED = {
    "RH1.2": 29, "RH1.7": 66, "RH3.1": 7, "RH3.5": 22, "RH4": 48, "RH5": 4, "RH7.1": 23, "RH7.2": 50,
    "RH9.a": 25,
}  # fmt: skip
"""In how many of the labelled wrong answers each rule finds something."""


def test_labelled_cases_are_caught_by_the_rules_that_remain_and_hardly_any_sound_one_is_flagged() -> None:
    figures = figures_of([*(case for file in FILES for case in read_cases(file)), *HARD, *LABELLED])

    assert (1197, 1470) == (figures.wrong, figures.sound)
    assert figures.caught_by_all >= 237
    assert figures.flagged_by_all <= 15
    assert GUARDED.items() <= dict(figures.right_of_rule).items()


def test_of_numbers_changed_in_sound_answers_most_are_caught() -> None:
    tried: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    config = ToolResponseHandlingConfig(gating="all")
    for case in (*LABELLED, *HARD, *DEVELOPMENT, *FRESH):
        if case["label"] != "correct" or rules_found(case, config) or not isinstance(case["output"], str):
            continue
        for kind, output in mutations(case["output"]):
            tried[kind] += 1
            caught[kind] += bool(rules_found({**case, "output": output}, config))

    for kind in ("transposed", "one digit"):
        assert tried[kind] > 80
        assert caught[kind] / tried[kind] >= 0.7, f"{kind}: {caught[kind]} of {tried[kind]}"


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

    assert _steps(lambda: evaluator.evaluate(run, RunFacts())) < 100_000
    assert (
        min(
            timeit.repeat(lambda: evaluator.evaluate(run, RunFacts()), timer=process_time, number=1, repeat=3)
        )
        < 0.4
    )


def test_more_numbers_in_texts_than_are_read_is_over_limit() -> None:
    evaluator = ToolResponseHandling(ToolResponseHandlingConfig())

    answer = evaluator.evaluate(
        answered("It is 4.5.", call([f"{n} figs, " * 300 for n in range(9)])), RunFacts()
    )

    assert isinstance(answer, NotEvaluated)
    assert NotEvaluatedReason.OVER_LIMIT is answer.reason
