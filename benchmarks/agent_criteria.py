"""What the workload's agent is graded by: six evaluations of every run, most of which pass."""

import json

from benchmarks.agent_trace import AGENT_NAME, CORRECT_WAREHOUSE, STOCK_RESULT
from processors.model.json_value import JsonObject

EVALUATIONS_PER_TRACE = 6

_CRITERIA: JsonObject = {
    "agents": {
        AGENT_NAME: {
            "evaluations": [
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
                    "criteria": {
                        "tool_calls_order": ["find_order", "get_customer", "check_stock", "quote_delivery"]
                    },
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
                    "criteria": {
                        "tool_outputs": [{"name": "check_stock", "output": json.dumps(STOCK_RESULT)}]
                    },
                },
                {"evaluator": "tool-repetition"},
                {"evaluator": "tool-error-recovery"},
            ]
        }
    }
}

CRITERIA_TEXT = json.dumps(_CRITERIA, indent=2)
"""The criteria file (JSON is YAML)."""
