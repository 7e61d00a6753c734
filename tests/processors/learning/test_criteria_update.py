"""What `learn --update` makes of a criteria file that people have written in."""

import pytest

from processors.criteria import read_criteria
from processors.documents import InvalidInput
from processors.learning import LearnedText, updated_file

WRITTEN = """\
# Ours.
owner: team-a
agents:
  refunds:   # the important one
    evaluations:
      # Learned: catches 10% of broken runs.
      # - old rule
      - evaluator: tool-permission
        name: learned-tools
        criteria: {allow: [a]}

      # By hand: nobody deletes.
      - evaluator: tool-permission
        name: no-deletion
        criteria:
          deny: ["delete_*"]
      # Learned: catches 5% of broken runs.
      - evaluator: tool-call-budget
        name: learned-calls
        criteria: {max_calls: 3}
      # The end.
  "*":
    evaluations:
      - evaluator: tool-repetition
tests:
  - name: by hand
    run: {agent: {name: refunds}, tool_calls: [{name: delete_all}]}
    expect: {no-deletion: fail}
  - name: "learned: refunds: a good run (1)"
    run: {agent: {name: refunds}}
    expect: {learned-tools: pass}
"""


def new(agent: str = "refunds") -> LearnedText:
    return LearnedText(
        [
            "Learned: catches 50% of broken runs.",
            "- new rule",
            {"evaluator": "tool-permission", "name": "learned-tools", "criteria": {"allow": ["a", "b"]}},
        ],
        [
            {
                "name": f"learned: {agent}: a good run (1)",
                "run": {"agent": {"name": agent}, "tool_calls": [{"name": "b"}]},
                "expect": {"learned-tools": "pass"},
            }
        ],
    )


def test_learned_evaluations_are_exchanged_and_the_rest_stays() -> None:
    updated = updated_file(WRITTEN, "criteria.yaml", {"refunds": new()})

    assert (
        updated
        == """\
# Ours.
owner: team-a
agents:
  refunds:   # the important one
    evaluations:
      # Learned: catches 50% of broken runs.
      # - new rule
      - evaluator: tool-permission
        name: learned-tools
        criteria: {allow: [a, b]}

      # By hand: nobody deletes.
      - evaluator: tool-permission
        name: no-deletion
        criteria:
          deny: ["delete_*"]
      # The end.
  "*":
    evaluations:
      - evaluator: tool-repetition
tests:
  - name: by hand
    run: {agent: {name: refunds}, tool_calls: [{name: delete_all}]}
    expect: {no-deletion: fail}
  - name: "learned: refunds: a good run (1)"
    run: {agent: {name: refunds}, tool_calls: [{name: b}]}
    expect: {learned-tools: pass}
"""
    )
    assert not read_criteria(updated, "criteria.yaml", {}).problems


def test_the_same_again_changes_nothing() -> None:
    once = updated_file(WRITTEN, "criteria.yaml", {"refunds": new()})

    assert once == updated_file(once, "criteria.yaml", {"refunds": new()})


def test_a_new_agent_comes_after_the_others() -> None:
    updated = updated_file(WRITTEN, "criteria.yaml", {"billing": new("billing")})

    document = read_criteria(updated, "criteria.yaml", {})
    assert ["refunds", "*", "billing"] == [agent.pattern for agent in document.agents]
    assert 3 == len(document.cases)
    assert [line for line in WRITTEN.splitlines() if line not in updated.splitlines()] == []


@pytest.mark.parametrize(
    "text",
    [
        "agents: {refunds: {evaluations: [{evaluator: tool-repetition}]}}\n",
        "agents:\n  refunds: {evaluations: [{evaluator: tool-repetition}]}\n",
        "agents:\n  refunds:\n    evaluations: [{evaluator: tool-repetition}, {evaluator: tool-known}]\n",
    ],
)
def test_a_file_in_one_line_is_refused_rather_than_spoiled(text: str) -> None:
    with pytest.raises(InvalidInput, match="expected a list with a line for each member"):
        updated_file(text, "criteria.yaml", {"refunds": new()})


@pytest.mark.parametrize(
    "text",
    [
        "agents:\n  refunds:\n    evaluations: []\n",
        "agents:\n    refunds:\n        evaluations:\n        - evaluator: tool-repetition\n",
        "agents:\r\n  refunds:\r\n    evaluations:\r\n      - evaluator: tool-repetition\r\n",
        "agents:\n  refunds:\n    evaluations:\n      - {evaluator: tool-repetition}\ntests: []\n",
    ],
)
def test_other_ways_of_writing_are_kept(text: str) -> None:
    updated = updated_file(text, "criteria.yaml", {"refunds": new()})

    document = read_criteria(updated, "criteria.yaml", {})
    assert not document.problems
    assert "learned-tools" == document.agents[0].evaluations[-1].name
    assert 1 == len(document.cases)
    assert ("\r\n" in text) == ("\r\n" in updated)


def test_what_is_no_longer_learned_goes() -> None:
    text = updated_file("agents:\n  refunds:\n    evaluations: []\n", "criteria.yaml", {"refunds": new()})

    emptied = updated_file(text, "criteria.yaml", {"refunds": LearnedText([], [])})

    assert emptied == "agents:\n  refunds:\n    evaluations: []\ntests: []\n"
