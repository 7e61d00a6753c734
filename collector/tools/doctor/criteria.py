"""Whether the criteria can be loaded, whom they name, and whether these agents come by. Reads the disk."""

from collections.abc import Mapping, Sequence

from collector.configuration import UNCOVERED_AGENTS, CriteriaStore, ServiceConfig
from collector.tools.doctor.hop import Hop, Trouble, works
from collector.tools.running_service import Samples
from collector.workers.custom_evaluators import load_custom_evaluators
from processors.criteria import AgentCriteria, CriteriaSet
from processors.documents import ProblemsFound, did_you_mean

_MOST_NAMES = 10
_AGENT = "gen_ai_agent_name"


def criteria_hops(
    config: ServiceConfig, environment: Mapping[str, str], samples: Samples | None
) -> list[Hop]:
    """A hop for each file of criteria, or one for what is wrong with them; then one for the agents seen.

    `samples` are those of the service that runs, None without one.
    """
    where = "processors.evaluation.criteria"
    try:
        evaluators = load_custom_evaluators(config.processors.evaluation)
        store = CriteriaStore(
            config.criteria_patterns(), environment=environment, evaluators=evaluators.known
        )
    except ProblemsFound as error:
        return [
            Trouble(
                "; ".join(str(problem) for problem in error.problems[:_MOST_NAMES]),
                "criteria without mistakes",
                "Mend the lines that are named; `tracegrade validate` prints all of them.",
            ).at(where)
        ]
    seen = [] if samples is None else _names(samples, "tracegrade_agent_runs_total")
    files: dict[str, list[AgentCriteria]] = {}
    for agent in store.current.agents:
        files.setdefault(agent.source.rpartition(":")[0], []).append(agent)
    hops = [_file_hop(where, file, agents, seen) for file, agents in files.items()]
    if not hops:
        hops.append(Trouble("the files name no agent", "at least one", UNCOVERED_AGENTS).at(where))
    if samples is not None:
        hops.append(_agents_hop(store.current, seen, _names(samples, "tracegrade_agents_without_criteria")))
    return hops


def _file_hop(where: str, file: str, agents: Sequence[AgentCriteria], seen: Sequence[str]) -> Hop:
    named = list(dict.fromkeys(agent.pattern for agent in agents))
    found = f"{file} names {_listed(named)}"
    matching = CriteriaSet(agents)
    tenants = list(dict.fromkeys(agent.tenant for agent in agents))
    if seen and not any(matching.evaluations_for(name, tenant) for name in seen for tenant in tenants):
        hint = _hint(named, seen)
        return Trouble(
            f"{found}{hint}, and none of the agents that came by: {_listed(seen)}",
            "a name or a pattern of an agent that sends",
            "Write the name as the agent sends it, in its case; docs/agents-and-patterns.md says where it "
            "comes from.",
        ).at(f"{where} ({file})")
    return works(f"{where} ({file})", found)


def _agents_hop(criteria: CriteriaSet, seen: Sequence[str], without: Sequence[str]) -> Hop:
    where = "agents"
    if not without:
        return works(where, f"came by: {_listed(seen)}" if seen else "none came by yet")
    hint = _hint(without, criteria.exact_names())
    return Trouble(
        f"no evaluation applies to {_listed(without)}{hint}",
        "criteria for every agent that comes by",
        "Name them in a criteria file, or add builtin to processors.evaluation.criteria.",
    ).at(where)


def _hint(names: Sequence[str], others: Sequence[str]) -> str:
    """Which of `others` the first of `names` is like, empty for none."""
    hints = (did_you_mean(name, others) for name in names)
    return next((hint for hint in hints if hint), "")


def _names(samples: Samples, series: str) -> list[str]:
    return sorted({labels[_AGENT] for labels, value in samples.get(series, ()) if value and _AGENT in labels})


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(f'"{name}"' for name in names[:_MOST_NAMES]) + more
