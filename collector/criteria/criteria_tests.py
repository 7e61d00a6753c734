"""Runs the tests that criteria files carry, with the code that grades in the service.

What a test gets wrong is a problem of its file, like any other mistake in it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from collector.workers.offline import OfflineWorkers
from processors.annotation import run_from_json
from processors.criteria import (
    CriteriaCase,
    CriteriaDocument,
    CriteriaSet,
    Evaluation,
    ExpectedResultEntry,
)
from processors.documents import Path as DocumentPath
from processors.documents import Problem, did_you_mean
from processors.model import (
    AgentRun,
    EvaluationResult,
    GradedRun,
    JsonObject,
    PriceTable,
    Scope,
)

if TYPE_CHECKING:  # the service runs no tests of criteria files
    from collector.recordings import RecordedStream

_SCORE_TOLERANCE = 1e-9
_SESSION = "the conversation of the test"
"""The session of runs that name none, where earlier runs are written."""
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def run_criteria_tests(
    cases: Sequence[CriteriaCase],
    criteria: CriteriaSet,
    workers: OfflineWorkers | None = None,
    refused: Sequence[CriteriaDocument] = (),
    *,
    prices: PriceTable | None = None,
    warnings: list[Problem] | None = None,
) -> list[Problem]:
    """What the tests of criteria files find wrong with `criteria`, in their order; none: all pass.

    Each expectation has to hold for every run of its test to which an evaluation of that name belongs.
    Sampling does not apply: in a test every trace is drawn. `workers` run custom evaluators, `prices` are
    what models cost. What there is of `refused` files is looked at as well; of evaluations that are missing
    for it nothing is said. `warnings` takes paths in constraints that no run of the tests has.
    """
    agents = [*criteria.agents, *(agent for document in refused for agent in document.agents)]
    drawn = CriteriaSet(
        [
            replace(agent, evaluations=[replace(one, sample=1) for one in agent.evaluations])
            for agent in agents
        ]
    )
    cases = [*cases, *(case for document in refused for case in document.cases)]
    broken = frozenset[str]().union(*(document.broken for document in refused))
    if not all(document.broken or document.agents for document in refused):
        broken |= {""}  # one could not be read at all
    runs: list[AgentRun] = []
    problems = [
        problem for case in cases for problem in _problems(case, drawn, workers, broken, prices, runs)
    ]
    if warnings is not None:
        warnings += _doubts(drawn, runs)
    return problems


def _doubts(criteria: CriteriaSet, runs: Sequence[AgentRun]) -> Iterator[Problem]:
    """Paths in constraints that no run has to which their evaluation belongs."""
    own: dict[str, tuple[Evaluation, list[AgentRun]]] = {}
    of_trace: dict[bytes, list[AgentRun]] = {}
    for run in runs:
        of_trace.setdefault(run.trace_id, []).append(run)
    for run in runs:
        for evaluation in criteria.evaluations_for(run.agent.name, run.tenant):
            seen = of_trace[run.trace_id] if evaluation.scope is Scope.TRACE else [run]
            own.setdefault(evaluation.source, (evaluation, []))[1].extend(seen)
    for source, (evaluation, graded) in own.items():
        for message in evaluation.evaluator.doubts(graded):
            yield Problem.at(source, "", f'"{evaluation.name}": {message}')


def _problems(
    case: CriteriaCase,
    criteria: CriteriaSet,
    workers: OfflineWorkers | None,
    broken: frozenset[str],
    prices: PriceTable | None,
    runs: list[AgentRun],
) -> Iterator[Problem]:
    """What is wrong with a test; `broken` are the names of evaluations that are missing.

    `runs` takes the runs that it reads.
    """
    from collector.recordings import RecordedStream

    stream = RecordedStream(prices=prices, workers=workers)
    unusable = _add_runs(case, stream) if case.trace is None else _add_trace(case, stream)
    if unusable:
        yield from unusable
        return
    graded = [result for result in stream.grade(criteria) if case.agent in (None, result.run.agent.name)]
    runs += [result.run for result in graded]
    if case.earlier is not None:
        graded = graded[-1:]
    if not graded:
        whose = "" if case.agent is None else f' of "{case.agent}"'
        yield case.problem(("trace",), f'"{case.name}": there is no agent run{whose} in this trace')
        return
    for name, expected in case.expect.items():
        for message in _mismatches(name, expected, graded, criteria, broken):
            yield case.problem(("expect", name), f'"{case.name}": {message}')


def _add_runs(case: CriteriaCase, stream: "RecordedStream") -> list[Problem]:
    """Add the run of a test after the earlier ones, or the runs of one trace."""
    problems: list[Problem] = []
    written: list[tuple[DocumentPath, JsonObject | None]] = [
        (("earlier", index), run) for index, run in enumerate(case.earlier or ())
    ]
    of_trace = case.runs is not None
    written += [(("runs", index), run) for index, run in enumerate(case.runs or ())]
    trace_id: bytes | None = None
    for path, content in written if of_trace else [*written, (("run",), case.run)]:
        # Ids that are left out are made of this: those of two runs on one line differ by the path.
        where = f"{case.file}:{case.problem(path, '').line}"
        if case.earlier is not None or of_trace:
            where += f": {'.'.join(map(str, path))}"
        try:
            run = run_from_json(content, where)
        except ValueError as error:
            problems += [
                _run_problem(case, path, line.removeprefix(f"{where}: ")) for line in str(error).splitlines()
            ]
            continue
        session = run.session or (None if case.earlier is None else _SESSION)
        if of_trace:
            trace_id = trace_id or run.trace_id
            run = replace(run, trace_id=trace_id)
        stream.add_run(replace(run, tenant=run.tenant or case.tenant, session=session))
    return problems


def _run_problem(case: CriteriaCase, run: DocumentPath, text: str) -> Problem:
    """A problem that reading the run reported as `path: message`, at its place in the criteria file."""
    path, separator, message = text.partition(": ")
    if not separator:
        return case.problem(run, text)
    steps = [int(index) if index else key for index, key in _STEP.findall(path)]
    return case.problem((*run, *steps), message)


def _add_trace(case: CriteriaCase, stream: "RecordedStream") -> list[Problem]:
    path = Path(case.file).parent / str(case.trace)
    return [case.problem(("trace",), str(problem)) for problem in stream.read([path])]


def _mismatches(
    name: str,
    expected: ExpectedResultEntry,
    graded: Sequence[GradedRun],
    criteria: CriteriaSet,
    broken: frozenset[str],
) -> Iterator[str]:
    if name in broken:
        return
    known: set[str] = set()
    is_known = False
    is_graded = any(result.name == name for outcome in graded for result in outcome.results)
    for outcome in graded:
        run = outcome.run
        scopes = {one.name: one.scope for one in criteria.evaluations_for(run.agent.name, run.tenant)}
        known |= scopes.keys()
        if name not in scopes:
            continue
        is_known = True
        result = next((result for result in outcome.results if result.name == name), None)
        if result is None and is_graded and scopes[name] is Scope.TRACE:
            continue  # it is made once, on another run
        if not _is_as_expected(expected, result):
            shown = _result_text(expected.outcome, expected.score, expected.reason)
            yield f"expected {shown}, found {_described(result)}"
    if not is_known and not broken:
        agents = ", ".join(sorted({f'"{outcome.run.agent.name}"' for outcome in graded}))
        yield f'{agents} has no evaluation "{name}"{did_you_mean(name, sorted(known))}'


def _is_as_expected(expected: ExpectedResultEntry, result: EvaluationResult | None) -> bool:
    if result is None:
        return expected.outcome == "skipped"
    return (
        expected.outcome == result.outcome.value
        and (
            expected.score is None
            or (result.score is not None and abs(expected.score - result.score) <= _SCORE_TOLERANCE)
        )
        and (expected.reason is None or expected.reason == result.reason)
    )


def _described(result: EvaluationResult | None) -> str:
    if result is None:
        return "skipped: it does not apply to this run"
    text = _result_text(result.outcome, result.score, result.reason)
    note = f" ({result.exemption})" if result.exemption else ""
    return text + note + (f": {result.explanation}" if result.explanation else "")


def _result_text(outcome: str, score: float | None, reason: str | None) -> str:
    shown = "" if score is None else f" with score {score:.9g}"
    return outcome + shown + (f" ({reason})" if reason else "")
