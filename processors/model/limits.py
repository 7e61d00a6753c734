"""Caps on the work of evaluators: beyond one the answer is `over_limit`, never a low score.

Traces are written by others, and built-in evaluators run between two requests of the same loop, so each
evaluation of the largest admitted trace has to end within some tens of milliseconds. How long and how deep a
single value may be is decided where values are decoded (`processors.model.values`).
"""


class OverLimitError(Exception):
    """More than one evaluation looks at; the message, if there is one, says what."""


MAX_ORDERED_CALLS = 10_000
"""Calls that are aligned with an expected order. One machine word of expected names costs about a quarter
of a microsecond for each call."""

MAX_REORDERING_STEPS = 20_000
"""Positions tried while the calls of parallel groups are brought into the order that fits best. The search
grows with the calls and with what was matched before them; a step costs about one microsecond."""

MAX_ASSIGNMENT_ATTEMPTS = 5_000
"""Pairs of an expected and an actual call that are compared: 70 expectations against 70 calls of one
tool. A comparison with its line of explanation costs about four microseconds."""

MAX_MATCHED_CHARACTERS = 4_000_000
"""Characters of arguments or results that the matchers of one evaluation look at. A regular expression reads
several hundred of them in a microsecond."""

MAX_DETAIL_CHARACTERS = 1024
"""Characters that details show of one value; longer texts are cut and end with an ellipsis."""

MAX_EXPLANATION_CHARACTERS = 1024
"""Characters of an explanation; the limit that result events are held to."""

MAX_OUTPUT_CHARACTERS = 1_000_000
"""Characters of an output's text that are compared; also of all texts in an output that is an object."""

MAX_OUTPUT_VALUES = 20_000
"""Values in an output that is an object. Each costs up to two microseconds."""

MAX_COMPARED_LINES = 10_000
"""Lines of an output that are graded one by one. A line costs about two microseconds."""

MAX_EDIT_STEPS = 2_000_000
"""Steps of `processors.texts.edit_distance` in one evaluation: one text pair of 10,000 characters each, or
some thousand short ones. A step costs a few nanoseconds."""

MAX_SEARCHED_CHARACTERS = 256 * 1024
"""Characters of a text that is searched with a regular expression."""

MAX_SEARCH_STEPS = 16 * 1024 * 1024
"""Matches of a regular expression in one text, times its length: each may read all of the text anew. A
thousand characters cost about two microseconds."""
