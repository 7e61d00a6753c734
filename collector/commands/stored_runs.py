"""The commands `agents`, `runs` and `show`: queries over a run store, in a file or of a running service."""

import json
import sqlite3
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from collector.clock import Clock
from collector.commands.arguments import (
    add_argument,
    add_config,
    add_flag,
    duration_argument,
    endpoint_argument,
    path_argument,
    whole_number,
)
from collector.commands.command import EXIT_FAILED, EXIT_OK, Command, CommandContext, unusable
from collector.commands.output import OutputConsole, print_table
from collector.config_fields import format_duration, reachable_address
from collector.printing import RunPrintout
from collector.store import RunFilter, RunQueries, StoreUnusable, open_store_file
from collector.tools.http_client import query
from processors.annotation import graded_run_from_json
from processors.model import JsonObject, encode_json

_TIMEOUT_SECONDS = 15.0
_MAX_RUNS = 1_000
_FILTERS = ("agent", "evaluation", "outcome", "tool", "text")


class _StoreFile:
    """A run store in a file; its answers are those of `_StoreOfService`."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._queries = RunQueries(open_store_file(path))
        self._clock = clock

    def agents(self) -> list[JsonObject]:
        return [agent.to_json() for agent in self._queries.agents()]

    def find(self, matching: RunFilter, limit: int, since_seconds: float) -> list[JsonObject]:
        if since_seconds:
            now = self._clock.unix_nano() // 1_000_000
            matching = replace(matching, since=max(now - round(since_seconds * 1000), 1))
        return [asdict(run) for run in self._queries.find(matching, limit)]

    def lines(self, trace_id: str) -> list[JsonObject]:
        return [line for _, line in self._queries.runs_of_trace(trace_id)]


class _StoreOfService:
    """The run store of a service, by the JSON interface of its page."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def agents(self) -> list[JsonObject]:
        return list(self._get("/api/agents")["agents"])

    def find(self, matching: RunFilter, limit: int, since_seconds: float) -> list[JsonObject]:
        """Summaries of runs, newest first; 0 seconds are all of them, else those graded since then."""
        parameters = {key: value for key, value in asdict(matching).items() if value}
        if since_seconds:
            parameters["since"] = format_duration(since_seconds)
        return list(self._get(f"/api/runs?{urlencode({**parameters, 'limit': limit})}")["runs"])

    def lines(self, trace_id: str) -> list[JsonObject]:
        return list(self._get(f"/api/run/{quote(trace_id, safe='')}")["runs"])

    def _get(self, path: str) -> Any:
        try:
            status, answer = query(
                self._address, path, headers=self._headers, timeout_seconds=_TIMEOUT_SECONDS
            )
            if status == HTTPStatus.OK:
                return json.loads(answer)
        except ValueError as error:
            raise unusable(f"no answer from http://{self._address}: {error}") from None
        message = answer[:1000].decode(errors="replace").strip()
        raise unusable(f"http://{self._address}: {status}: {message}")


_Store: TypeAlias = _StoreFile | _StoreOfService


def _store(options: Namespace, context: CommandContext) -> _Store:
    if options.endpoint is not None:
        token = options.token_file.read_text().split("\n")[0].strip() if options.token_file else ""
        return _StoreOfService(reachable_address(options.endpoint), token)
    path = options.store or context.service_file(options.config).store.path
    if path is None:
        raise unusable("no store to read: expected --store, --endpoint, or --config with store.path")
    return _StoreFile(path, context.clock)


def _reading(run: Callable[[Namespace, _Store], int]) -> Callable[[Namespace, CommandContext], int]:
    """`run` with the store that the arguments name; where that cannot be read, the command is unusable."""

    def run_with_store(options: Namespace, context: CommandContext) -> int:
        store = _store(options, context)
        try:
            return run(options, store)
        except (sqlite3.Error, StoreUnusable) as error:
            raise unusable(f"the store cannot be read: {error}") from None

    return run_with_store


