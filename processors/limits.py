"""Caps on the work of evaluators: beyond one the answer is `over_limit`, never a low score.

Traces are written by others, and built-in evaluators run between two requests of the same loop, so each
evaluation of the largest admitted trace has to end within some tens of milliseconds. How long and how deep a
single value may be is decided where values are decoded (`processors.values`).
"""

MAX_ORDERED_CALLS = 10_000
"""Calls that are aligned with an expected order. One machine word of expected names costs about a quarter
of a microsecond for each call."""

MAX_REORDERING_STEPS = 20_000
"""Positions tried while the calls of parallel groups are brought into the order that fits best. The search
grows with the calls and with what was matched before them; a step costs about one microsecond."""

MAX_ASSIGNMENT_ATTEMPTS = 5_000
"""Pairs of an expected and an actual call that are compared: 70 expectations against 70 calls of one
tool. A comparison with its line of explanation costs about four microseconds."""

MAX_DETAIL_CHARACTERS = 1024
"""Characters that details show of one value; longer texts are cut and end with an ellipsis."""

MAX_EXPLANATION_CHARACTERS = 1024
"""Characters of an explanation; the limit that result events are held to."""
