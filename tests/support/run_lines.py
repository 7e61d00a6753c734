"""Parity cases that grade texts or outputs: as lines of a runs file, with criteria to grade them by."""

import json
from typing import Any

from processors.annotation import run_from_json
from processors.criteria import read_criteria
from processors.documents import InvalidInput
from processors.evaluate import evaluate_run
from processors.model import EvaluationResult
from tests.support.parity import Case


def line_of_trajectory(case: Case) -> Case:
    """The line for a conversation: what was said in each turn, and the calls with their results."""
    messages: list[Case] = []
    for turn, entries in enumerate(case["trajectory"]):
        spoken = [entry for entry in entries if entry["role"] in ("user", "assistant")]
        if entries and not spoken:
            messages.append({"role": "user", "content": "", "turn": turn})
        for entry in spoken:
            content = entry["content"] if isinstance(entry["content"], str) else " ".join(entry["content"])
            messages.append({"role": entry["role"], "content": content, "turn": turn})
    entries = [entry for turn in case["trajectory"] for entry in turn]
    returned: dict[str, str] = {}
    for entry in entries:
        if entry["role"] == "tool_return":
            returned.setdefault(entry["tool_call_id"], entry["content"])
    calls = [
        {
            "name": call["name"],
            "arguments": call["arguments"],
            "call_id": call["id"],
            "result": returned.get(call["id"]) if call["id"] else None,
            "result_state": "present" if call["id"] and call["id"] in returned else "absent",
        }
        for entry in entries
        if entry["role"] == "tool_call"
        for call in entry["calls"]
    ]
    return {"agent": {"name": case["id"]}, "messages": messages, "tool_calls": calls}


def results_of(line: Case, *evaluations: dict[str, Any]) -> list[EvaluationResult] | None:
    """What the agent run in `line` gets in the evaluations of a criteria file, which names that agent alone.

    None where the criteria are refused, in problems that name the agent.
    """
    name = line["agent"]["name"]
    text = json.dumps({"agents": {name: {"evaluations": list(evaluations)}}})
    try:
        (agent,) = read_criteria(text, "criteria.yaml", {}).agents
    except InvalidInput as refusal:
        if all(name in str(problem) for problem in refusal.problems):
            return None
        raise
    return list(evaluate_run(run_from_json(line, "case.runs.jsonl:1"), agent.evaluations))
