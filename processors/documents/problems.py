"""What is wrong with a file that people wrote, in the words they get to read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Self, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""The steps to a node of a document: keys, and positions in lists from 0."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it stands and what was expected instead.

    `line` counts from 1; 0 means that it is not known. `path` is the place within the file as the user
    wrote it (`agents.weather.evaluations[1].evaluator`), empty for the file as a whole. `file` is empty
    where there is none, for example for built-in defaults.
    """

    file: str
    line: int
    path: str
    message: str

    @classmethod
    def at(cls, source: str, path: str, message: str) -> Self:
        """A problem at `source`, which is `file:line`, or empty."""
        file, _, line = source.rpartition(":")
        return cls(file, int(line) if line.isdecimal() else 0, path, message)

    def __str__(self) -> str:
        """One line: `file:line: path: message`, without the parts that are not known."""
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        text = ": ".join(part for part in (place, self.path, self.message) if part)
        return " ".join(text.splitlines())


class InvalidInput(Exception):
    """A file cannot be used; `problems` holds every mistake in it, in the order of the file.

    The text of the exception is one line for each problem.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def path_text(path: Iterable[str | int]) -> str:
    """`path` as people write it: `.key` for a key, `[index]` for a list position (from 0).

    A key that a reader could mistake for more than one step is put in quotes.
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
            continue
        is_plain = step and not any(character in step for character in " .[]\"'\n\r\t")
        key = step if is_plain else '"' + step.replace("\\", "\\\\").replace('"', '\\"') + '"'
        text += f".{key}" if text else key
    return text


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """`; did you mean "..."?` with the known word nearest to `word`, or the empty text.

    Words of less than three characters are like too many others for a guess.
    """
    if len(word) < 3:
        return ""
    by_folded = {candidate.lower().replace("-", "_"): candidate for candidate in known}
    near = get_close_matches(word[:100].lower().replace("-", "_"), list(by_folded), n=1, cutoff=0.6)
    return f'; did you mean "{by_folded[near[0]]}"?' if near else ""
