"""The frame of alerts about evaluations: what must hold, who is left out, and who is told."""

from collections.abc import Sequence
from textwrap import indent

from collector.tools.alerting.agent_series import EVALUATION
from collector.tools.alerting.evaluation_series import MUTED, ROUTING

WHO = "{{ $labels.gen_ai_evaluation_name }} of {{ $labels.gen_ai_agent_name }}"
"""The evaluation and the agent, for annotations."""

ADVISORY = "advisory"


def condition(*terms: str, only: Sequence[str] = (), unless: Sequence[str] = (), ignoring: str = "") -> str:
    """An expression: the first of `terms` where all others hold too.

    Terms have all labels in common but those that `ignoring` names. Of the evaluations, those stay that every
    one of `only` selects and none of `unless`.
    """
    operator = f"and ignoring ({ignoring})" if ignoring else "and"
    text = f"\n{operator}\n".join(indent(term, "  ") for term in terms)
    text += "".join(f"\nand on ({EVALUATION})\n  {selected}" for selected in only)
    return text + "".join(f"\nunless on ({EVALUATION})\n  {selected}" for selected in unless)


def routed(expression: str, severities: str = "page|ticket") -> str:
    """`expression` for evaluations of one of `severities` alone, with `severity`, `owner` and `contact`."""
    operator = "=~" if "|" in severities else "="
    inner = indent(expression, "    ")
    return (
        f"  (\n{inner}\n  )\n* on ({EVALUATION}) group_left (severity, owner, contact)\n"
        f'  {ROUTING}{{severity{operator}"{severities}"}}'
    )


def unmuted(*changed: str) -> list[str]:
    """For `unless`: muted evaluations, and those that `changed` selects as defined anew."""
    return [MUTED, *changed]
