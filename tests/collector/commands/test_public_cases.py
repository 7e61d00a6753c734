"""Public bug reports of other tools, replayed (`tests/data/public_cases/README.md`)."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from collector.commands.replay import replay
from collector.config_fields import BUILTIN
from collector.criteria import load_criteria
from collector.recordings import RecordedStream

CASES = Path(__file__).parents[2] / "data" / "public_cases"
NAMES = sorted(path.parent.name for path in CASES.glob("*/expected.json"))


def replayed(folder: Path) -> list[dict[str, Any]]:
    """The runs in the input of a case, in the form of run lines."""
    own_criteria = folder / "criteria.yaml"
    output = io.StringIO()
    stream = RecordedStream()
    assert [] == stream.read(sorted(folder.glob("input*")))
    criteria = load_criteria([own_criteria if own_criteria.exists() else BUILTIN], environment={})
    replay(stream, criteria, output_format="json", output=output)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def shown(run: dict[str, Any]) -> dict[str, Any]:
    """What an `expected.json` may name of a run."""
    calls = run["tool_calls"]
    return {
        "agent": run["agent"]["name"],
        "tool_calls": [call["name"] for call in calls],
        "requested_calls": [call["name"] for call in run.get("requested_calls", [])],
        "not_executed": [call["name"] for call in calls if call.get("executed") is False],
        "errors": [call["name"] for call in calls if call["error"] is not None],
        **{name: run.get(name) for name in ("input", "output", "usage", "models", "session")},
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_reported_case_gives_the_right_result(name: str) -> None:
    expected = json.loads((CASES / name / "expected.json").read_text("utf-8"))["runs"]

    runs = replayed(CASES / name)

    assert len(expected) == len(runs)
    for right, run in zip(expected, runs, strict=True):
        outcomes = right.pop("evaluations", {})
        assert right == {key: shown(run)[key] for key in right}
        for evaluation, allowed in outcomes.items():
            (outcome,) = [entry["outcome"] for entry in run["evaluations"] if entry["name"] == evaluation]
            assert outcome in ([allowed] if isinstance(allowed, str) else allowed)
