"""Claude Agent SDK under OpenInference: a sub-agent's span does not name the agent.

It is named after the tool that started it, or after nothing where that call had ended before: a sub-agent may
go on in the background. Then it lies beside the call.
"""

from typing import Final

from processors.frameworks.claude_code.sub_agents import called_sub_agent
from processors.frameworks.rewriting import Found, Rewrite, Trace

_SPANS: Final = ("ClaudeAgentSDK.Agent", "ClaudeAgentSDK.Task", "ClaudeAgentSDK.Subagent")


def _has_sub_agents(trace: Trace, found: Found) -> bool:
    return len(found.runs) > 1 and trace.is_told_by("openinference")


def _name_sub_agents(trace: Trace, found: Found) -> Found:
    """The runs, where those of sub-agents bear the name that the call which started them tells.

    In the background the first to begin is that of the first call. Where agents of several names are on
    their way, nobody can tell whose run it is, and it keeps its name.
    """
    waiting: dict[int, list[tuple[int, str]]] = {}
    calls = {run.asked_by for run in found.runs}
    for run in sorted(found.runs, key=lambda run: run.carrier):
        if trace.tree.views[run.carrier].name not in _SPANS or run.parent is None:
            continue
        if run.asked_by >= 0:
            run.agent_name = _started(run.asked_by, trace)
            continue
        around = run.parent.carrier
        if around not in waiting:
            waiting[around] = _calls_below(around, found, trace, calls)
        on_their_way = [call for call in waiting[around] if call[0] < run.carrier]
        if len({name for _, name in on_their_way}) == 1:
            waiting[around].remove(on_their_way[0])
            run.asked_by = on_their_way[0][0]
            run.agent_name = on_their_way[0][1]
    return found


def _calls_below(around: int, found: Found, trace: Trace, taken: set[int]) -> list[tuple[int, str]]:
    """The calls right below the span `around` that started sub-agents of which no span below them tells."""
    parents = trace.tree.parents
    below = (call for call in found.calls if parents[call] == around and call not in taken)
    return [(call, name) for call in below if (name := _started(call, trace))]


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
