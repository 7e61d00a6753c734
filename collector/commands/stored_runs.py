"""The commands `agents`, `runs` and `show`: what is in a store of runs, be it a file's or a service's."""

import json
import sqlite3
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from rich.cells import cell_len
from rich.text import Text

from collector.commands.command import (
    EXIT_FAILED,
    EXIT_OK,
    Command,
    OutputConsole,
    Surroundings,
    add_argument,
    add_config,
    argument_type,
    endpoint_argument,
    path_argument,
    unusable,
)
from collector.config_fields import format_duration, parse_duration, reachable_address
from collector.configuration import load_configuration
from collector.printing import RunPrintout
from collector.recordings import graded_run_from_json
from collector.store import RunFilter, RunQueries, StoreUnusable, open_store_file
from collector.tools.running_service import ask
from processors.model import JsonObject, encode_json

_AnswerT = TypeVar("_AnswerT")

_TIMEOUT_SECONDS = 15.0
_MAX_RUNS = 1_000


def _add_source(parser: ArgumentParser) -> None:
    add_config(parser, "the service file, whose store is read (default: built-in defaults)")
    source = parser.add_mutually_exclusive_group()
    add_argument(source, "--store", path_argument, "FILE", "the file of a store")
    add_argument(source, "--endpoint", endpoint_argument, "HOST:PORT", "the page of a running service")
    add_argument(parser, "--token-file", path_argument, "FILE", "holds the token for --endpoint")


def _add_find(parser: ArgumentParser) -> None:
    _add_source(parser)
    add_argument(parser, "--agent", str, "NAME", "runs of this agent")
    add_argument(parser, "--evaluation", str, "NAME", "runs to which this evaluation applied")
    outcomes = ["pass", "fail", "error", "not_evaluated"]
    parser.add_argument("--outcome", choices=outcomes, help="of the evaluation, or else of the run")
    add_argument(parser, "--tool", str, "NAME", "runs that called this tool")
    add_argument(parser, "--text", str, "WORDS", "runs with all of these words, or words that begin so")
    since = "graded in this time until now, such as 24h or 7d"
    add_argument(parser, "--since", argument_type(parse_duration), "TIME", since)
    add_argument(parser, "--limit", int, "N", "at most so many, newest first (default: 50)", default=50)
    _add_json(parser, "one run line each")


