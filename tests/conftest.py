"""Rules of every test run: what was skipped is named at the end, and is a failure where all must run."""

import os
import shutil
from collections import Counter
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.kafka_broker import KafkaBroker
from tests.support.readers import READERS, reader

# Machines that run tests are shared: slow examples, and examples that are slow to find, are no failure. CI
# looks at the same examples every time; new ones are searched for where somebody can look at them.
settings.register_profile(
    "local", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

REQUIRE_ALL = "TRACEGRADE_REQUIRE_ALL"
"""Set to 1 where everything that tests need is installed: a skipped test then fails."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "requires_program(name): skipped, by name, where the program is not installed"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("requires_program"):
        program = marker.args[0]
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """An Apache Kafka broker for all tests of a process; who stops it starts it again."""
    with KafkaBroker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="module", params=READERS)
def each_reader(request: pytest.FixtureRequest) -> Iterator[str]:
    """The tests of a module once with the Python code and once with the reader in Rust; its name."""
    with reader(request.param):
        yield request.param


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get(REQUIRE_ALL) == "1":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: {_reason(report)}, and {REQUIRE_ALL}=1 lets no test be skipped"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    groups = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if groups:
        named = "; ".join(f"{reason} ({count})" for reason, count in sorted(groups.items()))
        terminalreporter.write_line(f"Skipped groups: {named}")


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)
