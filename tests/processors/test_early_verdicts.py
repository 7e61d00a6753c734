"""A failure of a run that goes on is never undone: beginnings of recorded traces against the whole traces."""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from collector.recordings import RecordedStream
from collector.trace import FinishedTrace
from processors.criteria import CriteriaSet, read_criteria
from processors.evaluate import evaluate_run
from processors.model import AgentRun, EvaluationResult, ModelPrice, Outcome, PriceTable
from processors.reconstruction import OpenRun, open_runs, reconstruct, span_reader
from processors.records import trace_with_records
from processors.spans import RawRecord, RawSpan, read_span_head

RECORDINGS = Path(__file__).parents[1] / "data"
INPUTS = ("*.binpb*", "*.otlp.json*", "*.jsonl*", "input*.json")
SHARES = ("corpus", "recordings", "public_cases", "both_signals")
MOST_SPANS = 400
READ = span_reader().read


class Beginning(NamedTuple):
    """What had arrived of a trace at some time, and how to name it."""

    label: str
    spans: Sequence[RawSpan]
    records: Sequence[RawRecord]


def traces(folder: Path) -> list[FinishedTrace]:
    """The traces recorded in `folder`, whole."""
    finished: list[FinishedTrace] = []
    stream = RecordedStream()
    stream.read(sorted({path for pattern in INPUTS for path in folder.rglob(pattern)}))
    list(stream.grade(CriteriaSet(), before_trace=finished.append))
    return [trace for trace in finished if 0 < len(trace.spans) <= MOST_SPANS]


def beginnings(trace: FinishedTrace, most: int) -> Iterator[Beginning]:
    """Beginnings of a trace whose spans came in several orders, at most `most` of each."""
    heads = {span[0]: read_span_head(span[1]) for span in trace.spans}
    chance = random.Random(trace.trace_id)

    def root_last(spans: Sequence[RawSpan]) -> list[RawSpan]:
        return sorted(spans, key=lambda span: not heads[span[0]][0])

    shuffled = chance.sample(trace.spans, len(trace.spans))
    by_start = sorted(trace.spans, key=lambda span: heads[span[0]][2])
    orders: dict[str, Sequence[RawSpan]] = {
        "as recorded": trace.spans,
        "ended first": sorted(trace.spans, key=lambda span: heads[span[0]][3]),
        "begun first": by_start,
        "begun first, roots last": root_last(by_start),
        "by chance": shuffled,
        "by chance, roots last": root_last(shuffled),
    }
    records = list(trace.records)
    for label, spans in orders.items():
        count = len(spans)
        for length in sorted(chance.sample(range(1, count + 1), min(most, count))):
            yield Beginning(f"{label}, {length} of {count}", spans[:length], records)
            if records:
                some = chance.sample(records, chance.randrange(len(records)))
                yield Beginning(f"{label}, {length} of {count}, some records", spans[:length], some)


def criteria_for(runs: Sequence[AgentRun]) -> CriteriaSet:
    """Every evaluator that can be early, with limits around what `runs` came to."""
    tools = sorted({call.name for run in runs for call in run.calls if call.name})[:5]
    counts = sorted({0, 1, 2, *(len(run.calls) + more for run in runs for more in (0, 1))})[:8]
    tokens = sorted({run.usage.total_tokens - less for run in runs if run.usage for less in (0, 1)})[:8]
    costs = sorted({run.cost * share for run in runs if run.cost for share in (0.5, 0.999, 1)})[:8]
    checks: list[tuple[str, Mapping[str, Any] | None]] = [
        *(("tool-call-budget", {"max_calls": count}) for count in counts),
        *(("tool-call-budget", {"tools": {tool: {"max": most}}}) for tool in tools for most in (0, 1, 2)),
        *(("tool-permission", {"deny": [tool]}) for tool in tools),
        *(("tool-permission", {"allow": [tool]}) for tool in tools),
        *(("token-budget", {"max_total_tokens": most}) for most in tokens if most >= 0),
        ("token-budget", {"max_input_tokens": 0}),
        ("token-budget", {"max_output_tokens": 0}),
        *(("cost-budget", {"max_cost": most}) for most in costs),
        *(("tool-constraints", {"constraints": [{"absence": tool}]}) for tool in tools),
        *(("tool-constraints", {"constraints": [{"exactly": {"tool": tool, "times": 1}}]}) for tool in tools),
        *(("tool-constraints", {"constraints": [{"count": tool, "max": 1}]}) for tool in tools),
        *(
            ("tool-constraints", {"constraints": [{"not_co_existence": [one, other]}]})
            for one in tools
            for other in tools
            if one < other
        ),
    ]
    evaluations = [
        {"evaluator": evaluator, "name": f"check-{place}", "early": True, "criteria": criteria}
        for place, (evaluator, criteria) in enumerate(checks)
    ]
    evaluations += [
        {
            "evaluator": "tool-repetition",
            "name": f"repeated-{most}",
            "early": True,
            "config": {"threshold": most},
        }
        for most in (2, 3)
    ]
    text = yaml.safe_dump({"agents": {"*": {"evaluations": evaluations}}})
    return CriteriaSet(read_criteria(text, "criteria.yaml", {}).agents)


