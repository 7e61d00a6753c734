"""Reviews: whether people find verdicts right, and how precise that shows evaluations to be. Blocking.

Each review is retained as it was given, with who gave it and when; the newest review of a verdict counts.
Reviews are as old as `store.retention` allows and do not retain their run, but contain what is counted of it.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, NamedTuple

from collector.errors import TracegradeError
from collector.store.run_queries import RunQueries
from collector.store.run_rows import as_held
from processors.model import JsonObject, JsonValue

MAX_COMMENT_CHARACTERS, MAX_REVIEWER_CHARACTERS = 1_000, 100
_MAX_NAME_CHARACTERS = 300
_MAX_RULES = 20
_PAGE = 500
_Z = 1.959963984540054
"""Of a two-sided interval with 95 % confidence."""
_CURRENT = ("id IN (SELECT max(id) FROM reviews GROUP BY trace_id, span_id, evaluation, tool_call_id)",)


class Answer(StrEnum):
    """What a person answers to a verdict."""

    RIGHT = "right"
    WRONG = "wrong"
    UNCLEAR = "unclear"


class InvalidReview(TracegradeError):
    """There is no such verdict, or a field has an unusable value; the message says which."""


@dataclass(frozen=True, slots=True)
class NewReview:
    """A review before it is stored; without `span_id`, the trace must have one run with this verdict."""

    trace_id: str
    evaluation: str
    answer: str
    span_id: str = ""
    tool_call_id: str = ""
    comment: str = ""
    reviewer: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """A stored review: `outcome` and `rules` are what the verdict was, and which rules it named.

    `reviewer` is the name that was given, `credential` how the request was authenticated.
    """

    id: int
    milliseconds: int
    tenant: str
    agent: str
    version: str
    trace_id: str
    span_id: str
    evaluation: str
    tool_call_id: str
    outcome: str
    rules: tuple[str, ...]
    answer: str
    comment: str
    reviewer: str
    credential: str


_FIELDS = tuple(field.name for field in fields(Review))


class VerdictKey(NamedTuple):
    """The verdict that a review is about, within its trace."""

    span_id: str
    evaluation: str
    tool_call_id: str


class Reviewed(NamedTuple):
    """Whose verdicts are counted; `rule` is empty for the evaluation as a whole."""

    tenant: str
    agent: str
    evaluation: str
    rule: str = ""


@dataclass(slots=True)
class Precision:
    """Answers to failures, and how many passes were answered as wrong."""

    right: int = 0
    wrong: int = 0
    unclear: int = 0
    missed: int = 0

    @property
    def share(self) -> float | None:
        """The share of failures answered right or wrong that are right; None if there are none."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else None

    @property
    def interval(self) -> tuple[float, float]:
        """Between which shares the true one is, with 95 % confidence (Wilson, 1927)."""
        return wilson_interval(self.right, self.right + self.wrong)

    def add(self, outcome: str, answer: str, count: int) -> None:
        """Count answers to verdicts with this outcome; only passes and failures count."""
        if outcome == "fail":
            setattr(self, answer, getattr(self, answer) + count)
        elif outcome == "pass" and answer == Answer.WRONG:
            self.missed += count

    def add_all(self, other: "Precision") -> None:
        """Add other counts."""
        self.right += other.right
        self.wrong += other.wrong
        self.unclear += other.unclear
        self.missed += other.missed

    def __str__(self) -> str:
        """For people, such as `8 of 10 failures right (49 % to 94 %)`."""
        parts = []
        if self.share is not None:
            low, high = self.interval
            parts.append(
                f"{self.right} of {self.right + self.wrong} failures right ({low:.0%} to {high:.0%})"
            )
        if self.missed:
            parts.append(f"{self.missed} passes wrong")
        if self.unclear:
            parts.append(f"{self.unclear} unclear")
        return ", ".join(parts)


def wilson_interval(hits: int, trials: int) -> tuple[float, float]:
    """The interval of a rate with `hits` in `trials`, 95 % confidence; all of [0, 1] without trials."""
    if not trials:
        return 0.0, 1.0
    rate, square = hits / trials, _Z * _Z
    middle = rate + square / (2 * trials)
    spread = _Z * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials * trials))
    scale = 1 + square / trials
    return max((middle - spread) / scale, 0.0), min((middle + spread) / scale, 1.0)


