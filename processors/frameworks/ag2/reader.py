"""AG2: `ag2.span.type`, beside the GenAI conventions that say all but one thing."""

from typing import Final

from processors.frameworks.dialect import AgentReading, SpanRole
from processors.frameworks.shapes.mapped_dialect import MappedDialect, Sign, by_signs

DIALECT: Final = MappedDialect(
    name="ag2",
    rank=20,
    keys=("ag2.span.type",),
    role=by_signs(Sign(SpanRole.OTHER, values=(("ag2.span.type", "agent"),))),
    agent=lambda _: AgentReading(is_turn=True),
)
