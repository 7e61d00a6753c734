"""Which runs a search is for: a filter, the query that people write for one, and what SQLite makes of it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from collector.config_fields import parse_moment
from collector.errors import TracegradeError
from collector.store.run_rows import TEXT_COLUMNS, as_held
from processors.documents import did_you_mean
from processors.model import NotEvaluatedReason, Outcome

_MAX_CHARACTERS = 300
_TERM = re.compile(r'(?:([a-z_]+):(?!/))?(?:"([^"]*)("?)|(\S*))\s*')
_HAS_WORD = re.compile(r"[^\W_]").search
_REGRADE = re.compile(r"([0-9]{1,17})(?:\.([0-9]{1,17}))?")
_TEXT_FIELDS = tuple(column for column in TEXT_COLUMNS if column != "other")
_AFTER_HEX = "g"
"""Sorts after every digit of a trace id."""

FILTER_FIELDS = (
    "agent", "evaluation", "outcome", "cause", "tool", "text", "conversation", "tenant", "version", "dialect",
    "trace", "not_evaluated", "regrade",
)  # fmt: skip
"""Fields of a `RunFilter` that are texts."""
MOMENTS = ("since", "until")
"""Its fields that are times."""
SEARCH_FIELDS = (*_TEXT_FIELDS, *(name for name in FILTER_FIELDS if name not in ("cause", "text")))
"""What may stand before a colon in the text of a search."""

Condition: TypeAlias = tuple[str, *tuple[str | int, ...]]
"""A condition in SQL, followed by its values."""


class InvalidSearch(TracegradeError):
    """A search that cannot be read; the message is one line: where, what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs to find; empty fields match every run.

    `since` and `until` are Unix milliseconds. With `evaluation`, `outcome` is that of the evaluation, else
    that of the run; with both, `cause` is one that `RunQueries.causes` gives. `trace` is a trace id or its
    beginning. `not_evaluated` is why an evaluation, or that one, gave no verdict; one with several reasons
    matches each. `regrade` is the id of a regrade: runs that it graded again; with a dot and the number of a
    change, those that it changes so. `before` and `after` are ids of runs: only older or newer ones.

    `text` finds runs that have all its terms: a word, or the beginning of one; a "phrase" in quotes; or a
    field, a colon and a word or phrase. `answer:`, `reason:` (why evaluations did not pass), `input:` and
    `call:` look only there, the other fields of `SEARCH_FIELDS` are those of this filter.
    """

    agent: str = ""
    evaluation: str = ""
    outcome: str = ""
    cause: str = ""
    tool: str = ""
    text: str = ""
    conversation: str = ""
    tenant: str = ""
    version: str = ""
    dialect: str = ""
    trace: str = ""
    not_evaluated: str = ""
    regrade: str = ""
    since: int = 0
    until: int = 0
    before: int = 0
    after: int = 0


def read_filter(fields: Mapping[str, str], now: int) -> RunFilter:
    """The filter that people write as these fields, of which none is empty; `now` is the present.

    Times are Unix milliseconds. Raises `InvalidSearch`.
    """
    values: dict[str, Any] = {**fields}
    for name in MOMENTS:
        try:
            if name in fields:
                values[name] = parse_moment(fields[name], now)
        except ValueError as error:
            raise InvalidSearch(f"{name}: {error}") from error
    run_filter = RunFilter(**values)
    resolved(run_filter)
    return run_filter


def resolved(run_filter: RunFilter) -> tuple[RunFilter, str]:
    """The filter with the fields that its text names, and what a text index has to match.

    That is in the language of FTS5, and empty without words to look for. Raises `InvalidSearch`.
    """
    matches: list[str] = []
    for field, value in _terms(run_filter.text):
        if field in FILTER_FIELDS:
            if getattr(run_filter, field) not in ("", value):
                raise InvalidSearch(
                    f"{field}: expected one value, got {getattr(run_filter, field)!r} and {value!r}"
                )
            fields: dict[str, Any] = {field: value}
            run_filter = replace(run_filter, **fields)
        else:
            matches.append(f"{{{field}}} : {value}" if field else value)
    if run_filter.outcome and run_filter.outcome not in list(Outcome):
        expected = ", ".join(Outcome)
        raise InvalidSearch(f"outcome: expected one of {expected}, got {run_filter.outcome[:100]!r}")
    if run_filter.not_evaluated and run_filter.not_evaluated not in list(NotEvaluatedReason):
        expected, got = ", ".join(NotEvaluatedReason), run_filter.not_evaluated[:100]
        raise InvalidSearch(f"not_evaluated: expected one of {expected}, got {got!r}")
    if run_filter.regrade and not _REGRADE.fullmatch(run_filter.regrade):
        raise InvalidSearch(
            f"regrade: expected the id of a regrade, such as 3 or 3.1, got {run_filter.regrade[:100]!r}"
        )
    return run_filter, " AND ".join(matches)


def unknown_name(run_filter: RunFilter, known: Mapping[str, Sequence[str]]) -> str:
    """What is wrong with a filter that names what the store does not know; empty if nothing is.

    `known` is what `RunQueries.names` gives.
    """
    chosen = resolved(run_filter)[0]
    for field in ("agent", "evaluation", "tool"):
        name, names = getattr(chosen, field), known.get(f"{field}s", ())
        if name and names and name not in names:
            return f'{field}: no {field} "{name}" in the store{did_you_mean(name, names)}'
    return ""


def _terms(text: str) -> Iterator[tuple[str, str]]:
    """The field of each term, empty if it has none, and its value: for a text field, what FTS5 matches."""
    if len(text) > _MAX_CHARACTERS:
        raise InvalidSearch(f"text: expected at most {_MAX_CHARACTERS} characters, got {len(text)}")
    is_empty = True
    for term in _TERM.finditer(as_held(text)):
        field, phrase, closing, word = term.groups(default="")
        is_phrase = term[2] is not None
        if is_phrase and not closing:
            raise InvalidSearch(f'text: expected a closing quote after "{phrase[:100]}')
        if field and field not in SEARCH_FIELDS:
            if is_phrase or word:
                raise InvalidSearch(
                    f"text: unknown field {field}:{did_you_mean(field, SEARCH_FIELDS)}; known: "
                    f"{', '.join(SEARCH_FIELDS)}; to search for the colon's word, put it in quotes"
                )
            field, word = "", field
        value = phrase if is_phrase else word
        has_word = _HAS_WORD(value) is not None
        if field and not has_word:
            raise InvalidSearch(f'text: expected a word or a "phrase" right after {field}:')
        if has_word:
            is_empty = False
            is_matched = not field or field in _TEXT_FIELDS
            quoted = '"{}"'.format(re.sub('["\0]', " ", value)) + ("" if is_phrase else "*")
            yield field, quoted if is_matched else value
    if is_empty and text.strip():
        raise InvalidSearch(f"text: expected a word, got {text[:100]!r}")


def conditions_of(run_filter: RunFilter) -> list[Condition]:
    """The conditions of a filter on rows of `runs`, except for its text."""
    selections: list[Condition] = [
        (f"id IN (SELECT run FROM {table} WHERE {condition})", *values)
        for table, (condition, *values) in _selections(run_filter).items()
    ]
    return [*selections, *_own_conditions(run_filter)]


def source_of(run_filter: RunFilter) -> tuple[str, str, list[Condition]]:
    """Where the runs of a filter without text are: a source in SQL, the key that orders them, conditions.

    A table whose index has the runs in their order is read in it, so that few of many rows are read.
    """
    if run_filter.evaluation and run_filter.outcome:
        table, rest = "results", replace(run_filter, evaluation="", outcome="", cause="")
    elif run_filter.tool:
        table, rest = "tools", replace(run_filter, tool="")
    else:
        return "runs", "id", conditions_of(run_filter)
    selection = _selections(run_filter)[table]
    return f"{table} CROSS JOIN runs ON id = run", f"{table}.run", [selection, *conditions_of(rest)]


def _selections(run_filter: RunFilter) -> dict[str, Condition]:
    """Other tables that name the runs of a filter, each with the condition on its rows."""
    selections: dict[str, Condition] = {}
    if run_filter.evaluation:
        chosen = {name: getattr(run_filter, name) for name in ("evaluation", "outcome", "cause")}
        condition = " AND ".join([f"results.{name} = ?" for name, value in chosen.items() if value])
        selections["results"] = condition, *filter(None, chosen.values())
    if run_filter.tool:
        selections["tools"] = "tool = ?", run_filter.tool
    if run_filter.regrade:
        regrade, _, number = run_filter.regrade.partition(".")
        selections["regraded"] = "regrade = ? AND number = ?", int(regrade), int(number or 0)
    return selections


def _own_conditions(run_filter: RunFilter) -> Iterator[Condition]:
    for column in ("agent", "tenant", "conversation", "version", "dialect"):
        if value := getattr(run_filter, column):
            yield f"{column} = ?", value
    if run_filter.outcome and not run_filter.evaluation:
        yield "runs.outcome = ?", run_filter.outcome
    if reason := run_filter.not_evaluated:
        condition = "id IN (SELECT run FROM results WHERE outcome = 'not_evaluated' AND cause IN (?, '')"
        if run_filter.evaluation:
            yield f"{condition} AND evaluation = ?)", reason, run_filter.evaluation
        else:
            yield f"{condition})", reason
    if trace := run_filter.trace.lower():
        yield "trace >= ? AND trace < ?", trace, f"{trace}{_AFTER_HEX}"
    bounds = {
        "time >=": run_filter.since,
        "time <": run_filter.until,
        "id <": run_filter.before,
        "id >": run_filter.after,
    }
    for comparison, bound in bounds.items():
        if bound:
            yield f"{comparison} ?", bound
