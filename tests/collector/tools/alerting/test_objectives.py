import pytest

from collector.tools.alerting.objectives import PAIRS, Objective, ObjectivesFile, PlacedObjective
from collector.tools.alerting.rules import unreachable
from collector.tools.alerting.selectors import NamePattern
from collector.tools.alerting.windows import window_for


def objectives(agents: dict[str, dict[str, float]], default: float | None = 0.5) -> ObjectivesFile:
    return ObjectivesFile.model_validate(
        {
            "defaults": None if default is None else {"target": default},
            "agents": {
                agent: {"evaluations": {name: {"target": target} for name, target in targets.items()}}
                for agent, targets in agents.items()
            },
        }
    )


def target(file: ObjectivesFile, agent: str, evaluation: str) -> float | None:
    return next((one.objective.target for one in file.placed() if one.matches(agent, evaluation)), None)


@pytest.mark.parametrize(
    ("agent", "evaluation", "expected"),
    [
        ("weather_agent", "order", 0.99),
        ("weather_agent", "args", 0.9),
        ("weather_bot", "order", 0.8),
        ("weather_bot", "args", 0.7),
        ("support", "order", 0.6),
        ("support", "args", 0.5),
    ],
)
def test_the_most_specific_agent_counts_and_then_the_most_specific_evaluation(
    agent: str, evaluation: str, expected: float
) -> None:
    file = objectives(
        {
            "*": {"order": 0.6},
            "weather_*": {"*": 0.7, "order": 0.8},
            "weather_agent": {"order": 0.99, "*": 0.9},
        }
    )

    assert expected == target(file, agent, evaluation)


def test_of_equals_the_later_one_counts() -> None:
    assert 0.8 == target(objectives({"ab*": {"*": 0.7}, "*ab": {"*": 0.8}}), "abab", "order")


def test_without_defaults_what_is_not_named_has_no_objective() -> None:
    assert target(objectives({}, default=None), "a", "b") is None


@pytest.mark.parametrize(
    ("objective", "pairs"),
    [
        (0.99, []),
        (0.95, []),
        (0.9305, ["1h and 5m"]),
        (0.9306, []),
        (0.9, ["1h and 5m"]),
        (0.83, ["1h and 5m", "6h and 30m"]),
        (0.5, ["1h and 5m", "6h and 30m", "1d and 2h"]),
        (0.001, ["1h and 5m", "6h and 30m", "1d and 2h"]),
    ],
)
def test_pairs_that_can_never_fire_are_told(objective: float, pairs: list[str]) -> None:
    placed = PlacedObjective(NamePattern("agent"), NamePattern("order"), Objective(target=objective))

    lines = unreachable(placed)

    assert len(pairs) == len(lines)
    assert all(pair in line and "agent: order" in line for pair, line in zip(pairs, lines, strict=True))
    assert [pair.can_fire(objective) for pair in PAIRS].count(False) == len(pairs)


@pytest.mark.parametrize(
    ("an_hour", "window"),
    [(100, "1h"), (40, "1h"), (39, "6h"), (6, "1d"), (1, "3d"), (0.5, "7d"), (0.12, "7d"), (0.11, None)],
)
def test_the_window_expects_twice_the_results_that_an_alert_needs(an_hour: float, window: str | None) -> None:
    assert window == window_for(an_hour, 20)