class Reviews:
    """Reads and adds reviews of the runs that `queries` may see.

    Every method may raise `sqlite3.Error`, and `StoreUnusable` if the store is not open.
    """

    def __init__(self, queries: RunQueries) -> None:
        self._queries = queries
        self._database = queries.database

    def add(self, new: NewReview, credential: str, milliseconds: int) -> Review:
        """Store a review given at this Unix time; raises `InvalidReview`."""
        if new.answer not in [answer.value for answer in Answer]:
            raise InvalidReview(f"answer: expected right, wrong or unclear, got {new.answer[:100]!r}")
        for name, most in (("comment", MAX_COMMENT_CHARACTERS), ("reviewer", MAX_REVIEWER_CHARACTERS)):
            if len(getattr(new, name)) > most:
                raise InvalidReview(f"{name}: expected at most {most} characters")
        summary, verdict = self._verdict(new)
        row = (
            None,  # the id
            milliseconds,
            summary.tenant,
            summary.agent,
            summary.version,
            summary.trace_id,
            summary.span_id,
            new.evaluation,
            _tool_call(verdict),
            str(verdict.get("outcome") or "")[:_MAX_NAME_CHARACTERS],
            " ".join(_rules(verdict)),
            new.answer,
            as_held(new.comment.strip()),
            as_held(new.reviewer.strip()),
            credential[:_MAX_NAME_CHARACTERS],
        )
        with self._database.writing() as connection:
            cursor = connection.execute(f"INSERT INTO reviews VALUES ({','.join('?' * len(row))})", row)
            self._database.remove_reviews(connection)
        self._database.on_review()
        return _review((cursor.lastrowid, *row[1:]))

    def each(
        self,
        *,
        agent: str = "",
        evaluation: str = "",
        answer: str = "",
        trace: str = "",
        since: int = 0,
        before: int = 0,
    ) -> Iterator[Review]:
        """The reviews that match, newest first, those that a newer one replaced included."""
        filters: dict[str, str | int] = {
            "agent = ?": agent,
            "evaluation = ?": evaluation,
            "answer = ?": answer,
            "trace_id = ?": trace,
            "milliseconds >= ?": since,
            "id < ?": before,
        }
        while True:
            conditions = [(condition, value) for condition, value in filters.items() if value]
            tail = f"ORDER BY id DESC LIMIT {_PAGE}"
            rows = self._queries.rows(", ".join(_FIELDS), "reviews", *conditions, tail=tail)
            yield from map(_review, rows)
            if len(rows) < _PAGE:
                return
            filters["id < ?"] = rows[-1][0]

    def of_trace(self, trace_id: str) -> dict[VerdictKey, list[Review]]:
        """The reviews of each verdict about a trace, newest first."""
        collected: dict[VerdictKey, list[Review]] = {}
        for review in self.each(trace=trace_id):
            key = VerdictKey(review.span_id, review.evaluation, review.tool_call_id)
            collected.setdefault(key, []).append(review)
        return collected

    def precision(self) -> dict[Reviewed, Precision]:
        """How precise the answers show each evaluation of an agent to be, as a whole and by rule."""
        columns = "tenant, agent, evaluation, rules, outcome, answer"
        rows = self._queries.rows(f"{columns}, count(*)", "reviews", _CURRENT, tail=f"GROUP BY {columns}")
        collected: dict[Reviewed, Precision] = {}
        for tenant, agent, evaluation, rules, outcome, answer, count in rows:
            for rule in ("", *rules.split()):
                key = Reviewed(tenant, agent, evaluation, rule)
                collected.setdefault(key, Precision()).add(outcome, answer, count)
        return {key: collected[key] for key in sorted(collected)}

    def wrong_outcomes(self) -> dict[tuple[str, str], set[str]]:
        """The outcomes of the verdicts that are answered as wrong, by trace and span of their run."""
        wrong = ("answer = ?", Answer.WRONG.value)
        collected: dict[tuple[str, str], set[str]] = {}
        for trace, span, outcome in self._queries.rows(
            "trace_id, span_id, outcome", "reviews", _CURRENT, wrong
        ):
            collected.setdefault((trace, span), set()).add(outcome)
        return collected

    def _verdict(self, new: NewReview) -> tuple[Any, JsonObject]:
        """The run that `new` is about, and the verdict in its line."""
        matching = [
            (summary, verdict)
            for summary, line in self._queries.runs_of_trace(new.trace_id.lower())
            if not new.span_id or summary.span_id == new.span_id
            for verdict in _verdicts(line)
            if verdict.get("name") == new.evaluation
            and (not new.tool_call_id or _tool_call(verdict) == new.tool_call_id)
        ]
        if not matching:
            raise InvalidReview("no stored run has this verdict: check trace_id, span_id and evaluation")
        if len({(summary.id, _tool_call(verdict)) for summary, verdict in matching}) > 1:
            raise InvalidReview("several verdicts of this trace match: give span_id and tool_call_id too")
        return matching[0]


def verdict_key(span_id: str, verdict: Mapping[str, JsonValue]) -> VerdictKey:
    """The key of a verdict in the line of the run with this span."""
    return VerdictKey(span_id, str(verdict.get("name") or ""), _tool_call(verdict))


def _tool_call(verdict: Mapping[str, JsonValue]) -> str:
    return str(verdict.get("tool_call_id") or verdict.get("tool_span_id") or "")[:_MAX_NAME_CHARACTERS]


def _verdicts(line: JsonObject) -> list[JsonObject]:
    verdicts = line.get("evaluations")
    return [one for one in verdicts if isinstance(one, dict)] if isinstance(verdicts, list) else []


def _rules(verdict: JsonObject) -> list[str]:
    """The rules that decided a verdict, where its evaluator names them."""
    details = verdict.get("details")
    violations = details.get("violations") if isinstance(details, dict) else None
    rules = [
        str(violation.get("check") or "").replace(" ", "-")[:_MAX_NAME_CHARACTERS]
        for violation in (violations if isinstance(violations, list) else ())
        if isinstance(violation, dict) and violation.get("gating") is not False
    ]
    return list(dict.fromkeys(filter(None, rules)))[:_MAX_RULES]


def _review(row: tuple[Any, ...]) -> Review:
    values: dict[str, Any] = dict(zip(_FIELDS, row, strict=True))
    return Review(**{**values, "rules": tuple(values["rules"].split())})
