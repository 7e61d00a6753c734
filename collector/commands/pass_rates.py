"""Pass rates of evaluations over recorded runs: against a minimum, and against those of a baseline.

Whether a rate dropped by more than chance is decided by Fisher's exact test on passed and failed results
before and now, one-sided, with the p-values adjusted for the number of evaluations after Holm (1979).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from collector.commands.output import printable, shortened
from processors.model import AgentRun, EvaluationResult, GradedRun, Outcome, encode_json

SIGNIFICANCE = 0.05
"""How probable it may be that a drop is reported which is only chance, over all evaluations together."""
_MAX_EXPLANATION = 300

_Key: TypeAlias = tuple[str, str]
"""Agent and evaluation."""


@dataclass(slots=True)
class Tally:
    """Results that passed, that failed or errored, and that gave no verdict."""

    passed: int = 0
    failed: int = 0
    not_evaluated: int = 0

    @property
    def decided(self) -> int:
        """Passed and failed."""
        return self.passed + self.failed

    @property
    def rate(self) -> float:
        """The share of `decided` that passed, which are some."""
        return self.passed / self.decided

    def add(self, outcome: Outcome) -> None:
        """Count a result."""
        if outcome is Outcome.PASS:
            self.passed += 1
        elif outcome is Outcome.NOT_EVALUATED:
            self.not_evaluated += 1
        else:
            self.failed += 1

    def add_all(self, other: "Tally") -> None:
        """Count the results that `other` counted."""
        self.passed += other.passed
        self.failed += other.failed
        self.not_evaluated += other.not_evaluated

    def __str__(self) -> str:
        """As in `97.5 % of 80`."""
        shown = f"{percent(self.rate)} of {self.decided}" if self.decided else "no verdict"
        return f"{shown}, {self.not_evaluated} not evaluated" if self.not_evaluated else shown


class Failure(NamedTuple):
    """A result that failed."""

    agent: str
    name: str
    trace_id: bytes
    explanation: str


@dataclass(frozen=True, slots=True)
class JudgedRate:
    """A row of the report: a pass rate or pass^k of an agent, as text.

    `problem` is why it should stop a change, mostly empty; `remark` is what else is to know.
    """

    agent: str
    name: str
    before: str
    now: str
    problem: str = ""
    remark: str = ""


@dataclass
class PassRates:
    """Counts graded runs, and judges their rates.

    `minimum` is the least rate that is accepted, None for any. With `k`, pass^k is judged as well: how
    probable it is that `k` runs of a case all pass, as the mean over the cases with at least `k` verdicts.
    Runs of an agent with equal input are those of one case. Evaluations that are advisory, muted or in shadow
    never have a problem.
    """

    minimum: float | None = None
    k: int | None = None
    runs: int = field(default=0, init=False)
    has_baseline: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._tallies: dict[_Key, tuple[Tally, Tally]] = {}
        self._exemptions: dict[_Key, str] = {}
        self._cases: dict[str, dict[bytes, Tally]] = {}

    def add_baseline(self, graded: GradedRun) -> None:
        """Count a run of the baseline."""
        self.has_baseline = True
        for result in graded.results:
            self._add(graded.run, result)[0].add(result.outcome)

    def add(self, graded: GradedRun) -> None:
        """Count a run whose rates are judged."""
        self.runs += 1
        for result in graded.results:
            self._add(graded.run, result)[1].add(result.outcome)
        if self.k is not None:
            cases = self._cases.setdefault(graded.run.agent.name, {})
            cases.setdefault(encode_json(graded.run.input), Tally()).add(graded.verdict)

    def anew(self) -> "PassRates":
        """One that has counted nothing, and would judge in the same way."""
        return PassRates(self.minimum, self.k)

    def add_all(self, further: "PassRates") -> None:
        """Count all that `further` counted after this."""
        self.runs += further.runs
        self._exemptions |= further._exemptions
        for key, (_, now) in further._tallies.items():
            self._tallies.setdefault(key, (Tally(), Tally()))[1].add_all(now)
        for agent, cases in further._cases.items():
            known = self._cases.setdefault(agent, {})
            for case, tally in cases.items():
                known.setdefault(case, Tally()).add_all(tally)

    def _add(self, run: AgentRun, result: EvaluationResult) -> tuple[Tally, Tally]:
        key = run.agent.name, result.name
        self._exemptions[key] = result.exemption
        return self._tallies.setdefault(key, (Tally(), Tally()))

    def judged(self) -> list[JudgedRate]:
        """The rates of all evaluations and agents: those with a problem first, then by name."""
        probabilities = _adjusted(
            {
                key: drop_probability(before, now)
                for key, (before, now) in self._tallies.items()
                if before.decided and now.decided and not self._exemptions[key]
            }
        )
        rows = [self._judged(key, probabilities.get(key)) for key in self._tallies]
        if self.k is not None:
            rows += [self._power(agent, cases, self.k) for agent, cases in self._cases.items()]
        return sorted(rows, key=lambda row: (not row.problem, row.agent, row.name))

    def _judged(self, key: _Key, probability: float | None) -> JudgedRate:
        before, now = self._tallies[key]
        exemption = self._exemptions[key]
        problems = []
        if now.decided and not exemption:
            problems += self._below(now.rate)
        if probability is not None and probability <= SIGNIFICANCE:
            problems.append("dropped by more than chance")
        remark = exemption or ("" if probability is None else f"p = {probability:.2g}")
        if before.decided and not now.decided:
            remark = "no verdict any more"
        return JudgedRate(
            *key, str(before) if self.has_baseline else "", str(now), "; ".join(problems), remark
        )

    def _power(self, agent: str, cases: Mapping[bytes, Tally], k: int) -> JudgedRate:
        # The share of the choices of k runs in which all passed is an unbiased estimate for a case.
        powers = [
            math.comb(case.passed, k) / math.comb(case.decided, k)
            for case in cases.values()
            if case.decided >= k
        ]
        value = math.fsum(powers) / len(powers) if powers else None
        now = "no case" if value is None else f"{percent(value)} over {len(powers)} cases"
        problem = "" if value is None else "".join(self._below(value))
        fewer = len(cases) - len(powers)
        remark = f"{fewer} cases with fewer than {k} verdicts" if fewer else ""
        return JudgedRate(agent, f"pass^{k}", "", now, problem, remark)

    def _below(self, rate: float) -> list[str]:
        is_below = self.minimum is not None and rate < self.minimum
        return [f"below {percent(self.minimum)}"] if is_below and self.minimum is not None else []


def drop_probability(before: Tally, now: Tally) -> float:
    """The probability of as few passes as in `now` by chance alone: Fisher's exact test, one-sided."""
    passed, failed = before.passed + now.passed, before.failed + now.failed
    everything = _log_choices(passed + failed, now.decided)
    return min(
        math.fsum(
            math.exp(_log_choices(passed, few) + _log_choices(failed, now.decided - few) - everything)
            for few in range(max(0, now.decided - failed), now.passed + 1)
        ),
        1.0,
    )


