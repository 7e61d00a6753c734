"""What the workload's agent is graded by: six evaluations of every run, most of which pass."""

import json
from collections.abc import Sequence

from benchmarks.agent_trace import AGENT_NAME, CORRECT_WAREHOUSE, STOCK_RESULT

EVALUATIONS_PER_TRACE = 6

_EVALUATIONS: list[dict[str, object]] = [
    {
        "evaluator": "tool-call-count",
        "criteria": {
            "tool_calls_count": {
                "find_order": ["=", 1],
                "get_customer": ["=", 1],
                "check_stock": [">=", 1],
                "quote_delivery": ["<=", 2],
            }
        },
    },
    {
        "evaluator": "tool-call-order",
        "criteria": {"tool_calls_order": ["find_order", "get_customer", "check_stock", "quote_delivery"]},
    },
    {
        "evaluator": "tool-call-args",
        "criteria": {
            "tool_calls": [
                {"name": "check_stock", "args": {"warehouse": CORRECT_WAREHOUSE}},
                {
                    "name": "quote_delivery",
                    "args": {
                        "options": {
                            "tool": "quote_delivery",
                            "currency": "EUR",
                            "include_history": False,
                        }
                    },
                },
            ]
        },
    },
    {
        "evaluator": "tool-call-output",
        "criteria": {"tool_outputs": [{"name": "check_stock", "output": json.dumps(STOCK_RESULT)}]},
    },
    {"evaluator": "tool-repetition"},
    {"evaluator": "tool-error-recovery"},
]


def criteria_text(evaluations: int = EVALUATIONS_PER_TRACE, agents: Sequence[str] = (AGENT_NAME,)) -> str:
    """A criteria file (JSON is YAML): so many evaluations for each of `agents`, the six again and again."""
    entries = [
        {"name": f"evaluation-{number}", **_EVALUATIONS[number % len(_EVALUATIONS)]}
        for number in range(evaluations)
    ]
    return json.dumps({"agents": {agent: {"evaluations": entries} for agent in agents}})


CRITERIA_TEXT = criteria_text()
