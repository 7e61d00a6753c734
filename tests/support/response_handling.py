"""Labelled cases of response handling as runs, and figures over a file of them.

`python -m tests.support.response_handling FILE...` prints how many wrong cases are caught and sound ones
flagged,
by the default gate and by all rules, and the precision of each rule. `--list` names the cases that went
wrong.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

from msgspec.structs import replace

from processors.evaluators.tool_response_handling import ToolResponseHandling, ToolResponseHandlingConfig
from processors.model import AgentRun, RunFacts, Score, ToolCall, ToolError
from tests.support.agent_responses import answered, call

Case = dict[str, Any]


def read_cases(path: Path) -> list[Case]:
    """The cases of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def run_of_case(case: Case) -> AgentRun:
    """A labelled case as the run that it tells of; a call has a `result`, an `error` text or both."""
    calls = [_call(made) for made in case["calls"]]
    return answered(case["output"], *calls, user=case["input"])


def _call(made: dict[str, Any]) -> ToolCall:
    found = call(
        made.get("result"),
        name=made["name"],
        **{
            f"{key}": value
            for key, value in (made.get("args") or {}).items()
            if key not in ("result", "name", "error")
        },
    )
    error = made.get("error")
    if error is None:
        return found
    return replace(
        found, error=ToolError(type="", message=error if isinstance(error, str) else json.dumps(error))
    )


def rules_found(case: Case, config: ToolResponseHandlingConfig | None = None) -> list[tuple[str, bool, str]]:
    """The rules with findings in a case: id, whether it gates, and what was found."""
    evaluator = ToolResponseHandling(config or ToolResponseHandlingConfig())
    answer = evaluator.evaluate(run_of_case(case), RunFacts())
    if not isinstance(answer, Score):
        return []
    violations = answer.details["violations"]
    assert isinstance(violations, list)
    return [
        (str(found["check"]), bool(found["gating"]), f"{found['claim']} | {found['evidence']}")
        for found in violations
        if isinstance(found, dict)
    ]


@dataclass
class Figures:
    """What was caught and flagged in a set of cases, by the gate, by all rules, and by each rule."""

    wrong: int = 0
    sound: int = 0
    caught: int = 0
    caught_by_all: int = 0
    flagged: int = 0
    flagged_by_all: int = 0
    right_of_rule: Counter[str] = field(default_factory=Counter)
    wrong_of_rule: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The figures as text."""
        found = [
            f"wrong {self.wrong}, sound {self.sound}",
            f"default gate: caught {self.caught / max(1, self.wrong):.1%}, flagged {self.flagged / max(1, self.sound):.1%}",  # noqa: E501
            f"all rules:    caught {self.caught_by_all / max(1, self.wrong):.1%}, flagged {self.flagged_by_all / max(1, self.sound):.1%}",  # noqa: E501
        ]
        for rule in sorted({*self.right_of_rule, *self.wrong_of_rule}):
            right, wrong = self.right_of_rule[rule], self.wrong_of_rule[rule]
            found.append(f"  {rule:7} right {right:3} : wrong {wrong:3}   {right / (right + wrong):.0%}")
        return found


def figures_of(cases: Iterable[Case]) -> Figures:
    """The figures of the default configuration over `cases`."""
    figures = Figures()
    for case in cases:
        found = rules_found(case)
        rules, is_gated = {rule for rule, _, _ in found}, any(gating for _, gating, _ in found)
        if case["label"] == "incorrect":
            figures.wrong += 1
            figures.caught += is_gated
            figures.caught_by_all += bool(rules)
            figures.right_of_rule.update(rules)
            if not is_gated:
                figures.missed.append(f"{case['id']} {sorted(rules)} {case.get('note') or case.get('kind')}")
        else:
            figures.sound += 1
            figures.flagged += is_gated
            figures.flagged_by_all += bool(rules)
            figures.wrong_of_rule.update(rules)
            if rules:
                figures.alarms.append(f"{case['id']} {found}")
    return figures


def main(arguments: Sequence[str]) -> None:
    """Print the figures of each file named."""
    for name in (argument for argument in arguments if not argument.startswith("--")):
        cases = read_cases(Path(name))
        figures = figures_of(cases)
        times = []
        evaluator = ToolResponseHandling(ToolResponseHandlingConfig())
        for case in cases:
            run = run_of_case(case)
            start = process_time()
            evaluator.evaluate(run, RunFacts())
            times.append(process_time() - start)
        print(name, *figures.lines(), sep="\n")
        print(f"median {sorted(times)[len(times) // 2] * 1e3:.2f} ms, longest {max(times) * 1e3:.2f} ms")
        if "--list" in arguments:
            print("missed by the gate:", *figures.missed, "flagged:", *figures.alarms, sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1:])
