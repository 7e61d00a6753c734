"""AG2: `ag2.span.type`, beside the GenAI conventions that say all but one thing."""

from typing import Final

from processors.frameworks.dialect import SpanRole
from processors.frameworks.shapes.mapped_dialect import MappedDialect, Sign, by_signs

TYPE_KEY: Final = "ag2.span.type"
"""The attribute that tells what AG2 made a span for; `rewrite.py` joins the turns among them."""

DIALECT: Final = MappedDialect(
    name="ag2",
    rank=20,
    keys=(TYPE_KEY,),
    role=by_signs(Sign(SpanRole.OTHER, values=((TYPE_KEY, "agent"),))),
)
