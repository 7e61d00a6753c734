"""The explanation of a score: one line of text for people, from the details of an evaluator."""

from collections.abc import Iterable, Iterator, Mapping

from processors.model.evaluation_result import Score
from processors.model.json_value import JsonValue
from processors.model.limits import MAX_EXPLANATION_CHARACTERS

_SEPARATOR = "; "
_FEW_LINES = 16
"""So many are joined whole: cutting off what is too long costs less than counting."""


def explanation(score: Score) -> str:
    """The lines of `score`, or of its details, joined by `; `.

    At most 1,024 characters; what is longer is cut and ends with an ellipsis. The text can always be
    encoded as UTF-8.
    """
    return explanation_text(score.lines or _lines(score.details))


def explanation_text(lines: Iterable[str]) -> str:
    """`lines` as one explanation, within the same limits."""
    if isinstance(lines, tuple) and len(lines) <= _FEW_LINES:
        text = _SEPARATOR.join(lines)
    else:
        text = _SEPARATOR.join(_beginning(lines))
    if len(text) > MAX_EXPLANATION_CHARACTERS:
        text = text[: MAX_EXPLANATION_CHARACTERS - 1] + "…"
    return text if text.isascii() else text.encode(errors="replace").decode()


def _beginning(lines: Iterable[str]) -> Iterator[str]:
    """As many of `lines` as an explanation shows."""
    length = -len(_SEPARATOR)
    for line in lines:
        yield line
        length += len(line) + len(_SEPARATOR)
        if length > MAX_EXPLANATION_CHARACTERS:
            return


def _lines(details: Mapping[str, JsonValue]) -> Iterator[str]:
    """One line for each member; the members of an object in place of the object."""
    for key, value in details.items():
        if isinstance(value, dict):
            yield from (f"{name}: {member}" for name, member in value.items())
        else:
            yield f"{key}: {value}"
