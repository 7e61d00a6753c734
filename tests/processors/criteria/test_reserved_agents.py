"""Criteria files cannot name the agent of the self-check."""

import pytest

from processors.criteria import read_criteria
from processors.documents import InvalidInput

CRITERIA = """
agents:
  {agent}:
    evaluations:
      - evaluator: tool-known
"""


def test_criteria_for_the_agent_of_the_self_check_are_refused_where_they_stand() -> None:
    with pytest.raises(InvalidInput) as refused:
        read_criteria(CRITERIA.format(agent="tracegrade.self-check"), "criteria.yaml", {})

    (problem,) = refused.value.problems
    assert ("criteria.yaml", 3) == (problem.file, problem.line)
    assert "check of itself" in problem.message


@pytest.mark.parametrize("agent", ["tracegrade.self-checker", '"tracegrade.*"', "self-check"])
def test_other_names_are_free(agent: str) -> None:
    (criteria,) = read_criteria(CRITERIA.format(agent=agent), "criteria.yaml", {}).agents

    assert agent.strip('"') == criteria.pattern
