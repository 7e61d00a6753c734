"""The other side of `benchmarks.reference_package`, run by an interpreter that has `uipath` installed.

It imports nothing of this project and announces itself on stderr. The first line of its input holds the
cases, every further one asks for one measurement; each is answered by a line. Everything is JSON.
"""

import asyncio
import importlib
import json
import sys
from collections.abc import Sequence
from time import process_time
from typing import Any

_EVALUATORS = "uipath.eval.evaluators"
_MODELS = "uipath.eval.models.models"


class _Case:
    """One evaluator with its criteria and the run that it grades."""

    def __init__(self, case: dict[str, Any]) -> None:
        trace = importlib.import_module("opentelemetry.sdk.trace")
        execution = importlib.import_module(_MODELS).WorkloadExecution
        kind = getattr(importlib.import_module(_EVALUATORS), case["class"])
        self._evaluator = kind(id=case["class"], evaluatorConfig=case["config"])
        self._criteria = self._evaluator.validate_evaluation_criteria(case["criteria"])
        self._execution = execution(
            agent_input={},
            workload_output=case["output"],
            workload_trace=[trace.ReadableSpan(name="span", attributes=span) for span in case["spans"]],
        )

    async def measure(self, seconds: float) -> tuple[float, float]:
        """CPU seconds for one evaluation, repeated for about `seconds`, and the score."""
        evaluations = 0
        begun = process_time()
        while True:
            result = await self._evaluator.evaluate(self._execution, self._criteria)
            evaluations += 1
            elapsed = process_time() - begun
            if elapsed >= seconds:
                return elapsed / evaluations, float(result.score)


async def _serve(lines: Sequence[str]) -> None:
    cases = [_Case(case) for case in json.loads(lines[0])]
    _answer(len(cases))
    for line in sys.stdin:
        case, seconds = json.loads(line)
        _answer(await cases[case].measure(seconds))


def _answer(message: object) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    importlib.import_module(_EVALUATORS)
    print("reference ready:", file=sys.stderr, flush=True)
    asyncio.run(_serve([sys.stdin.readline()]))
