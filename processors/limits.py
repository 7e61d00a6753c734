"""Caps on the work of evaluators: beyond one the answer is `over_limit`, never a low score.

Traces are written by others, and built-in evaluators run between two requests of the same loop, so each
evaluation of the largest admitted trace has to end within some ten milliseconds. How long and how deep a
single value may be is decided where values are decoded (`processors.values`).
"""

MAX_ORDERED_CALLS = 10_000
"""Calls that are aligned with an expected order. One machine word of expected names costs about a quarter
of a microsecond for each call."""

MAX_REORDERING_STEPS = 50_000
"""Positions tried while the calls of parallel groups are brought into the order that fits best. The search
is linear in expected names and quadratic in what was matched already; a step costs about half a
microsecond."""

MAX_ASSIGNMENT_ATTEMPTS = 10_000
"""Pairs of an expected and an actual call that are compared: 100 expectations against 100 calls of one
tool. A comparison with its line of explanation costs about one microsecond."""

MAX_DETAIL_CHARACTERS = 1024
"""Characters that details show of one value; longer texts are cut and end with an ellipsis."""

MAX_EXPLANATION_CHARACTERS = 1024
"""Characters of an explanation; the limit that result events are held to."""
