"""Criteria that give agents evaluations of certain names, where what they check does not matter."""

import json
from collections.abc import Mapping, Sequence

from processors.criteria import CriteriaSet, read_criteria


def criteria_with(
    live: Mapping[str, Sequence[str]],
    shadow: Mapping[str, Sequence[str]] | None = None,
    *,
    owner: str = "",
    contact: str = "",
    **settings: object,
) -> CriteriaSet:
    """The evaluations named in `live` and `shadow` for the agents that match their keys."""
    agents: dict[str, list[object]] = {}
    for stage, named in (("live", live), ("shadow", shadow or {})):
        for pattern, names in named.items():
            agents.setdefault(pattern, []).extend(
                {"evaluator": "ascii-printable-only", "name": name, "stage": stage, **settings}
                for name in names
            )
    document: dict[str, object] = {
        "agents": {pattern: {"evaluations": entries} for pattern, entries in agents.items()}
    }
    if owner:
        document["owner"] = owner
    if contact:
        document["contact"] = contact
    return CriteriaSet(read_criteria(json.dumps(document), "criteria.yaml", {}).agents)
