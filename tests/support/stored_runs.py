"""Runs for a store: any number, each a little different."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from collector.clock import Clock, SystemClock
from collector.store import RunDatabase, RunQueries, RunStore, StoreConfig
from collector.store.run_rows import RunRows, rows_of
from collector.telemetry import Metrics
from processors.model import AgentIdentity, GradedRun, Outcome
from tests.support.graded_runs import result, weather_run

NOW = 1_769_846_403_250_000_000
MINUTE = 60_000_000_000


def graded_run(number: int, *, agent: str = "weather_agent", text: str = "", **fields: object) -> GradedRun:
    """The run with this number, a minute after the one before; every tenth fails, with one failed check."""
    base = weather_run()
    outcome = Outcome.FAIL if number % 10 == 0 else Outcome.PASS
    run = replace(
        base.run,
        trace_id=number.to_bytes(16, "big") if number else base.run.trace_id,
        agent=AgentIdentity(name=agent, version=f"1.{number // 50}"),
        input=text or f"Question number{number}",
        **fields,  # type: ignore[arg-type]  # fields of a run
    )
    results = [result("order", explanation=f"checked number {number}"), result("args", outcome)]
    return GradedRun(run=run, results=results, graded_unix_nano=NOW + number * MINUTE)


def filled(runs: Sequence[GradedRun], path: Path | None = None, limit_mib: int = 64) -> RunQueries:
    """A store with these runs."""
    database = RunDatabase(path, limit_mib * 1024 * 1024)
    database.open()
    for batch in _batches(runs):
        add_runs(database, batch)
    return RunQueries(database)


def add_runs(database: RunDatabase, runs: Sequence[GradedRun], keep_from_milliseconds: int = 0) -> None:
    """Write these runs, as the store does."""
    database.write([rows_of(run, NOW).packed() for run in runs], keep_from_milliseconds)


def hundred_thousand_runs(path: Path, newest_unix_nano: int = NOW) -> RunQueries:
    """A store of 100,000 runs of 20 agents, twelve seconds apart; of fifty in a row, one differs."""
    database = RunDatabase(path, 1024**3)
    database.open()
    pattern: RunRows | None = None
    for start in range(0, 100_000, 5_000):
        rows = []
        for number in range(start, start + 5_000):
            if pattern is None or number % 50 == 0:
                run = graded_run(number, agent=f"agent_{number // 50 % 20}")
                graded = newest_unix_nano - (100_000 - number) * MINUTE // 5
                pattern = rows_of(replace(run, graded_unix_nano=graded), NOW).packed()
            rows.append(pattern)
        database.write(rows, 0)
    return RunQueries(database)


def _batches(runs: Sequence[GradedRun]) -> Iterator[Sequence[GradedRun]]:
    for start in range(0, len(runs), 500):
        yield runs[start : start + 500]


def run_store(metrics: Metrics | None = None, clock: Clock | None = None, **config: object) -> RunStore:
    """A store as the service has it, not started."""
    return RunStore(
        StoreConfig.model_validate(config), metrics=metrics or Metrics(), clock=clock or SystemClock()
    )
