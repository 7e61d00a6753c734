"""Claude Agent SDK under OpenInference: a sub-agent's span does not name the agent.

It is named after the tool that started it, or after nothing where that call had ended before: a sub-agent may
go on in the background. Then it lies beside the call.
"""

from collections import deque
from typing import Final

from processors.frameworks.claude_code.sub_agents import called_sub_agent
from processors.frameworks.rewriting import Found, Rewrite, Trace

_SPANS: Final = ("ClaudeAgentSDK.Agent", "ClaudeAgentSDK.Task", "ClaudeAgentSDK.Subagent")
_MOST_UNDER_WAY = 64
"""Calls of sub-agents whose runs have not begun, beyond which none is named: keeps hostile traces linear."""


def _has_sub_agents(trace: Trace, found: Found) -> bool:
    return len(found.runs) > 1 and trace.is_told_by("openinference")


def _name_sub_agents(trace: Trace, found: Found) -> Found:
    """The runs, where those of sub-agents bear the name that the call which started them tells.

    In the background the first to begin is that of the first call. Where agents of several names are on
    their way, nobody can tell whose run it is, and it keeps its name.
    """
    sub_agents = [
        run for run in found.runs if trace.tree.views[run.carrier].name in _SPANS and run.parent is not None
    ]
    if not sub_agents:
        return found
    taken = {run.asked_by for run in found.runs}
    started: dict[int, deque[tuple[int, str]]] = {}
    for call in sorted(found.calls):
        name = "" if call in taken else _started(call, trace)
        if name:
            started.setdefault(trace.tree.parents[call], deque()).append((call, name))
    under_way: dict[int, deque[tuple[int, str]]] = {}
    for run in sorted(sub_agents, key=lambda run: run.carrier):
        if run.asked_by >= 0:
            run.agent_name = _started(run.asked_by, trace)
            continue
        parent = trace.tree.parents[run.carrier]
        to_come = started.get(parent, deque())
        begun = under_way.setdefault(parent, deque())
        while to_come and to_come[0][0] < run.carrier:
            begun.append(to_come.popleft())
        if 0 < len(begun) <= _MOST_UNDER_WAY and len({name for _, name in begun}) == 1:
            run.asked_by, run.agent_name = begun.popleft()
    return found


def _started(call: int, trace: Trace) -> str:
    reading = trace.readings[call]
    if reading is None:
        return ""
    return called_sub_agent(reading.tool.name, reading.tool.arguments.text)


REWRITE: Final = Rewrite(
    framework="Claude Agent SDK, OpenInference",
    what="names sub-agents after the agent that the call which started them asked for",
    stage="agents",
    applies=_has_sub_agents,
    rewrite=_name_sub_agents,
)