def _log_choices(of: int, chosen: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(chosen + 1) - math.lgamma(of - chosen + 1)


def _adjusted(probabilities: Mapping[_Key, float]) -> dict[_Key, float]:
    """p-values adjusted for the number of tests, after Holm."""
    adjusted, largest = {}, 0.0
    for rank, key in enumerate(sorted(probabilities, key=lambda key: probabilities[key])):
        largest = max(largest, min(probabilities[key] * (len(probabilities) - rank), 1.0))
        adjusted[key] = largest
    return adjusted


def percent(rate: float) -> str:
    """A rate in percent, to a tenth; never 100 % where something failed."""
    return f"{min(round(rate * 100, 1), 100 if rate == 1 else 99.9):g} %"


def summary_line(rates: Sequence[JudgedRate], runs: int) -> str:
    """How many of the rates have a problem."""
    problems = sum(bool(rate.problem) for rate in rates)
    return f"{runs} agent runs, {len(rates)} pass rates, {problems or 'none'} with a problem"


def rate_table(
    rates: Sequence[JudgedRate], *, has_baseline: bool
) -> tuple[Sequence[str], list[Sequence[str]]]:
    """The heading and the rows of a table of rates."""
    heading = ("agent", "evaluation", *(("before",) if has_baseline else ()), "passed", "problem", "")
    rows: list[Sequence[str]] = [
        (
            rate.agent,
            rate.name,
            *((rate.before,) if has_baseline else ()),
            rate.now,
            rate.problem,
            rate.remark,
        )
        for rate in rates
    ]
    return heading, rows


def markdown_summary(
    rates: Sequence[JudgedRate],
    failures: Sequence[Failure],
    *,
    runs: int,
    failed: int,
    has_baseline: bool,
) -> Iterator[str]:
    """The lines of a summary for a pull request: the rates, and the first of the `failed` results."""
    yield f"### tracegrade: {summary_line(rates, runs)}"
    yield ""
    heading, rows = rate_table(rates, has_baseline=has_baseline)
    yield f"| {' | '.join(heading)} |"
    yield f"|{' --- |' * len(heading)}"
    for agent, name, *others in rows:
        yield f"| {' | '.join([_code(agent), _code(name), *others])} |"
    if failures:
        yield from ("", f"<details><summary>{failed} results failed</summary>", "")
        for failure in failures:
            named = " ".join(map(_code, (failure.agent, failure.name, failure.trace_id.hex())))
            yield f"- {named} {_code(shortened(failure.explanation, _MAX_EXPLANATION))}"
        if failed > len(failures):
            yield f"- and {failed - len(failures)} more"
        yield from ("", "</details>")


def _code(text: str) -> str:
    """`text` as code, in which nothing mentions, links or marks up, also in a table."""
    plain = printable(text).replace("`", "'").replace("|", "\\|").strip()
    return f"`{plain}`" if plain else ""
