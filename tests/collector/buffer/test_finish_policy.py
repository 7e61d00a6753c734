from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest
from pydantic import ValidationError

from collector.buffer import HeldTrace
from collector.buffer.finish_policy import FinishPolicy, GroupByTraceConfig
from processors.model import FinishReason


@dataclass
class _Shape:
    first_arrival: float = 100.0
    last_arrival: float = 130.0
    has_root: bool = False
    has_remote_root: bool = False
    is_missing_parents: bool = False
    is_missing_refused_spans: bool = False
    is_distributed: bool = False
    may_continue_elsewhere: bool = False
    is_settled: bool = False
    services: Collection[str] = ("agent",)


def View(**shown: Any) -> HeldTrace:
    """A trace that shows this much."""
    return cast(HeldTrace, _Shape(**shown))


POLICY = FinishPolicy(GroupByTraceConfig.model_validate({"root_grace": "2s"}))


@pytest.mark.parametrize(
    ("view", "quiet", "reason"),
    [
        pytest.param(View(has_root=True), 2, "root", id="root"),
        pytest.param(View(has_root=True, is_distributed=True), 6, "root", id="root, several processes"),
        pytest.param(
            View(has_root=True, is_missing_parents=True), 10, "root_incomplete", id="a parent is missing"
        ),
        pytest.param(
            View(has_root=True, is_missing_parents=True, is_distributed=True),
            10,
            "root_incomplete",
            id="a parent is missing, several processes",
        ),
        pytest.param(View(has_remote_root=True), 10, "root", id="only a root with a remote parent"),
        pytest.param(
            View(has_root=True, has_remote_root=True),
            10,
            "root_incomplete",
            id="a root, and a remote parent that is missing",
        ),
        pytest.param(
            View(has_remote_root=True, is_missing_parents=True),
            10,
            "root_incomplete",
            id="a root with a remote parent, and a parent is missing",
        ),
        pytest.param(
            View(has_root=True, is_missing_refused_spans=True), 10, "root", id="refused spans are missing"
        ),
        pytest.param(View(), 300, "idle", id="no root"),
        pytest.param(View(is_missing_parents=True, is_distributed=True), 300, "idle", id="only orphans"),
    ],
)
def test_quiet_time_and_reason(view: HeldTrace, quiet: float, reason: str) -> None:
    assert (130 + quiet, reason) == POLICY.deadline(view)
    assert reason == POLICY.settled_reason(view)


def test_age_ends_a_trace_that_is_never_quiet() -> None:
    view = View(last_arrival=3699.0, has_root=True)

    assert (3700.0, FinishReason.MAX_AGE) == POLICY.deadline(view)


def test_quiet_that_ends_with_the_age_still_counts_as_quiet() -> None:
    view = View(last_arrival=3698.0, has_root=True)

    assert (3700.0, FinishReason.ROOT) == POLICY.deadline(view)


def test_a_missing_parent_never_shortens_the_wait() -> None:
    policy = FinishPolicy(GroupByTraceConfig.model_validate({"root_grace": "20s"}))

    assert 150 == policy.deadline(View(has_root=True, is_missing_parents=True))[0]


@pytest.mark.parametrize(
    ("services", "quiet"),
    [
        pytest.param(("agent",), 2.0, id="not configured"),
        pytest.param(("fast",), 0.5, id="shorter"),
        pytest.param(("slow",), 30.0, id="longer"),
        pytest.param(("fast", "slow"), 30.0, id="the longest of two counts"),
        pytest.param(("fast", "agent"), 2.0, id="one not configured has the general time"),
    ],
)
def test_services_have_times_of_their_own(services: tuple[str, ...], quiet: float) -> None:
    policy = FinishPolicy(
        GroupByTraceConfig.model_validate(
            {"root_grace": "2s", "services": {"fast": {"root_grace": "500ms"}, "slow": {"root_grace": "30s"}}}
        )
    )

    assert 130 + quiet == policy.deadline(View(has_root=True, services=services))[0]
    assert 0.5 == policy.shortest_quiet


def test_the_shortest_age_looks_at_every_service() -> None:
    policy = FinishPolicy(GroupByTraceConfig.model_validate({"services": {"a": {"max_trace_age": "1m"}}}))

    assert 60 == policy.shortest_age


def test_defaults() -> None:
    config = GroupByTraceConfig()

    assert {
        "root_grace": "evidence",
        "multi_service_grace": "6s",
        "incomplete_grace": "10s",
        "idle_timeout": "5m",
        "max_trace_age": "1h",
        "max_lateness": "15m",
        "max_spans_per_trace": 50_000,
        "max_bytes_per_trace": 67_108_864,
        "missing_parents": "grade",
        "services": {},
    } == config.model_dump()


@pytest.mark.parametrize(
    "settings",
    [
        {"root_grace": 2},
        {"root_grace": "-1s"},
        {"max_trace_age": "0s"},
        {"max_spans_per_trace": 0},
        {"max_bytes_per_trace": 0},
        {"missing_parents": "ignore"},
        {"wait_duration": "1s"},
        {"services": {"a": {"max_lateness": "1s"}}},
    ],
)
def test_other_settings_are_refused(settings: Mapping[str, object]) -> None:
    with pytest.raises(ValidationError):
        GroupByTraceConfig.model_validate(settings)


def test_a_verdict_delay_makes_every_quiet_time_longer_and_changes_no_age() -> None:
    config = GroupByTraceConfig.model_validate(
        {"root_grace": "1s", "max_trace_age": "1h", "services": {"slow": {"idle_timeout": "10m"}}}
    )
    policy = FinishPolicy(config, verdict_delay=5)

    def quiet(**shown: Any) -> float:
        return policy.deadline(View(**shown))[0] - 130

    assert (6.0, 11.0) == (quiet(has_root=True), quiet(has_root=True, is_distributed=True))
    assert (15.0, 305.0) == (quiet(has_root=True, is_missing_parents=True), quiet())
    assert (6.0, 605.0) == (quiet(has_root=True, services=("slow",)), quiet(services=("slow",)))
    assert (3600.0, 6.0) == (policy.shortest_age, policy.shortest_quiet)