def spans_of(run: AgentRun) -> set[bytes]:
    """The ids of the spans that `run` was read from."""
    report: Any = run.content
    scope, ids = report.run, report.trace.tree.span_ids
    return {ids[position] for position in (*scope.tools, *scope.models, *scope.layers)}


def contradictions(folder: Path, most: int) -> tuple[list[str], int]:
    """The failures of beginnings that the final verdicts do not confirm, and how many they do confirm."""
    refuted: list[str] = []
    confirmed = 0
    for trace in traces(folder):
        whole = _whole(trace)
        if not whole:
            continue
        criteria = criteria_for(whole)
        verdicts = [
            (run, spans_of(run), _failed(evaluate_run(run, criteria.evaluations_for(run.agent.name))))
            for run in whole
        ]
        for beginning in beginnings(trace, most):
            for known in _opened(trace, beginning):
                name = known.run.agent.name if known.is_named else None
                failed = _failed(evaluate_run(known.run, criteria.early_for(name)))
                own = spans_of(known.run)
                run, _, finally_failed = max(verdicts, key=lambda verdict: len(own & verdict[1]))
                confirmed += len(failed & finally_failed)
                wrong = failed - finally_failed
                if failed and known.is_named and known.run.agent.name != run.agent.name:
                    wrong = failed
                refuted += [f"{beginning.label}: {known.run.agent.name}: {check}" for check in sorted(wrong)]
    return refuted, confirmed


PRICES = PriceTable({"*": ModelPrice(input=1.0, output=2.0, cached_input=0.1)})


def _whole(trace: FinishedTrace) -> list[AgentRun]:
    spans = _with_records(trace, Beginning("", trace.spans, trace.records))
    return reconstruct(spans, trace_id=trace.trace_id, reason=trace.reason, was_quiet=True, prices=PRICES)


def _opened(trace: FinishedTrace, beginning: Beginning) -> list[OpenRun]:
    return list(open_runs(_with_records(trace, beginning), trace_id=trace.trace_id, prices=PRICES))


def _with_records(trace: FinishedTrace, beginning: Beginning) -> Sequence[RawSpan]:
    if not beginning.records:
        return beginning.spans
    return trace_with_records(beginning.spans, beginning.records, trace.trace_id, READ)


def _failed(results: Sequence[EvaluationResult]) -> set[str]:
    return {result.name for result in results if result.outcome is Outcome.FAIL}


FOLDERS = sorted(
    {
        path.parent.parent if path.parent.name in ("traces", "logs") else path.parent
        for share in SHARES
        for pattern in INPUTS
        for path in (RECORDINGS / share).rglob(pattern)
    }
)
EVERY = 12
"""One recording of so many is looked at by the fast test."""


def test_no_failure_of_a_beginning_is_undone() -> None:
    confirmed = 0
    for folder in FOLDERS[::EVERY]:
        refuted, count = contradictions(folder, most=2)
        assert not refuted, folder
        confirmed += count
    assert confirmed > 100


@pytest.mark.slow
@pytest.mark.parametrize("share", SHARES)
def test_no_failure_of_any_beginning_is_undone(share: str) -> None:
    confirmed = 0
    for folder in FOLDERS:
        if folder.is_relative_to(RECORDINGS / share):
            refuted, count = contradictions(folder, most=12)
            assert not refuted, folder
            confirmed += count
    assert confirmed > 100
