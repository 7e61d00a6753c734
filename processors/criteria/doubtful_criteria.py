"""Criteria that are valid but can hardly be meant: they are loaded with a warning."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase, translate

from processors.criteria.agent_criteria import AgentCriteria
from processors.documents import Path, Problem, did_you_mean, path_text

_MATCHES_NOTHING = "(?!)"


def criteria_warnings(agents: Sequence[AgentCriteria]) -> list[Problem]:
    """Patterns and evaluations in `agents`, the criteria of all files in their order, that have no effect.

    - A pattern that no name matches, such as `agent-[9-0]`.
    - `enabled: false` for a name that no other pattern gives the agent: mostly a misspelled one.
    """
    warnings: list[Problem] = []
    globs = [agent for agent in agents if not (agent.is_exact or agent.is_builtin)]
    built_in = [agent for agent in agents if agent.is_builtin]
    for agent in globs:
        if _MATCHES_NOTHING in translate(agent.pattern):
            warnings.append(_problem(agent.source, agent, None, "no name matches this pattern"))
    for agent in agents:
        warnings += _switching_nothing_off(agent, globs, built_in)
    return warnings


def _switching_nothing_off(
    agent: AgentCriteria, globs: Sequence[AgentCriteria], built_in: Sequence[AgentCriteria]
) -> Iterator[Problem]:
    for index, evaluation in enumerate(agent.evaluations):
        if evaluation.enabled:
            continue
        inherited = {
            other.name
            for glob in (*globs, *built_in)
            if glob.is_builtin or (glob.tenant == agent.tenant and glob.pattern != agent.pattern)
            # Whether two globs have a name in common is left open.
            if not agent.is_exact or fnmatchcase(agent.pattern, glob.pattern)
            for other in glob.evaluations
            if other.enabled
        }
        if evaluation.name not in inherited:
            hint = did_you_mean(evaluation.name, sorted(inherited))
            message = f'"{evaluation.name}" switches nothing off: no other pattern gives it{hint}'
            yield _problem(evaluation.source, agent, index, message)


def _problem(source: str, agent: AgentCriteria, position: int | None, message: str) -> Problem:
    path: Path = ("agents", agent.pattern)
    if position is not None:
        path = (*path, "evaluations", position)
    return Problem.at(source, path_text(path), message)