def _agents(options: Namespace, store: _Store) -> int:
    agents: Sequence[Any] = store.agents()
    if options.json:
        for agent in agents:
            print(encode_json(agent).decode())
        return EXIT_OK
    rows = []
    for agent in agents:
        outcomes = agent["outcomes"]
        decided = sum(outcomes.get(word, 0) for word in ("pass", "fail", "error"))
        passed = f"{100 * outcomes.get('pass', 0) / decided:.0f} %" if decided else ""
        missing = ", ".join(f"{reason} {count}" for reason, count in agent["missing"].items())
        rows.append(
            (agent["name"], _time(agent["last_milliseconds"]), str(sum(outcomes.values())), passed, missing)
        )
    _print(("agent", "last run", "runs", "passed", "missing"), rows)
    return EXIT_OK


def _runs(options: Namespace, store: _Store) -> int:
    filters: dict[str, Any] = {name: getattr(options, name) or "" for name in _FILTERS}
    runs: Sequence[Any] = store.find(RunFilter(**filters), options.limit, options.since)
    if options.json:
        for run in runs:
            for line in store.lines(run["trace_id"]):
                if (line.get("span_id") or "") == run["span_id"]:
                    print(encode_json(line).decode())
        return EXIT_OK
    rows = [
        (
            _time(run["milliseconds"]),
            run["outcome"],
            " ".join(filter(None, (run["agent"], run["version"]))),
            ", ".join(run["failed"]),
            str(run["calls"]),
            run["trace_id"],
        )
        for run in runs
    ]
    _print(("graded", "outcome", "agent", "failed checks", "calls", "trace"), rows)
    return EXIT_OK


def _show(options: Namespace, store: _Store) -> int:
    lines = store.lines(options.trace_id.lower())
    if not lines:
        print(f"no stored run belongs to trace {options.trace_id}", file=sys.stderr)
        return EXIT_FAILED
    console = OutputConsole()
    printout = RunPrintout.for_console(console)
    for line in lines:
        if options.json:
            print(encode_json(line).decode())
        else:
            console.print(printout.block(graded_run_from_json(line, options.trace_id)))
    return EXIT_OK


def _print(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        print_table(names, rows)
    else:
        print("no stored run matches", file=sys.stderr)


def _time(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(milliseconds / 1000))


def _add_store(parser: ArgumentParser, json_help: str) -> None:
    add_config(parser, "the service file, whose store is read (default: built-in defaults)")
    source = parser.add_mutually_exclusive_group()
    add_argument(source, "--store", path_argument, "FILE", "the file of a run store")
    add_argument(source, "--endpoint", endpoint_argument, "HOST:PORT", "the page of a running service")
    add_argument(parser, "--token-file", path_argument, "FILE", "holds the token for --endpoint")
    add_flag(parser, "--json", f"print JSON, {json_help}")


def _add_runs(parser: ArgumentParser) -> None:
    _add_store(parser, "one run line each")
    add_argument(parser, "--agent", str, "NAME", "runs of this agent")
    add_argument(parser, "--evaluation", str, "NAME", "runs to which this evaluation applied")
    outcomes = ["pass", "fail", "error", "not_evaluated"]
    parser.add_argument(
        "--outcome", choices=outcomes, help="of the evaluation, if one is given, else of the run"
    )
    add_argument(parser, "--tool", str, "NAME", "runs that called this tool")
    add_argument(
        parser, "--text", str, "WORDS", "runs that contain all of these words, or words that begin with them"
    )
    since = "graded within this time, such as 24h or 7d"
    add_argument(parser, "--since", duration_argument, "TIME", since, default=0.0)
    most = "how many at most, newest first (default: %(default)s)"
    add_argument(parser, "--limit", whole_number(1, _MAX_RUNS), "N", most, default=50)


def _add_show(parser: ArgumentParser) -> None:
    _add_store(parser, "the run line of each run of the trace")
    add_argument(parser, "trace_id", str, "TRACE_ID", "as `tracegrade runs` and verdicts show it")


AGENTS = Command(partial(_add_store, json_help="an object for each agent"), _reading(_agents))
RUNS = Command(_add_runs, _reading(_runs))
SHOW = Command(_add_show, _reading(_show))
