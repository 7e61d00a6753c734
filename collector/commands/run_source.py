"""The run store that a command reads: a file, or that of a running service through its page."""

import json
import sqlite3
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from collector.clock import Clock
from collector.commands.arguments import (
    MOMENT,
    add_argument,
    add_config,
    endpoint_argument,
    moment_argument,
    path_argument,
)
from collector.commands.command import CommandContext, unusable
from collector.config_fields import parse_moment, reachable_address
from collector.store import (
    MOMENTS,
    InvalidSearch,
    NewReview,
    Precision,
    Review,
    Reviewed,
    Reviews,
    RunDatabase,
    RunFilter,
    RunQueries,
    StoreUnusable,
    open_store_file,
    read_filter,
    unknown_name,
)
from collector.tools.http_client import NoAnswerError, send_request
from processors.model import JsonObject

_TIMEOUT_SECONDS = 15.0
_RUNS_PER_REQUEST = 500

Filters: TypeAlias = Mapping[str, str]
"""Fields of a `RunFilter` as people write them."""
StoredRun: TypeAlias = tuple[Mapping[str, Any], JsonObject | None]
"""A summary, and the line of the run if that was needed."""
NeedsLine: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Whether the line of the run with this summary is needed."""


class _StoreFile:
    """A run store in a file; its answers are those of `_StoreOfService`."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._queries = RunQueries(open_store_file(path))
        self._clock = clock

    def agents(self) -> list[JsonObject]:
        """A summary of every agent."""
        return [agent.to_json() for agent in self._queries.agents()]

    def names(self) -> Mapping[str, Sequence[str]]:
        """The `agents`, `evaluations` and `tools` in the store."""
        return self._queries.names()

    def runs(self, filters: Filters, needs_line: NeedsLine) -> Iterator[StoredRun]:
        """All runs that match, newest first, read in pages; each with its line if needed and still there."""
        run_filter = run_filter_of(filters, self._clock)
        for run, line in self._queries.each(run_filter, lambda run: needs_line(asdict(run))):
            yield asdict(run), line

    def lines(self, trace_id: str) -> list[JsonObject]:
        """The lines of the runs of a trace."""
        return [line for _, line in self._queries.runs_of_trace(trace_id)]

    def reviews(self, filters: Filters) -> Iterator[Review]:
        """All reviews that match, newest first."""
        fields: dict[str, Any] = {**filters}
        if "since" in fields:
            fields["since"] = parse_moment(fields["since"], self._clock.unix_nano() // 1_000_000)
        return Reviews(self._queries).each(**fields)

    def precision(self) -> Mapping[Reviewed, Precision]:
        """How precise the answers show each evaluation to be."""
        return Reviews(self._queries).precision()

    def review(self, new: NewReview) -> Review:
        """Store a review; raises `InvalidReview`."""
        database = RunDatabase(self._queries.database.path, 0)
        database.open()
        try:
            return Reviews(RunQueries(database)).add(new, "store file", self._clock.unix_nano() // 1_000_000)
        finally:
            database.close()


class _StoreOfService:
    """The run store of a service, whose clock counts."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def agents(self) -> list[JsonObject]:
        return list(self._get("/api/agents")["agents"])

    def names(self) -> Mapping[str, Sequence[str]]:
        names: Mapping[str, Sequence[str]] = self._get("/api/agents").get("names", {})
        return names

    def runs(self, filters: Filters, needs_line: NeedsLine) -> Iterator[StoredRun]:
        before: dict[str, Any] = {}
        while page := self._get(f"/api/runs?{urlencode({**filters, **before, 'limit': _RUNS_PER_REQUEST})}")[
            "runs"
        ]:
            yield from ((run, self._line(run) if needs_line(run) else None) for run in page)
            before = {"before": page[-1]["id"]}

    def _line(self, run: Mapping[str, Any]) -> JsonObject | None:
        lines = self.lines(run["trace_id"])
        return next((line for line in lines if (line.get("span_id") or "") == run["span_id"]), None)

    def lines(self, trace_id: str) -> list[JsonObject]:
        return list(self._get(f"/api/run/{quote(trace_id, safe='')}")["runs"])

    def reviews(self, filters: Filters) -> Iterator[Review]:
        before: dict[str, Any] = {}
        while page := self._get(f"/api/reviews?{urlencode({**filters, **before})}")["reviews"]:
            yield from (Review(**{**review, "rules": tuple(review["rules"])}) for review in page)
            before = {"before": page[-1]["id"]}

    def precision(self) -> Mapping[Reviewed, Precision]:
        answers = self._get("/api/reviews")["precision"]
        return {Reviewed(*(one.pop(name) for name in Reviewed._fields)): Precision(**one) for one in answers}

    def review(self, new: NewReview) -> Review:
        review = self._get("/api/reviews", json.dumps(asdict(new)).encode())
        return Review(**{**review, "rules": tuple(review["rules"])})

    def _get(self, path: str, body: bytes | None = None) -> Any:
        headers = self._headers | ({"content-type": "application/json"} if body else {})
        try:
            status, answer = send_request(
                f"http://{self._address}{path}", body, headers=headers, timeout_seconds=_TIMEOUT_SECONDS
            )
            if status in (HTTPStatus.OK, HTTPStatus.CREATED):
                return json.loads(answer)
        except NoAnswerError as error:
            raise unusable(f"no answer from http://{self._address}: {error}") from None
        except ValueError as error:
            raise unusable(f"no answer from http://{self._address}: {error}") from None
        message = answer[:1000].decode(errors="replace").strip()
        raise unusable(f"http://{self._address}: {status}: {message}")


RunSource: TypeAlias = _StoreFile | _StoreOfService


def add_source(parser: ArgumentParser) -> None:
    """Declare the arguments that name a store."""
    add_config(parser, "the service file, whose store is read (default: built-in defaults)")
    source = parser.add_mutually_exclusive_group()
    add_argument(source, "--store", path_argument, "FILE", "the file of a run store")
    add_argument(source, "--endpoint", endpoint_argument, "HOST:PORT", "the page of a running service")
    add_argument(parser, "--token-file", path_argument, "FILE", "holds the token for --endpoint")


def add_filters(parser: ArgumentParser) -> None:
    """Declare the arguments that choose runs."""
    outcomes = ["pass", "fail", "error", "not_evaluated"]
    add_argument(parser, "--agent", str, "NAME", "runs of this agent")
    add_argument(parser, "--version", str, "VERSION", "runs of this version of the agent")
    add_argument(parser, "--evaluation", str, "NAME", "runs to which this evaluation applied")
    parser.add_argument(
        "--outcome", choices=outcomes, help="of the evaluation, if one is given, else of the run"
    )
    add_argument(parser, "--tool", str, "NAME", "runs that called this tool")
    words = 'runs with all these words, "phrases" and fields such as answer:A-18 (docs/page.md)'
    add_argument(parser, "--text", str, "WORDS", words)
    add_argument(parser, "--conversation", str, "ID", "runs of this conversation")
    add_argument(parser, "--since", moment_argument, "TIME", f"graded since then: {MOMENT}")
    add_argument(parser, "--until", moment_argument, "TIME", "graded before then, written in the same way")


def filters_of(options: Namespace) -> dict[str, str]:
    """The filters among the arguments of `add_filters`."""
    names = ("agent", "version", "evaluation", "outcome", "tool", "text", "conversation", *MOMENTS)
    values = {name: getattr(options, name) for name in names}
    values["not_evaluated"] = getattr(options, "reason", None)
    return {name: value for name, value in values.items() if value}


def run_filter_of(filters: Filters, clock: Clock) -> RunFilter:
    """The filter of a store that these are; raises InvalidInput."""
    try:
        return read_filter(filters, clock.unix_nano() // 1_000_000)
    except InvalidSearch as error:
        raise unusable(f"--{error}") from None


def store_path(options: Namespace, context: CommandContext) -> Path:
    """The file of the store that the arguments name; raises InvalidInput where they name none."""
    path: Path | None = options.store or context.service_file(options.config).store.path
    if path is None:
        raise unusable("no store to read: expected --store, --endpoint, or --config with store.path")
    return path


def check_names(filters: Filters, source: RunSource) -> None:
    """Raise InvalidInput if a filter, which nothing matched, names what the store does not know."""
    chosen: dict[str, Any] = {name: value for name, value in filters.items() if name not in MOMENTS}
    if problem := unknown_name(RunFilter(**chosen), source.names()):
        raise unusable(f"--{problem}")


def with_source(
    run: Callable[[Namespace, RunSource], int],
) -> Callable[[Namespace, CommandContext], int]:
    """`run` with the store that the arguments name; where that cannot be read, the command is unusable."""

    def run_with_source(options: Namespace, context: CommandContext) -> int:
        try:
            return run(options, _source(options, context))
        except (sqlite3.Error, StoreUnusable) as error:
            raise unusable(f"the store cannot be read: {error}") from None

    return run_with_source


def _source(options: Namespace, context: CommandContext) -> RunSource:
    if options.endpoint is not None:
        token = options.token_file.read_text().split("\n")[0].strip() if options.token_file else ""
        return _StoreOfService(reachable_address(options.endpoint), token)
    return _StoreFile(store_path(options, context), context.clock)
