"""Which calls try again what failed before.

Frameworks give a retry an id of its own, and the model may correct its arguments, so neither can tell: a
retry is a call of the same tool that came after a failed one, not side by side with it.
"""

from collections.abc import Sequence
from dataclasses import replace

from processors.model.agent_run import ToolCall


def mark_retries(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls, in order of execution, with `attempt` and `retry_of` set.

    A chain of attempts ends with the first that does not fail.
    """
    marked: list[ToolCall] = []
    last_of: dict[str, int] = {}
    for position, call in enumerate(calls):
        before = last_of.get(call.name)
        if before is not None:
            failed = marked[before]
            is_beside = call.parallel_group is not None and call.parallel_group == failed.parallel_group
            if failed.error is not None and not is_beside:
                call = replace(call, attempt=failed.attempt + 1, retry_of=before)
        last_of[call.name] = position
        marked.append(call)
    return marked