def _add_json(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print JSON, {what}")


def _add_show(parser: ArgumentParser) -> None:
    _add_source(parser)
    add_argument(parser, "trace_id", str, "TRACE_ID", "as `tracegrade runs` and verdicts name it")
    _add_json(parser, "the run line of each run of the trace")


class _Source:
    """Where the answers come from: a file here, or the page of a service."""

    def __init__(self, options: Namespace, surroundings: Surroundings) -> None:
        self._clock = surroundings.clock
        self._token = ""
        self._address = ""
        self._queries: RunQueries | None = None
        if options.endpoint is not None:
            self._address = reachable_address(options.endpoint)
            if options.token_file is not None:
                self._token = options.token_file.read_text().split("\n")[0].strip()
            return
        path = options.store or load_configuration(options.config, surroundings.environment).store.path
        if path is None:
            raise unusable("no store to read: expected --store, --endpoint, or --config with store.path")
        self._queries = RunQueries(open_store_file(path))

    def agents(self) -> list[Mapping[str, Any]]:
        """All agents, as the page's JSON tells of them."""
        if self._queries is None:
            return list(self._asked("/api/agents")["agents"])
        return [
            {
                "name": agent.name,
                "last_milliseconds": agent.last_milliseconds,
                "outcomes": agent.runs.outcomes,
                "missing": agent.missing,
            }
            for agent in self._queries.agents()
        ]

    def find(self, wanted: RunFilter, limit: int, since_seconds: float = 0) -> list[Mapping[str, Any]]:
        """Summaries of runs, newest first, of those graded in the last `since_seconds`."""
        if self._queries is None:
            asked = {key: value for key, value in asdict(wanted).items() if value}
            if since_seconds:
                asked["since"] = format_duration(since_seconds)
            return list(self._asked(f"/api/runs?{urlencode({**asked, 'limit': limit})}")["runs"])
        if since_seconds:
            now = self._clock.unix_nano() // 1_000_000
            wanted = replace(wanted, since=max(now - round(since_seconds * 1000), 1))
        return [asdict(run) for run in self._queries.find(wanted, limit)]

    def lines(self, trace_id: str) -> list[JsonObject]:
        """The run lines of a trace."""
        if self._queries is None:
            return list(self._asked(f"/api/run/{quote(trace_id, safe='')}")["runs"])
        return [line for _, line in self._queries.runs_of_trace(trace_id)]

    def _asked(self, path: str) -> Any:
        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            status, answer = ask(self._address, path, headers=headers, timeout_seconds=_TIMEOUT_SECONDS)
            if status == HTTPStatus.OK:
                return json.loads(answer)
        except ValueError as error:
            raise unusable(f"no answer from http://{self._address}: {error}") from None
        told = answer[:1000].decode(errors="replace").strip()
        raise unusable(f"http://{self._address}: {status}: {told}")


def _agents(options: Namespace, surroundings: Surroundings) -> int:
    agents = _told(_Source(options, surroundings).agents)
    if options.json:
        for agent in agents:
            print(encode_json(dict(agent)).decode())
        return EXIT_OK
    rows = []
    for agent in agents:
        outcomes = agent["outcomes"]
        decided = sum(outcomes.get(word, 0) for word in ("pass", "fail", "error"))
        passed = f"{100 * outcomes.get('pass', 0) / decided:.0f} %" if decided else ""
        missing = ", ".join(f"{reason} {count}" for reason, count in agent["missing"].items())
        rows.append(
            (agent["name"], _moment(agent["last_milliseconds"]), str(sum(outcomes.values())), passed, missing)
        )
    _print_table(("agent", "last run", "runs", "passed", "missing"), rows)
    return EXIT_OK


def _runs(options: Namespace, surroundings: Surroundings) -> int:
    wanted = RunFilter(
        agent=options.agent or "",
        evaluation=options.evaluation or "",
        outcome=options.outcome or "",
        tool=options.tool or "",
        text=options.text or "",
    )
    if not 1 <= options.limit <= _MAX_RUNS:
        raise unusable(f"--limit: expected a number from 1 to {_MAX_RUNS}")
    source = _Source(options, surroundings)
    found = _told(lambda: source.find(wanted, options.limit, options.since or 0))
    if options.json:
        for run in found:
            for line in _told(partial(source.lines, run["trace_id"])):
                if (line.get("span_id") or "") == run["span_id"]:
                    print(encode_json(line).decode())
        return EXIT_OK
    rows = [
        (
            _moment(run["milliseconds"]),
            run["outcome"],
            " ".join(filter(None, (run["agent"], run["version"]))),
            ", ".join(run["failed"]),
            str(run["calls"]),
            run["trace_id"],
        )
        for run in found
    ]
    _print_table(("graded", "outcome", "agent", "failed checks", "calls", "trace"), rows)
    return EXIT_OK


def _show(options: Namespace, surroundings: Surroundings) -> int:
    source = _Source(options, surroundings)
    lines = _told(lambda: source.lines(options.trace_id.lower()))
    if not lines:
        print(f"no run of trace {options.trace_id} is in the store", file=sys.stderr)
        return EXIT_FAILED
    console = OutputConsole()
    printout = RunPrintout.for_console(console)
    for line in lines:
        if options.json:
            print(encode_json(line).decode())
        else:
            console.print(printout.block(graded_run_from_json(line, options.trace_id)))
    return EXIT_OK


def _told(ask: Callable[[], _AnswerT]) -> _AnswerT:
    """What `ask` answers; a store that cannot be read is a problem in one line."""
    try:
        return ask()
    except (sqlite3.Error, StoreUnusable) as error:
        raise unusable(f"the store cannot be read: {error}") from None


def _print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns as wide as what stands in them; nothing in a cell may steer a terminal."""
    if not rows:
        print("no run in the store is so", file=sys.stderr)
        return
    cells = [["".join(c if c.isprintable() else " " for c in cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    console = OutputConsole()
    for number, row in enumerate([list(names), *cells]):
        padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        console.print(Text("  ".join(padded).rstrip(), style="" if number else "dim"))


def _moment(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(milliseconds / 1000))


def _add_agents(parser: ArgumentParser) -> None:
    _add_source(parser)
    _add_json(parser, "an object for each agent")


COMMANDS = (
    Command("agents", "the agents in a store of runs, and how their runs ended", _add_agents, _agents),
    Command("runs", "find runs in a store of runs", _add_find, _runs),
    Command("show", "print the runs of a trace from a store of runs", _add_show, _show),
)
